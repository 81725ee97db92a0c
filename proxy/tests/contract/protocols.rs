//! Two protocols in one worker.

use std::{
    io::{Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use proxima::{protocol::Protocols, protocols::Memcache, route::CompileError};

use crate::{
    client::Client,
    lines::Lines,
    proxy::{PATIENT, Proxy, Served, back_ends},
    server::{self, PASSWORD},
};

static LINES: Lines = Lines::new(PASSWORD);
static BOTH: Protocols = Protocols::new(&[&LINES, &Memcache::PLAIN]);

/// A memcached on a Unix socket, which ends with the test.
struct Memcached(Child);

impl Memcached {
    fn start(socket: &Path) -> Self {
        let child = Command::new("memcached")
            .args(["-u", "root", "-t", "1", "-s"])
            .arg(socket)
            .stderr(Stdio::null())
            .spawn()
            .expect("memcached is installed");
        while UnixStream::connect(socket).is_err() {
            thread::sleep(Duration::from_millis(10));
        }
        Self(child)
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn lines<'a>(pool: &'a str, route: &'a str) -> Served<'a> {
    Served {
        protocol: "lines",
        pool,
        servers: vec![server::start("one").to_string()],
        route,
        settings: PATIENT,
        listener: "",
    }
}

fn memcached<'a>(socket: &Path, route: &'a str) -> Served<'a> {
    Served {
        protocol: "memcached",
        pool: "m",
        servers: vec![format!("unix:{}", socket.display())],
        route,
        settings: PATIENT,
        listener: "",
    }
}

fn ask(stream: &mut TcpStream, request: &str, length: usize) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = vec![0; length];
    stream.read_exact(&mut reply).unwrap();
    String::from_utf8(reply).unwrap()
}

#[test]
fn clients_of_two_protocols_are_each_served_in_their_own() {
    for io in back_ends() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _memcached = Memcached::start(&socket);
        // These routes open flights, so that replies go through the tree as well.
        let served = [
            lines("p", "{failover: p}"),
            memcached(&socket, "{modify_key: {child: m, ensure_prefix: x}}"),
        ];
        let proxy = Proxy::start(io, BOTH, &served).unwrap();
        let mut line = Client::new(proxy.addresses[0]);
        let mut cache = TcpStream::connect(proxy.addresses[1]).unwrap();
        cache.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        for number in 0..20 {
            assert_eq!(line.ask(&format!("PUT k v{number}")).unwrap(), "+");
            let set = format!("set k 0 0 2\r\n{number:02}\r\n");
            assert_eq!(ask(&mut cache, &set, 8), "STORED\r\n");
            let got = line.ask("GET k").unwrap();
            assert_eq!(got, format!("= v{number} of one"));
            let expected = format!("VALUE k 0 2\r\n{number:02}\r\nEND\r\n");
            assert_eq!(ask(&mut cache, "get k\r\n", expected.len()), expected);
        }
        assert_eq!(ask(&mut cache, "GET k\r\n", 7), "ERROR\r\n");
        assert_eq!(line.ask("get k").unwrap(), "? no such command");
        // Each command is counted under its own protocol.
        let asked = proxy.metrics().requests;
        let count = |of, name| {
            let mut all = BOTH.commands().zip(&asked);
            let found = all.find(|((protocol, command), _)| {
                protocol.name() == of && protocol.command_name(*command) == name
            });
            found.map_or(0, |(_, &count)| count)
        };
        let counts = ["GET", "PUT", "MANY"].map(|name| count("lines", name));
        assert_eq!(counts, [20, 20, 0]);
        assert_eq!(
            ["get", "set", "gets"].map(|name| count("memcached", name)),
            [20, 20, 0]
        );
    }
}

#[test]
fn a_route_that_joins_two_protocols_is_refused() {
    let socket = Path::new("/nowhere");
    let served = [lines("p", "{all_sync: [p, m]}"), memcached(socket, "m")];
    match Proxy::start("epoll", BOTH, &served).map(|_| ()) {
        Err(CompileError::TwoProtocols {
            listener,
            pool,
            other,
        }) => {
            assert_eq!((listener, pool.as_str(), other), ("lines", "m", "memcached"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_configuration_that_asks_for_what_a_protocol_lacks_is_refused() {
    let copies = Served {
        settings: "replicated: true",
        ..lines("p", "p")
    };
    let embedded = lines("p", "{failover: [p, embedded]}");
    for (served, words) in [
        (copies, "pool p cannot be replicated: lines has no copies"),
        (embedded, "the embedded store does not speak lines"),
    ] {
        let refused = Proxy::start("epoll", BOTH, &[served]).map(|_| ()).unwrap_err();
        assert_eq!(refused.to_string(), words);
    }
}

#[test]
fn a_protocol_that_the_process_does_not_speak_is_refused() {
    let served = [memcached(Path::new("/nowhere"), "m")];
    static ALONE: Protocols = Protocols::new(&[&LINES]);
    let refused = Proxy::start("epoll", ALONE, &served).map(|_| ());
    assert!(
        matches!(refused, Err(CompileError::Protocol("memcached"))),
        "{refused:?}"
    );
}
