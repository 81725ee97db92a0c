//! Other proxies before the members of a pool.

use std::fmt;

/// What is known of other proxies before the same members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OtherProxies {
    /// No member sees one.
    None,
    /// It is not known, for this reason.
    Unknown(String),
    /// The member at this address sees one.
    Seen(String),
}

impl OtherProxies {
    /// May there be one?
    pub fn may_be(&self) -> bool {
        *self != Self::None
    }
}

impl Default for OtherProxies {
    /// No member has told yet.
    fn default() -> Self {
        Self::Unknown("no server has told yet whether another proxy uses it".into())
    }
}

impl fmt::Display for OtherProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no other proxy uses the servers"),
            Self::Unknown(why) => f.write_str(why),
            Self::Seen(address) => write!(f, "another proxy uses {address}"),
        }
    }
}
