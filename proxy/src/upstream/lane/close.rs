//! The moment at which an order closes a connection.

/// The moment at which an order closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// As soon as nothing waits on it and the server keeps nothing for a client there.
    WhenIdle,
    /// As soon as nothing waits on it. A client for which the server kept something there is closed.
    AfterReply,
    /// At once. Requests that wait on it fail.
    Now,
}
