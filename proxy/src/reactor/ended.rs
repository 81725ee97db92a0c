//! Whether a peer has sent all that it ever will.

use rustix::{
    io::Errno,
    net::{RecvFlags, recv},
};
use socket2::Socket;

/// Has the peer closed its side or broken the connection, and is nothing left to be read?
pub(super) fn has_ended(socket: &Socket) -> bool {
    match recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((_, count)) => count == 0,
        Err(error) => !matches!(error, Errno::AGAIN | Errno::INTR),
    }
}
