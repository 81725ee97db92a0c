//! The contents of a reply, or why it is missing, in either protocol.

use std::{
    fmt,
    io::{self, ErrorKind},
};

/// Bytes of a reply of a run at most: a value and the lines around it.
pub(super) const LONGEST_REPLY: usize = 2 * 1024 * 1024;

/// The value that a read has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) value: Vec<u8>,
    /// The writes that have brought the key there. `None`: nothing counts them.
    pub(super) applied: Option<Applied>,
}

/// The writes of a key that were applied, as its row counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Applied {
    /// All of them, the first version included.
    pub(super) writes: u64,
    /// Those that have found their own version there.
    pub(super) again: u64,
}

/// Why a request has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The other side said no, in these words.
    Refused(String),
    /// There was no reply: the connection failed, or the time was over.
    Lost(String),
    /// A reply that cannot be one to this request.
    Wrong(String),
    /// A reply to another request, as it seems to one of another client.
    Foreign(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(words) | Self::Lost(words) | Self::Wrong(words) | Self::Foreign(words) => {
                out.write_str(words)
            }
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Lost(match error.kind() {
            // The errors of the kernel when the time for a read or write is over.
            ErrorKind::WouldBlock | ErrorKind::TimedOut => "nothing within --timeout".to_owned(),
            _ => error.to_string(),
        })
    }
}

/// A complete reply's length, and what it said.
pub(super) type Parsed<T> = Option<(usize, Result<T, Failure>)>;

/// Bytes that cannot be the reply.
pub(super) fn wrong(what: &str, bytes: &[u8]) -> Failure {
    Failure::Wrong(format!("{what}: {}", excerpt(bytes)))
}

/// The part of `bytes` that an error shows.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(200)].escape_ascii().to_string()
}
