//! A byte transform between a socket and its session or lane: where TLS will stand.

use std::io;

/// Turns wire bytes into plain ones and back. A transform may have something to say by itself (a handshake, a renewed key):
/// it appends that to `wire` in either direction.
pub trait Transform: Send {
    /// Wire bytes have arrived: appends what they mean to `plain`, and what must be answered to `wire`.
    ///
    /// # Errors
    /// The peer does not keep to the transform's protocol; the connection is closed.
    fn open(&mut self, received: &[u8], plain: &mut Vec<u8>, wire: &mut Vec<u8>) -> io::Result<()>;

    /// Appends plain bytes to `wire` in wire form; called with none at the start, so that the side that begins can.
    ///
    /// # Errors
    /// The transform has ended.
    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()>;
}
