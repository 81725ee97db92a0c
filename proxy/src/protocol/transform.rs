//! A byte transform, such as TLS, between a socket and its session or lane.

use std::io;

/// Turns wire bytes into plain bytes and back. A transform may have to send bytes of its own (a handshake, a
/// renewed key): it appends them to `wire` in either direction.
pub trait Transform: Send {
    /// Takes wire bytes that have arrived: appends the plain bytes to `plain`, and the transform's own answer
    /// to `wire`.
    ///
    /// # Errors
    /// The peer violates the transform's protocol; the connection is closed.
    fn open(&mut self, received: &[u8], plain: &mut Vec<u8>, wire: &mut Vec<u8>) -> io::Result<()>;

    /// Appends plain bytes to `wire` in wire form. The first call has no bytes, so that the side that speaks
    /// first can begin.
    ///
    /// # Errors
    /// The transform has ended.
    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()>;
}
