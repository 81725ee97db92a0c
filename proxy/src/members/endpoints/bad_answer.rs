//! Why an answer of the API server changes nothing.

/// More endpoints than any real Service has.
pub(super) const LIMIT: usize = 10_000;

/// Why an answer is not taken. What is known stays in use.
#[allow(missing_docs, reason = "the messages say it")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    #[error("it is no answer about EndpointSlices: {0}")]
    NoSlices(String),
    #[error("the slice {0} is of another Service")]
    OtherService(String),
    #[error("the slice {0} has names in place of addresses")]
    Names(String),
    #[error("the slice {slice} names `{address}`, which is no address")]
    Address { slice: String, address: String },
    #[error("more than {LIMIT} endpoints")]
    TooMany,
    #[error("its list ({told}) is older than what is known ({known})")]
    Older { told: String, known: String },
    #[error("what it would tell of is gone: {0}")]
    Gone(String),
    #[error("it ends the watch: {0}")]
    Ended(String),
}
