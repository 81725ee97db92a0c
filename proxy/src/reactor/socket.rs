//! Functions on sockets for both back ends.

use std::{
    io,
    net::SocketAddr,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
};

use rustix::{
    io::Errno,
    net::{SocketFlags, acceptfrom_with},
};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Whether this error means that the process or the system is out of descriptors or of memory for sockets.
/// The peer is not at fault.
pub fn is_shortage(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
    )
}

/// The error's text in words that operators know, without the number of the operating system's error.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

/// A connection whose end was seen before an error of the operating system was. It has the words that the
/// operating system would have used: clients and operators look for them.
pub(super) fn reset() -> io::Error {
    io::Error::from_raw_os_error(libc::ECONNRESET)
}

/// A non-blocking socket for connecting to `address`, which sends small messages at once.
pub(super) fn stream_socket(address: &SockAddr) -> io::Result<Socket> {
    let protocol = (address.domain() != Domain::UNIX).then_some(Protocol::TCP);
    let socket = Socket::new(address.domain(), Type::STREAM.nonblocking().cloexec(), protocol)?;
    if protocol.is_some() {
        socket.set_tcp_nodelay(true)?;
    }
    Ok(socket)
}

/// The next client of a listener and its address, which is `None` for a Unix socket. `None`: no client waits.
///
/// # Errors
/// There is no descriptor for one more, most often.
pub(super) fn accept(listener: &Socket) -> io::Result<Option<(Socket, Option<SocketAddr>)>> {
    loop {
        return match acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok((fd, address)) => {
                let address = address.and_then(|address| SocketAddr::try_from(address).ok());
                Ok(Some((fd.into(), address)))
            }
            // A client that gave up before it was accepted is no failure of ours.
            Err(Errno::INTR | Errno::CONNABORTED) => continue,
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        };
    }
}

/// A socket that this process has inherited under this number. It is a copy of the descriptor, which stays
/// open.
///
/// # Errors
/// No socket is open under this number.
#[allow(unsafe_code)]
pub fn inherited(number: RawFd) -> io::Result<Socket> {
    if number < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the descriptor is borrowed for the time of this call alone, in which nobody closes it: only a
    // number that the command line names comes here. If it is not open, the copy fails.
    let copy = unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned()?;
    let socket = Socket::from(copy);
    // Anything but a socket has no type.
    socket.r#type()?;
    Ok(socket)
}

/// The process that has connected a Unix socket; `None` if it is no Unix socket, or if the process is outside
/// of our PID namespace. (A credential of rustix is not used, as its process is never 0, which is what the
/// kernel says then.)
#[allow(unsafe_code)]
pub fn peer_process(socket: &Socket) -> Option<u32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes to `peer`, of which every
    // value is valid.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    u32::try_from(peer.pid)
        .ok()
        .filter(|&process| failed == 0 && process > 0)
}

#[cfg(test)]
mod tests {
    use std::os::{fd::OwnedFd, unix::net::UnixStream};

    use super::*;

    #[test]
    fn peer_of_a_unix_socket_has_a_process() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(
            peer_process(&Socket::from(OwnedFd::from(one))),
            Some(std::process::id())
        );
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(peer_process(&Socket::from(OwnedFd::from(listener))), None);
    }
}
