//! Repair of a server that missed writes: the part of the contract for protocols whose pools can be
//! replicated.

use std::{collections::HashSet, net::SocketAddr, time::Duration};

/// One life of a server's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// The process id, as its host numbers it.
    pub pid: u64,
    /// The time for which the process has run, cut to whole seconds.
    pub uptime: Duration,
}

impl Incarnation {
    /// Is this a later life than `known`? A process id alone does not tell (in a container it is always 1). A
    /// clock alone does not tell either: the clock of a frozen server stands still, but it never goes back.
    pub fn is_after(self, known: Self) -> bool {
        self.pid != known.pid || self.uptime < known.uptime
    }
}

/// A server's introduction of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// The server's current life.
    pub life: Incarnation,
    /// The number of values stored in this life.
    pub stored: u64,
}

/// The reason why a server cannot become a copy. The fault is the server's; a retry helps only after another
/// version of the server was started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The server does not say what a repair must know: the item with this name in the protocol.
    #[error("its answer has no {0}")]
    Unsaid(&'static str),
    /// The server does not understand all requests that copies are sent, for this reason.
    #[error("{0}")]
    Limited(String),
}

/// A request that a repair sends: the number of its command, and its bytes.
pub type Question = (u16, &'static [u8]);

/// The requests of a repair to a server. The reply to each one comes as one text, with all its parts joined.
pub trait Repair: Send + Sync {
    /// Must a repair log in before it asks? By default it must, as a lane does. A protocol whose connections
    /// have a transform must not say otherwise.
    fn needs_login(&self) -> bool {
        true
    }

    /// The request for the server's current life.
    fn ask_introduction(&self) -> Question;

    /// Reads the reply to [`Repair::ask_introduction`].
    ///
    /// # Errors
    /// The server cannot become a copy.
    fn introduction(&self, reply: &[u8]) -> Result<Introduction, Unfit>;

    /// The request for the server's list of connections.
    fn ask_connections(&self) -> Question;

    /// Reads the reply to [`Repair::ask_connections`]: the remote addresses of the connections that the
    /// server has accepted.
    fn connections(&self, reply: &[u8]) -> HashSet<SocketAddr>;

    /// Reads the same reply: the number of connections that the server has accepted, with those that have no
    /// address.
    fn connection_count(&self, reply: &[u8]) -> usize;

    /// The request that drops all that the server holds. `None`: a server of this protocol must never be
    /// flushed, whatever it missed.
    fn flush(&self) -> Option<Question>;
}
