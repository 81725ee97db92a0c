//! Listening sockets: one for each worker by `SO_REUSEPORT`, one for all on a Unix path.
#![allow(
    clippy::disallowed_methods,
    reason = "waits for an address, or looks whether a socket file is alive, before it is served"
)]

use std::{io, net::SocketAddr, os::unix::net::UnixStream, path::Path, thread, time::Duration};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// The kernel shortens it to net.core.somaxconn.
const BACKLOG: i32 = 4096;

/// The listening sockets of one address, one for each worker, and the address with the port that was given.
#[derive(Debug)]
pub struct Bound {
    pub address: String,
    pub sockets: Vec<Socket>,
}

/// Binds `address` (`host:port`, `[v6]:port`, `unix:/path`) for so many workers.
///
/// `SO_REUSEPORT` would let a second instance bind in silence and take half of the clients, so the first bind is
/// made without it: that one the kernel refuses.
///
/// # Errors
/// The address is none, or is in use.
pub fn bind(address: &str, workers: usize) -> io::Result<Bound> {
    if let Some(path) = address.strip_prefix("unix:") {
        return bind_unix(path, workers);
    }
    let wanted: SocketAddr = address.parse().map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "expected ADDRESS:PORT, [ADDRESS]:PORT or unix:/PATH",
        )
    })?;
    let guard = guard(wanted)?;
    let port = guard
        .local_addr()?
        .as_socket()
        .map_or(wanted.port(), |address| address.port());
    let wanted = SocketAddr::new(wanted.ip(), port);
    drop(guard);
    let mut sockets = Vec::with_capacity(workers);
    for _ in 0..workers {
        let socket = tcp(wanted, true)?;
        socket.listen(BACKLOG)?;
        sockets.push(socket);
    }
    Ok(Bound {
        address: wanted.to_string(),
        sockets,
    })
}

/// A listener that shares with nobody. The kernel takes down the ring of a killed process, and with it its listeners, a little
/// after the process itself: whoever starts again at once must not fail for that.
fn guard(address: SocketAddr) -> io::Result<Socket> {
    const TRIES: u32 = 50;
    const PAUSE: Duration = Duration::from_millis(20);
    let mut tries = 0;
    loop {
        let bound = tcp(address, false).and_then(|socket| socket.listen(1).map(|()| socket));
        match bound {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries < TRIES => {
                tries += 1;
                thread::sleep(PAUSE);
            }
            other => return other,
        }
    }
}

fn tcp(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM.nonblocking().cloexec(),
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    if shared {
        socket.set_reuse_port(true)?;
    }
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // Accepted sockets inherit it.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn bind_unix(path: &str, workers: usize) -> io::Result<Bound> {
    if Path::new(path).exists() {
        if UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        // Left behind by one that was killed.
        std::fs::remove_file(path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    socket.listen(BACKLOG)?;
    // Unix sockets cannot share a path: all workers accept from the same one.
    let sockets = (0..workers)
        .map(|_| socket.try_clone())
        .collect::<io::Result<_>>()?;
    Ok(Bound {
        address: format!("unix:{path}"),
        sockets,
    })
}

#[cfg(test)]
mod tests {
    use super::bind;

    #[test]
    fn a_second_instance_is_refused() {
        let first = bind("127.0.0.1:0", 2).unwrap();
        assert_eq!(first.sockets.len(), 2);
        let error = bind(&first.address, 2).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_dead_socket_file_is_no_obstacle_and_a_live_one_is() {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("unix:{}", folder.path().join("s").display());
        let first = bind(&address, 2).unwrap();
        assert!(bind(&address, 1).is_err());
        drop(first);
        assert!(bind(&address, 1).is_ok());
    }
}
