//! What an order closes, and when.

use crate::members::{Member, MemberId, PoolId};

/// The moment at which an order closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Close {
    /// As soon as nothing waits on it and the server keeps nothing for a client there.
    WhenIdle,
    /// The same, for a member that is given nothing more that writes. Requests that wait for a connection to
    /// it fail, none of which was sent: they may go elsewhere.
    ForGood,
    /// As soon as nothing waits on it. A client for which the server kept something there is closed.
    AfterReply,
    /// At once. Requests that wait on it fail.
    Now,
}

/// The connections that an order closes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Those to this member.
    Member(MemberId),
    /// Those that a pool has to this address, by whatever name its members had before.
    Address(PoolId, String),
}

impl Closed {
    /// Is a connection to this member one of them?
    pub(in crate::upstream) fn is_to(&self, member: &Member) -> bool {
        match self {
            Self::Member(id) => member.id == *id,
            Self::Address(pool, address) => member.pool.id == *pool && member.address == *address,
        }
    }
}
