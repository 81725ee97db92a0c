//! The contents of a reply, or why it is missing, in either protocol.

/// Bytes of a reply of a run at most: a value and the lines around it.
pub(super) const LONGEST_REPLY: usize = 2 * 1024 * 1024;

/// Why a request has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The other side said no, in these words.
    Refused(String),
    /// There was no reply: the connection failed, or the time was over.
    Lost(String),
    /// A reply that cannot be one to this request.
    Wrong(String),
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
