//! A server's progress in taking a request.

use crate::micros::Micros;

/// The server's progress in taking the request whose reply is awaited.
#[derive(Clone, Copy, Debug)]
pub(in crate::upstream) struct Uptake {
    /// An upper bound of the request's end, in bytes that the lane was given.
    pub(in crate::upstream) end: u64,
    /// Bytes that the kernel of the server has acknowledged.
    pub(in crate::upstream) taken: u64,
    /// The time at which `taken` last grew.
    pub(in crate::upstream) moved: Micros,
}
