//! Listening sockets: one for each worker by `SO_REUSEPORT`, or one for all workers on a Unix path or of the
//! process that has started this one.
#![allow(
    clippy::disallowed_methods,
    reason = "waits for an address, or looks whether a socket file is alive, before it is served"
)]

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::{FileTypeExt, PermissionsExt, chown},
    thread,
    time::Duration,
};

use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};

use crate::{
    config::{
        listen_socket,
        schema::{Id, Permissions, SocketOptions},
    },
    reactor::inherited,
};

/// The length of the queue of new checks of health.
const CHECKS: i32 = 128;
/// The kernel asks a client that has been silent for so long whether it is still there.
const SILENCE: Duration = Duration::from_secs(60);
/// It asks again, some times, if there is no answer.
const AGAIN: Duration = Duration::from_secs(15);

/// The listening sockets of one address.
#[derive(Debug)]
pub struct ListenSockets {
    /// The address, with the port that the kernel gave.
    pub address: String,
    /// The sockets, one for each worker.
    pub sockets: Vec<Socket>,
    /// This host does not have the address yet. Clients are accepted as soon as it has.
    pub is_awaited: bool,
}

/// Binds `address` (`IP:port`, `[v6]:port`, `localhost:port`, `unix:/path`) for this number of workers.
///
/// With `SO_REUSEPORT` a second instance would bind in silence and take half of the clients. The first bind
/// is therefore made without it: the kernel refuses it when the address is in use. `options.shared` asks for
/// nothing else than a second instance.
///
/// # Errors
/// The address is not valid, or it is in use.
pub fn bind(
    address: &str,
    permissions: &Permissions,
    options: &SocketOptions,
    workers: usize,
) -> io::Result<ListenSockets> {
    if let Some(path) = address.strip_prefix("unix:") {
        return bind_unix(path, permissions, options, workers);
    }
    if let Some(number) = address.strip_prefix("fd:") {
        return inherit(number, options, workers);
    }
    let wanted = listen_socket(address).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "expected IP:PORT, [IP]:PORT, localhost:PORT or unix:/PATH",
        )
    })?;
    let (guard, is_awaited) = if options.shared {
        tcp(wanted, true)?
    } else {
        guard(wanted)?
    };
    let port = guard
        .local_addr()?
        .as_socket()
        .map_or(wanted.port(), |address| address.port());
    let wanted = SocketAddr::new(wanted.ip(), port);
    drop(guard);
    let mut sockets = Vec::with_capacity(workers);
    for _ in 0..workers {
        let (socket, _) = tcp(wanted, true)?;
        look_after(&socket, options)?;
        socket.listen(options.backlog)?;
        sockets.push(socket);
    }
    Ok(ListenSockets {
        address: wanted.to_string(),
        sockets,
        is_awaited,
    })
}

/// Has the kernel ask clients that are silent whether they are still there. Accepted sockets inherit this.
fn look_after(socket: &Socket, options: &SocketOptions) -> io::Result<()> {
    if !options.keepalive {
        return socket.set_keepalive(false);
    }
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(SILENCE).with_interval(AGAIN))
}

/// A listener that shares its address with no other. The kernel takes down the ring of a killed process, and
/// with it its listeners, a little after the process itself: a process that starts again at once must not
/// fail for that.
fn guard(address: SocketAddr) -> io::Result<(Socket, bool)> {
    const TRIES: u32 = 50;
    const PAUSE: Duration = Duration::from_millis(20);
    let mut tries = 0;
    loop {
        let bound = tcp(address, false).and_then(|bound| bound.0.listen(1).map(|()| bound));
        match bound {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries < TRIES => {
                tries += 1;
                thread::sleep(PAUSE);
            }
            other => return other,
        }
    }
}

/// Listens on an address of its own, for checks of health. An address that this host does not have yet is
/// served as soon as it has.
///
/// # Errors
/// The address is no address to listen on, or it is in use.
pub fn listen_alone(address: &str) -> io::Result<Socket> {
    let address = listen_socket(address).ok_or(io::ErrorKind::InvalidInput)?;
    let (socket, _) = tcp(address, false)?;
    socket.listen(CHECKS)?;
    Ok(socket)
}

/// A bound socket, and whether this host does not have the address yet. A load balancer's address may move
/// between hosts, and is served as soon as it is here.
fn tcp(address: SocketAddr, shared: bool) -> io::Result<(Socket, bool)> {
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
    // Accepted sockets inherit this option.
    socket.set_tcp_nodelay(true)?;
    let is_awaited = match socket.bind(&address.into()) {
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            match address {
                SocketAddr::V4(_) => socket.set_freebind_v4(true)?,
                SocketAddr::V6(_) => socket.set_freebind_v6(true)?,
            }
            socket.bind(&address.into())?;
            true
        }
        bound => {
            bound?;
            false
        }
    };
    Ok((socket, is_awaited))
}

/// Listens on a socket that this process has inherited, which is bound, and may listen already. The
/// descriptor stays open, so that the socket can be used again after a drain.
fn inherit(number: &str, options: &SocketOptions, workers: usize) -> io::Result<ListenSockets> {
    let invalid = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
    let number = number.parse().map_err(|_| invalid("expected fd:NUMBER"))?;
    let socket = inherited(number)?;
    let address = socket.local_addr()?;
    let address = address
        .as_socket()
        .ok_or_else(|| invalid("the socket is none of TCP"))?;
    if address.port() == 0 {
        return Err(invalid("the socket is not bound to a port"));
    }
    socket.set_nonblocking(true)?;
    socket.set_cloexec(true)?;
    // Accepted sockets inherit this option.
    socket.set_tcp_nodelay(true)?;
    look_after(&socket, options)?;
    socket.listen(options.backlog)?;
    // All workers accept from the same socket.
    let sockets = (0..workers)
        .map(|_| socket.try_clone())
        .collect::<io::Result<_>>()?;
    Ok(ListenSockets {
        address: address.to_string(),
        sockets,
        is_awaited: false,
    })
}

fn bind_unix(
    path: &str,
    permissions: &Permissions,
    options: &SocketOptions,
    workers: usize,
) -> io::Result<ListenSockets> {
    clear(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    // The permissions are set before any client can connect.
    permit(path, permissions).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })?;
    socket.listen(options.backlog)?;
    // Unix sockets cannot share a path: all workers accept from the same one.
    let sockets = (0..workers)
        .map(|_| socket.try_clone())
        .collect::<io::Result<_>>()?;
    Ok(ListenSockets {
        address: format!("unix:{path}"),
        sockets,
        is_awaited: false,
    })
}

/// Removes a socket that a killed process has left behind; nothing else is ever removed.
fn clear(path: &str) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "a file that is not a socket is there and is not replaced; choose another path",
            ));
        }
        Ok(_) => {}
    }
    // A listener whose queue is full is alive, too: it must not be waited for.
    let probe = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    match probe.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        _ => Err(io::ErrorKind::AddrInUse.into()),
    }
}

/// Gives a Unix socket its owner and mode.
///
/// # Errors
/// There is no such user or group, or the file may not be given to them.
pub fn permit(path: &str, permissions: &Permissions) -> io::Result<()> {
    if let Some(owner) = &permissions.owner {
        let user = owner
            .user
            .as_ref()
            .map(|user| number(user, "/etc/passwd", "user"));
        let group = owner
            .group
            .as_ref()
            .map(|group| number(group, "/etc/group", "group"));
        chown(path, user.transpose()?, group.transpose()?).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot set the owner of the socket file: {error}"),
            )
        })?;
    }
    match permissions.mode {
        Some(mode) => fs::set_permissions(path, fs::Permissions::from_mode(mode)),
        None => Ok(()),
    }
}

/// The number of a user or group from a file with lines of `NAME:…:NUMBER:…`.
fn number(id: &Id, file: &str, what: &str) -> io::Result<u32> {
    let name = match id {
        Id::Number(number) => return Ok(*number),
        Id::Name(name) => name,
    };
    let lines = fs::read_to_string(file)?;
    let found = lines.lines().find_map(|line| {
        let mut columns = line.split(':');
        let is_it = columns.next() == Some(name);
        columns.nth(1)?.parse().ok().filter(|_| is_it)
    });
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("{file} has no {what} `{name}`"));
    found.ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::{Domain, Permissions, Protocol, Socket, SocketOptions, Type, io};

    fn bind(address: &str, workers: usize) -> io::Result<super::ListenSockets> {
        super::bind(
            address,
            &Permissions::default(),
            &SocketOptions::default(),
            workers,
        )
    }

    #[test]
    fn clients_that_are_silent_are_looked_after_unless_a_door_says_otherwise() {
        for keepalive in [true, false] {
            let options = SocketOptions {
                keepalive,
                ..SocketOptions::default()
            };
            let bound = super::bind("127.0.0.1:0", &Permissions::default(), &options, 1).unwrap();
            let _client = std::net::TcpStream::connect(&bound.address).unwrap();
            let (accepted, _) = bound.sockets[0].accept().unwrap();
            assert_eq!(accepted.keepalive().unwrap(), keepalive);
            if keepalive {
                assert_eq!(accepted.tcp_keepalive_time().unwrap(), super::SILENCE);
            }
        }
    }

    #[test]
    fn a_second_instance_is_refused() {
        let first = bind("127.0.0.1:0", 2).unwrap();
        assert_eq!(first.sockets.len(), 2);
        let error = bind(&first.address, 2).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_second_instance_is_welcome_where_the_address_is_shared() {
        let bind = |address: &str, shared| {
            let options = SocketOptions {
                shared,
                ..SocketOptions::default()
            };
            super::bind(address, &Permissions::default(), &options, 1)
        };
        let first = bind("127.0.0.1:0", true).unwrap();
        assert!(bind(&first.address, true).is_ok());
        assert!(bind(&first.address, false).is_err());
    }

    #[test]
    fn an_inherited_socket_is_listened_on_by_every_worker() {
        use std::os::fd::AsRawFd as _;

        let given = Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP)).unwrap();
        let address = |socket: &Socket| format!("fd:{}", socket.as_raw_fd());
        assert!(bind(&address(&given), 1).is_err(), "it has no port");
        let any: std::net::SocketAddr = "[::]:0".parse().unwrap();
        given.bind(&any.into()).unwrap();
        for _ in 0..2 {
            let bound = bind(&address(&given), 2).unwrap();
            assert_eq!(bound.sockets.len(), 2);
            let port = bound.address.rsplit(':').next().unwrap();
            std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
            std::net::TcpStream::connect(format!("[::1]:{port}")).unwrap();
        }
        let (unix, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        for bad in [
            format!("fd:{}", unix.as_raw_fd()),
            "fd:9999".into(),
            "fd:0x".into(),
            "fd:-1".into(),
        ] {
            assert!(bind(&bad, 1).is_err(), "{bad}");
        }
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

    #[test]
    fn files_that_are_no_sockets_are_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "precious").unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        for name in ["file", "folder", "link"] {
            let error = bind(&format!("unix:{}", path(name).display()), 1).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{name}");
        }
        assert_eq!(std::fs::read_to_string(path("link")).unwrap(), "precious");
    }
}
