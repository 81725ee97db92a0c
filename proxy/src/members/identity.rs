//! The identity of a server, which is the same in every process.

use std::{fmt, sync::Arc};

/// A server as every proxy names it, and as this one named it before a restart. A
/// [`MemberId`](super::MemberId) means something to one process only.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerIdentity {
    /// The pool that names it.
    pub pool: Arc<str>,
    /// The name by which consistent hashing and operators know it.
    pub name: Arc<str>,
    /// Its address: `ip:port` or `unix:/path`. While its host name has no address, it is the text of the
    /// configuration.
    pub address: Arc<str>,
}

impl fmt::Display for ServerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} at {}", self.pool, self.name, self.address)
    }
}
