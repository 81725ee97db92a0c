//! Orders that are not carried out.

/// Why an order is not carried out.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// There is no such pool.
    #[error("there is no pool `{0}`; known are {1}")]
    NoPool(String, String),
    /// The pool has no such member.
    #[error("pool {0} has no member `{1}`; known are {2}")]
    NoMember(String, String, String),
    /// The member holds a copy.
    #[error("{0} holds a copy, which takes part in every write: take it out of the list of servers instead")]
    Copy(String),
    /// All members of the pool take writes.
    #[error("pool {0} has not one writer: all its members take writes")]
    NoWriter(String),
    /// The writer is about to move.
    #[error("the writer of pool {0} moves to {1} just now: wait until it is there, or take that order back")]
    Moving(String, String),
    /// The member cannot be the writer now.
    #[error("{0} cannot take writes: {1}")]
    Unfit(String, String),
    /// Its members come from DNS.
    #[error(
        "pool {0} has no member `{1}`: DNS knows no pods; write `kubernetes: SERVICE` in place of `dns: SERVICE`"
    )]
    NoPods(String, String),
    /// Another client has ordered who is the writer.
    #[error("the writer of pool {0} is ordered by `{1}` already")]
    OtherWriter(String, String),
    /// A person has ordered another writer.
    #[error(
        "a person has ordered that {1} is the writer of pool {0}; `proxima mysql writer {0} --end` takes that back"
    )]
    ByHand(String, String),
    /// There are as many orders as there may be.
    #[error("pool {0} has {1} orders already")]
    TooMany(String, usize),
    /// The writer stays, as something is still under way there.
    #[error("the writer of pool {0} stays: {1}")]
    GivenUp(String, String),
}

/// Names in a sentence.
pub(super) fn list(names: &[&str]) -> String {
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}
