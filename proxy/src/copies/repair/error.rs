//! Errors of a repair.

use std::io;

use crate::protocol::Unfit;

/// Why a copy was not repaired. It is tried again, later with each failure; each variant says what is at
/// fault, and when a retry may help.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The fault of the network or the server: it cannot be reached, is late, or closes the connection. A
    /// retry may help.
    #[error("{0}")]
    Unreachable(#[from] io::Error),

    /// The server's fault: no copy can be made of it. A retry helps only after another version was started.
    #[error(transparent)]
    Unfit(#[from] Unfit),

    /// The server's fault: it refuses a request of the repair. A retry helps only after it was configured
    /// otherwise.
    #[error("it answers `{answer}` to {question}")]
    Refused {
        /// The question to the server.
        question: &'static str,
        /// The first line of its answer, escaped.
        answer: String,
    },

    /// The network's fault: this number of our broken connections are still open at the server. A retry may
    /// help.
    #[error("{0} old connections of ours are still open there")]
    OldConnections(usize),

    /// The operator's choice: the pool says `rejoin: wait`. A retry helps after the server was restarted.
    #[error("it is to be restarted first (rejoin: wait)")]
    AwaitsRestart,

    /// It cannot be repaired: too many or unknown keys were missed, and its protocol forbids a flush. A retry
    /// helps after the server was restarted empty.
    #[error("it missed more than the known keys, and servers of its protocol are never flushed")]
    NeverFlushed,
}
