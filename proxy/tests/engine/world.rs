//! Plays the reactor, the clients and the servers around an engine. It does what a worker does in a turn,
//! without sockets and with a clock of its own.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::Path,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use proxima::{
    client::Register,
    config::{self, schema::Config},
    copies::{Holder, KeyLocks},
    embedded::store::{self, Store},
    engine::{Endpoint, Engine, Facts},
    fleet::{Slot, Stay},
    members::{OwnLocation, Registry},
    micros::Micros,
    near::{Near, Rules},
    peers::Role,
    protocol::Protocols,
    reactor::Conn,
    route::{CompileError, Compiler, Tree},
    stream::Stream,
};

/// One end of a connection that the engine believes it has.
pub(crate) struct Seat {
    pub(crate) peer: Endpoint,
    /// The member, if this is a lane.
    pub(crate) member: String,
    /// Bytes that the engine has sent and no test has taken.
    pub(crate) heard: Vec<u8>,
    /// Bytes that the socket has taken and the peer has not.
    pub(crate) backlog: Vec<u8>,
    /// Whether the peer takes nothing.
    pub(crate) frozen: bool,
    /// Whether the engine has paused receiving.
    pub(crate) paused: bool,
    /// Whether the engine has closed it; `Some(true)`: with a reset.
    pub(crate) closed: Option<bool>,
}

/// An engine and everything around it.
pub(crate) struct World {
    pub(crate) engine: Engine,
    /// Another worker of the process, which locks keys.
    pub(crate) rival: Rc<Holder>,
    /// The seats, by the number in their `Conn`.
    pub(crate) seats: Vec<Seat>,
    /// Members that refuse connections.
    pub(crate) down: HashSet<String>,
    /// Members that do not answer a connection.
    pub(crate) unreachable: HashSet<String>,
    /// Members whose lanes get no descriptor.
    pub(crate) short: HashSet<String>,
    /// Members that take no bytes, from their next lane on.
    pub(crate) frozen: HashSet<String>,
    /// The answers to `version` of members that are not memcached 1.6.18.
    pub(crate) versions: HashMap<String, String>,
    watched: Vec<usize>,
}

/// A world with one listener that enters `route`, and with the pools `p` (servers a, b, c) and `q` (d).
pub(crate) fn world(route: &str) -> World {
    world_of(&format!(
        "pools:\n  p: {{servers: [{}], eject: {{failures: 0}}}}\n  q: {{servers: [{}], eject: {{failures: 0}}}}\n\
         routes: {{main: {route}}}\nlisteners: [{{address: \"127.0.0.1:1\", route: main}}]\n",
        "{address: 10.0.0.1:1, name: a}, {address: 10.0.0.2:1, name: b}, {address: 10.0.0.3:1, name: c}",
        "{address: 10.0.0.4:1, name: d}",
    ))
}

/// A world of a whole configuration.
pub(crate) fn world_of(yaml: &str) -> World {
    let config = config::parse(yaml, Path::new("test"))
        .unwrap_or_else(|error| panic!("{error}\n{yaml}"))
        .config;
    world_from(&config)
}

/// A world of a configuration that has been read.
pub(crate) fn world_from(config: &Config) -> World {
    worker_of(config, 0, Arc::new(KeyLocks::new(2, [1, 2, 3, 4])))
}

/// One of two workers of a process, which share key locks.
pub(crate) fn worker_of(config: &Config, worker: usize, locks: Arc<KeyLocks>) -> World {
    let store = Arc::new(Store::new(store::Limits::default(), [1, 2, 3, 4]));
    let facts = Facts {
        pid: 1,
        start: Micros::secs(1_700_000_000),
        workers: 2,
        worker,
    };
    let register = Arc::new(Register::new(2));
    let rival = Holder::new(Arc::clone(&locks), 1 - worker);
    let mut engine = Engine::new(config.limits.clone(), store, register, locks, facts, 7);
    engine.tree = Rc::new(tree(config));
    World {
        engine,
        rival,
        seats: Vec::new(),
        down: HashSet::new(),
        unreachable: HashSet::new(),
        short: HashSet::new(),
        frozen: HashSet::new(),
        versions: HashMap::new(),
        watched: Vec::new(),
    }
}

fn tree(config: &Config) -> Tree {
    compiled(config).unwrap()
}

/// The tree of a configuration, which keeps no replies.
pub(crate) fn compiled(config: &Config) -> Result<Tree, CompileError> {
    keeping(config, None)
}

/// The tree of a configuration, whose replies are kept there by these rules.
pub(crate) fn keeping(config: &Config, near: Option<(Arc<Near>, Rules)>) -> Result<Tree, CompileError> {
    let servers: BTreeMap<_, _> = config
        .pools
        .iter()
        .filter_map(|(name, pool)| {
            let servers = pool.source.fixed().or_else(|| pool.source.own());
            Some((name.clone(), servers?.to_vec()))
        })
        .collect();
    let mut registry = Registry::new(OwnLocation::new(&[], None));
    let listeners: Vec<String> = config
        .listeners
        .iter()
        .map(|listener| listener.address.clone())
        .collect();
    let mut compiler = Compiler::new(config, &servers, &mut registry, Protocols::PLAIN, "test", 1)?;
    compiler.keep_replies(near);
    Ok(compiler.tree(&mut registry, &listeners)?.tree)
}

/// The values of this key that servers hold, each of which is a world of its own.
pub(crate) fn held(servers: &mut [World], key: &str) -> Vec<String> {
    let ask = |server: &mut World| {
        let seat = server.client();
        server.say(seat, format!("get {key}\r\n").as_bytes());
        server.heard(seat)
    };
    servers.iter_mut().map(ask).collect()
}

/// Asserts that no two of these servers hold different values of a key. One that was repaired may lack it.
pub(crate) fn check_equal(servers: &mut [World], keys: &[&str]) {
    for key in keys {
        let mut held = held(servers, key);
        held.retain(|copy| copy != "END\r\n");
        held.dedup();
        let short: Vec<&str> = held.iter().map(|copy| &copy[..copy.len().min(40)]).collect();
        assert!(held.len() <= 1, "{key}: {short:?}");
    }
}

impl World {
    fn seat(&mut self, peer: Endpoint, member: &str) -> usize {
        let number = self.seats.len();
        let frozen = self.frozen.contains(member);
        let member = member.to_owned();
        let (heard, backlog) = (Vec::new(), Vec::new());
        self.seats.push(Seat {
            peer,
            member,
            heard,
            backlog,
            frozen,
            paused: false,
            closed: None,
        });
        self.engine.attach(peer, Conn::new(number as u32, 0));
        number
    }

    /// Connects a client to the first listener, and returns its seat.
    pub(crate) fn client(&mut self) -> usize {
        self.client_of(0)
    }

    /// Connects a client to this listener.
    pub(crate) fn client_of(&mut self, listener: u16) -> usize {
        let peer = self.engine.open_client(listener).expect("a listener");
        self.seat(peer, "")
    }

    /// A link to a worker of a peer is there. Returns its seat.
    pub(crate) fn link(&mut self, (slot, stay): (Slot, Stay), role: Role) -> usize {
        let opened = self.engine.open_link(slot, stay, role, Stream::default());
        let id = opened.expect("a fleet");
        let seat = self.seat(Endpoint::Link(id), "");
        self.engine.link_opened(id);
        self.turn();
        seat
    }

    /// Lets bytes arrive from a client or server, and ends the turn.
    pub(crate) fn say(&mut self, seat: usize, bytes: &[u8]) {
        match self.seats[seat].peer {
            Endpoint::Client(id) => self.engine.client_bytes(id, bytes),
            Endpoint::Lane(id) => self.engine.lane_bytes(id, bytes),
            Endpoint::Link(id) => self.engine.link_bytes(id, bytes),
        }
        self.turn();
    }

    /// Lets the peer close its side.
    pub(crate) fn leave(&mut self, seat: usize) {
        match self.seats[seat].peer {
            Endpoint::Client(id) => self.engine.client_eof(id),
            Endpoint::Lane(id) => self.engine.lane_failed(id, None),
            Endpoint::Link(id) => self.engine.link_failed(id, None),
        }
        self.turn();
    }

    /// Lets the member end this connection and the one on which it is asked again.
    pub(crate) fn leave_twice(&mut self, member: &str) {
        self.leave(self.lane(member));
        let is_open = |seat: &Seat| seat.member == member && seat.closed.is_none();
        if self.seats.iter().any(is_open) {
            self.leave(self.lane(member));
        }
    }

    /// Lets the member end the connection and make no more.
    pub(crate) fn die(&mut self, member: &str) {
        self.down.insert(member.to_owned());
        self.leave(self.lane(member));
    }

    /// Breaks the client's connection.
    pub(crate) fn reset(&mut self, seat: usize) {
        if let Endpoint::Client(id) = self.seats[seat].peer {
            self.engine.client_failed(id);
        }
        self.turn();
    }

    /// Gives the engine another configuration.
    pub(crate) fn reload(&mut self, yaml: &str) {
        let config = config::parse(yaml, Path::new("test")).unwrap().config;
        self.engine.tree = Rc::new(tree(&config));
    }

    /// The newest open lane to a member.
    pub(crate) fn lane(&self, member: &str) -> usize {
        let mut lanes = self.seats.iter().enumerate().rev();
        let found = lanes.find(|(_, seat)| seat.member == member && seat.closed.is_none());
        found.unwrap_or_else(|| panic!("no lane to {member}")).0
    }

    /// All lanes to a member, closed ones included.
    pub(crate) fn lanes(&self, member: &str) -> Vec<usize> {
        (0..self.seats.len())
            .filter(|&seat| self.seats[seat].member == member)
            .collect()
    }

    /// Lets a member send this on its newest lane.
    pub(crate) fn reply(&mut self, member: &str, text: &str) {
        let lane = self.lane(member);
        self.say(lane, text.as_bytes());
    }

    /// Takes the bytes that a seat has received.
    pub(crate) fn heard(&mut self, seat: usize) -> String {
        String::from_utf8(std::mem::take(&mut self.seats[seat].heard)).unwrap()
    }

    /// Takes the bytes that a member has received on all its lanes.
    pub(crate) fn sent(&mut self, member: &str) -> String {
        self.lanes(member)
            .into_iter()
            .map(|lane| self.heard(lane))
            .collect()
    }

    /// Lets time pass, and checks time-outs as often as a worker does.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.engine.now + time.into();
        while self.engine.now < end {
            self.engine.now = (self.engine.now + Micros::millis(50)).min(end);
            self.engine.run_timers();
            self.engine.check_room();
            let seats = &self.seats;
            let backlog = |conn| find(seats, conn).map_or(0, |seat| seats[seat].backlog.len());
            self.engine.check_lanes(&backlog, &|_| 0);
            self.engine.check_clients(&backlog, &|_| 0);
            self.engine.check_fleet();
            self.turn();
        }
    }

    /// Lets a frozen peer take some of its bytes.
    pub(crate) fn drip(&mut self, seat: usize, bytes: usize) {
        let seat = &mut self.seats[seat];
        let taken: Vec<u8> = seat.backlog.drain(..bytes.min(seat.backlog.len())).collect();
        seat.heard.extend(taken);
        if seat.backlog.is_empty() {
            let peer = seat.peer;
            self.drained(peer);
            self.flush(peer);
            self.turn();
        }
    }

    /// Lets a frozen peer take all of its bytes.
    pub(crate) fn thaw(&mut self, number: usize) {
        let seat = &mut self.seats[number];
        seat.frozen = false;
        seat.heard.append(&mut seat.backlog);
        let peer = seat.peer;
        self.log_in(number);
        self.drained(peer);
        self.turn();
    }

    /// Whether no request waits for anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.engine.router.is_empty() && self.engine.copies.is_idle()
    }

    /// Ends a turn as a worker does, and repeats that while the engine asks for another turn.
    pub(crate) fn turn(&mut self) {
        loop {
            self.engine.check_openings();
            self.engine.release_parked();
            for seat in std::mem::take(&mut self.watched) {
                if self.seats[seat].backlog.is_empty() {
                    self.drained(self.seats[seat].peer);
                }
            }
            for client in std::mem::take(&mut self.engine.actions.again) {
                self.engine.serve_again(client);
            }
            self.engine.read_on();
            self.apply_actions();
            let actions = &self.engine.actions;
            let is_over = self.watched.is_empty() && actions.again.is_empty() && actions.flush.is_empty();
            if is_over && !self.engine.has_woken_lanes() {
                return;
            }
        }
    }

    fn drained(&mut self, peer: Endpoint) {
        match peer {
            Endpoint::Client(client) => {
                self.engine.client_drained(client);
                self.engine.actions.flush.push(peer);
            }
            Endpoint::Lane(lane) => self.engine.lane_drained(lane),
            Endpoint::Link(_) => self.engine.actions.flush.push(peer),
        }
    }

    fn apply_actions(&mut self) {
        while let Some(id) = self.engine.actions.connect.pop() {
            let Some(lane) = self.engine.servers.lane(id) else {
                continue;
            };
            let member = lane.member.name.clone();
            self.seat(Endpoint::Lane(id), &member);
            if self.short.contains(&member) {
                let error = std::io::Error::from_raw_os_error(libc::EMFILE);
                self.engine.lane_failed(id, Some(&error));
            } else if self.down.contains(&member) {
                let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
                self.engine.lane_failed(id, Some(&refused));
            } else if !self.unreachable.contains(&member) {
                self.engine.lane_connected(id);
            }
        }
        for peer in std::mem::take(&mut self.engine.actions.flush) {
            self.flush(peer);
        }
        self.engine.settle_room();
        for (conn, pause) in std::mem::take(&mut self.engine.actions.pause) {
            let seat = find(&self.seats, conn).unwrap();
            self.seats[seat].paused = pause;
        }
        for (conn, abort) in std::mem::take(&mut self.engine.actions.close) {
            let seat = find(&self.seats, conn).unwrap();
            self.seats[seat].closed = Some(abort);
        }
    }

    /// Answers the question for the version for a server that holds no copy, or the greeting of Redis.
    fn log_in(&mut self, number: usize) {
        let seat = &mut self.seats[number];
        let Endpoint::Lane(id) = seat.peer else {
            return;
        };
        let lane = self.engine.servers.lane(id);
        let logs_in = lane.is_some_and(|lane| lane.logs_in() && !lane.member.is_copy());
        if logs_in && seat.heard.starts_with(b"*4\r\n$5\r\nHELLO\r\n") {
            seat.heard.clear();
            self.engine.lane_bytes(id, b"+OK\r\n");
        } else if logs_in && seat.heard == b"version\r\n" {
            seat.heard.clear();
            let version = self
                .versions
                .get(&seat.member)
                .map_or("VERSION 1.6.18\r\n", String::as_str);
            self.engine.lane_bytes(id, version.as_bytes());
        }
    }

    fn flush(&mut self, peer: Endpoint) {
        let Some(stream) = self.engine.stream(peer) else {
            return;
        };
        stream.dirty = false;
        let Some(conn) = stream.conn else { return };
        let number = find(&self.seats, conn).unwrap();
        let seat = &mut self.seats[number];
        if !seat.backlog.is_empty() {
            // The socket takes nothing more, so the bytes stay with the engine.
            let unsent = seat.backlog.len();
            if let Endpoint::Client(id) = peer {
                self.engine.charge(id, unsent);
            }
            return;
        }
        let kept = match peer {
            Endpoint::Lane(id) if self.engine.keeps_sent(id) => Some(id),
            _ => None,
        };
        let stream = self.engine.stream(peer).unwrap();
        let out = match kept {
            Some(_) => stream.unsent().to_vec(),
            None => std::mem::take(&mut stream.out),
        };
        if let Some(id) = kept {
            self.engine.note_sent(id);
        }
        let sent = !out.is_empty();
        let seat = &mut self.seats[number];
        if seat.frozen {
            seat.backlog = out;
        } else {
            seat.heard.extend_from_slice(&out);
        }
        let blocked = !seat.backlog.is_empty();
        let unsent = seat.backlog.len();
        self.log_in(number);
        match peer {
            Endpoint::Client(id) => {
                self.engine.charge(id, unsent);
                let finished = self.engine.is_finished(id);
                if finished && !blocked {
                    self.engine.client_failed(id);
                } else if sent && !blocked && self.engine.is_awaited(id) {
                    self.watched.push(number);
                }
            }
            Endpoint::Link(_) => {}
            Endpoint::Lane(id) => {
                if sent
                    && !blocked
                    && self
                        .engine
                        .servers
                        .lane(id)
                        .is_some_and(|lane| lane.is_uploading())
                {
                    self.watched.push(number);
                }
            }
        }
    }
}

fn find(seats: &[Seat], conn: Conn) -> Option<usize> {
    (0..seats.len()).find(|&seat| Conn::new(seat as u32, 0) == conn)
}
