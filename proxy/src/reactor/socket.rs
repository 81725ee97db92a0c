//! Sockets as both back ends need them.

use std::io;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Does this error say that the process, or the system, is out of descriptors or memory for sockets? No peer is to blame.
pub fn is_shortage(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
    )
}

/// A non-blocking socket fit for connecting to `address`, small messages sent at once.
pub(super) fn stream_socket(address: &SockAddr) -> io::Result<Socket> {
    let protocol = (address.domain() != Domain::UNIX).then_some(Protocol::TCP);
    let socket = Socket::new(address.domain(), Type::STREAM.nonblocking().cloexec(), protocol)?;
    if protocol.is_some() {
        socket.set_tcp_nodelay(true)?;
    }
    Ok(socket)
}
