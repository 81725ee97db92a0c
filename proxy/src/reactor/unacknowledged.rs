//! Sent bytes that a socket still holds.
#![allow(unsafe_code)]

use libc::c_int;
use rustix::ioctl::{Getter, Opcode, ioctl};
use socket2::Socket;

/// Bytes that this kernel keeps because the peer's kernel has not acknowledged them.
pub(super) fn unacknowledged(socket: &Socket) -> usize {
    // SAFETY: this request, which is SIOCOUTQ for a socket, writes one int.
    let asked = unsafe { ioctl(socket, Getter::<{ libc::TIOCOUTQ as Opcode }, c_int>::new()) };
    asked.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(0))
}
