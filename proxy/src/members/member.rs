//! One server in a pool.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use socket2::SockAddr;

use super::{Distance, DistanceSource, Health, Pool, ServerIdentity};
use crate::dialect::{Copied, Dialect, End};

/// A member's number, the same in every snapshot as long as the member lives: workers find its lanes by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId(pub u32);

/// One server, as every worker sees it.
pub struct Member {
    /// Its number.
    pub id: MemberId,
    /// What every process calls it.
    pub identity: ServerIdentity,
    /// The pool it was named in.
    pub pool: Arc<Pool>,
    /// What consistent hashing and people know it by.
    pub name: String,
    /// As written in the configuration.
    pub address: String,
    /// None: its name has no address yet. It is not asked, and will be another member when it has one.
    pub socket: Option<SockAddr>,
    /// Share of the keys relative to the others; above 0.
    pub weight: f64,
    /// Failure domain; `None`: not known.
    pub zone: Option<String>,
    /// How far it is from this process, where no node agent tells more.
    pub distance: Distance,
    /// What that is known from.
    pub distance_source: DistanceSource,
    /// The protocol that it speaks.
    pub dialect: &'static dyn Dialect,
    /// Time for a reply.
    pub timeout: Duration,
    /// Time for a connection.
    pub connect_timeout: Duration,
    /// It holds a copy of what all of its pool hold, in this way; `None`: it holds what no other does.
    pub copied: Option<&'static dyn Copied>,
    /// Shared with every pool that names the same server.
    pub health: Arc<Health>,
}

impl Member {
    /// As the end of a connection to it.
    pub fn end(&self) -> End<'_> {
        End::Server {
            pool: &self.pool.name,
            address: &self.address,
        }
    }

    /// Does it hold a copy of what all of its pool hold?
    #[inline]
    pub fn is_copy(&self) -> bool {
        self.copied.is_some()
    }

    /// May it be asked?
    #[inline]
    pub fn is_up(&self) -> bool {
        self.health.is_up() || self.fails_open()
    }

    /// Is suspicion of it disregarded? That nobody is there never is.
    pub fn fails_open(&self) -> bool {
        self.pool.fail_open.load(Ordering::Relaxed) && !self.health.is_gone()
    }

    /// Why it may not be asked.
    pub fn refusal(&self) -> &'static str {
        match self.socket {
            Some(_) => "ejected",
            None => "ejected: its name does not resolve",
        }
    }

    /// Where it is. Two that are the same server have the same; one whose name has moved has another.
    pub fn endpoint(&self) -> &str {
        &self.identity.address
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.pool, self.name)
    }
}
