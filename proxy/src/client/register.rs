//! The clients of this process, for `stats conns`. A proxy that flushes the embedded store as a member must
//! be able to see that its old connections are gone. The register is touched when a client comes or goes, and
//! by no request for a key.
#![allow(
    clippy::disallowed_types,
    reason = "touched when a client comes or goes, never by a request"
)]

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use super::stats::Tally;
use crate::embedded::{Connection, Connections};
use crate::protocol::{ConnectionFacts, LoginCache, UserConnections};

/// The clients of all workers. Each worker has a part of its own, so that accepting takes no contended lock.
#[derive(Debug)]
pub struct Register {
    parts: Vec<WorkerClients>,
    /// The number of clients for which there are descriptors.
    room: AtomicU64,
    /// The addresses where clients are accepted, by the number of the listener; `None`: the listener was
    /// removed.
    listening: Mutex<Vec<Option<Arc<str>>>>,
    /// The answers to clients that ask for the proxies that they may use, by the number of the listener.
    announced: Mutex<Vec<Announcements>>,
    pub(super) tally: Tally,
    /// The number of connections of each user.
    pub(super) user_connections: Arc<UserConnections>,
    /// Logins that servers have accepted.
    pub logins: Arc<LoginCache>,
}

/// The answers to clients of one listener that ask for the proxies that they may use: one for each form that
/// their protocol has.
pub type Announcements = Vec<Vec<u8>>;

#[derive(Debug, Default)]
struct WorkerClients {
    total: AtomicU64,
    current: AtomicU64,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    clients: HashMap<u32, Client>,
    /// The addresses of this host to which clients have connected.
    hosts: Vec<IpAddr>,
}

/// A client that has come.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The number of the listener.
    pub listener: u16,
    /// The address of the client; `None` for a client of a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The address of this host to which it has connected; `None` for that of the listener.
    pub host: Option<IpAddr>,
    /// The number of the connection's descriptor.
    pub descriptor: i32,
}

#[derive(Clone, Copy, Debug)]
struct Client {
    /// The address of the client; `None` for a client of a Unix socket.
    peer: Option<SocketAddr>,
    listener: u16,
    /// The position of the host's address among those of the part; a host has few.
    host: u16,
    descriptor: i32,
}

/// Formats an address as memcached does: `tcp:127.0.0.1:11211`, `tcp6:[::1]:11211`, `unix:/path`.
fn shown(address: &str) -> String {
    match address.as_bytes() {
        [b'u', ..] => address.to_owned(),
        [b'[', ..] => format!("tcp6:{address}"),
        _ => format!("tcp:{address}"),
    }
}

impl Register {
    /// A register for this number of workers, without clients.
    pub fn new(workers: usize) -> Self {
        Self {
            parts: (0..workers).map(|_| WorkerClients::default()).collect(),
            room: AtomicU64::new(u64::MAX),
            listening: Mutex::default(),
            announced: Mutex::default(),
            tally: Tally::new(workers),
            user_connections: Arc::default(),
            logins: Arc::default(),
        }
    }

    /// Sets the number of clients for which there are descriptors.
    pub fn set_room(&self, clients: u64) {
        self.room.store(clients, Relaxed);
    }

    /// Returns whether there are descriptors for one more client.
    pub fn has_room(&self) -> bool {
        self.current() < self.room.load(Relaxed)
    }

    /// Sets the addresses where clients are accepted, by the number of the listener; `None` for a listener
    /// that was removed.
    pub fn listening(&self, addresses: &[Option<String>]) {
        let address = |address: &Option<String>| address.as_deref().map(|address| shown(address).into());
        let addresses = addresses.iter().map(address).collect();
        *self.listening.lock().unwrap_or_else(PoisonError::into_inner) = addresses;
    }

    /// Sets what clients are told of the proxies that they may use, by the number of the listener.
    pub fn announce(&self, answers: Vec<Announcements>) {
        *self.announced.lock().unwrap_or_else(PoisonError::into_inner) = answers;
    }

    /// Puts what the clients of this listener are told, in one of the forms of their protocol, in the place
    /// of `out`, if it is known.
    pub(super) fn announced(&self, listener: u16, form: u16, out: &mut Vec<u8>) {
        let announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = announced.get(usize::from(listener));
        if let Some(answer) = answers.and_then(|answers| answers.get(usize::from(form))) {
            out.clear();
            out.extend_from_slice(answer);
        }
    }

    /// The worker with the fewest clients.
    pub fn least_busy(&self) -> usize {
        let clients = |part: &WorkerClients| part.current.load(Relaxed);
        self.parts
            .iter()
            .enumerate()
            .min_by_key(|(_, part)| clients(part))
            .map_or(0, |(worker, _)| worker)
    }

    /// Counts a client that is on its way to this worker. It is counted at once, so that the next one goes
    /// elsewhere.
    pub fn expect(&self, worker: usize) {
        if let Some(part) = self.parts.get(worker) {
            part.current.fetch_add(1, Relaxed);
        }
    }

    /// Notes that the expected client has arrived. From now on it is counted like every other.
    pub fn arrived(&self, worker: usize) {
        if let Some(part) = self.parts.get(worker) {
            part.current.fetch_sub(1, Relaxed);
        }
    }

    /// Adds a client that has come.
    pub fn opened(&self, worker: usize, client: u32, arrival: Arrival) {
        const MOST_HOSTS: usize = 1024;
        let Some(part) = self.parts.get(worker) else {
            return;
        };
        part.total.fetch_add(1, Relaxed);
        part.current.fetch_add(1, Relaxed);
        let mut open = part.open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open.hosts.iter().position(|&host| Some(host) == arrival.host);
        let host = known.unwrap_or(open.hosts.len());
        if let Some(new) = arrival.host
            && host == open.hosts.len()
            && host < MOST_HOSTS
        {
            open.hosts.push(new);
        }
        let entry = Client {
            peer: arrival.peer,
            listener: arrival.listener,
            host: host as u16,
            descriptor: arrival.descriptor,
        };
        open.clients.insert(client, entry);
    }

    /// The known facts about the connection of this client.
    pub(super) fn facts(&self, worker: usize, client: u32) -> ConnectionFacts {
        let found = self.parts.get(worker).and_then(|part| {
            let open = part.open.lock().unwrap_or_else(PoisonError::into_inner);
            let client = *open.clients.get(&client)?;
            let host = client.peer.and(open.hosts.get(usize::from(client.host)).copied());
            Some((client, host))
        });
        let Some((client, host)) = found else {
            return ConnectionFacts::default();
        };
        let listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        let address = listening
            .get(usize::from(client.listener))
            .and_then(Option::as_deref);
        // `tcp:`, `tcp6:` or `unix:` stands before it.
        let address = address
            .and_then(|shown| shown.split_once(':'))
            .map_or("", |(_, address)| address);
        let local = match (host, address.parse::<SocketAddr>()) {
            (Some(host), Ok(at)) => SocketAddr::new(host, at.port()).to_string(),
            _ => address.to_owned(),
        };
        ConnectionFacts {
            peer: client.peer,
            local,
            descriptor: client.descriptor,
            ..ConnectionFacts::default()
        }
    }

    /// Removes a client that has gone.
    pub fn closed(&self, worker: usize, client: u32) {
        let Some(part) = self.parts.get(worker) else {
            return;
        };
        part.current.fetch_sub(1, Relaxed);
        part.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clients
            .remove(&client);
    }
}

impl Connections for Register {
    fn current(&self) -> u64 {
        self.parts.iter().map(|part| part.current.load(Relaxed)).sum()
    }

    fn total(&self) -> u64 {
        self.parts.iter().map(|part| part.total.load(Relaxed)).sum()
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let of_commands = ["cmd_", "_hits", "_misses", "_badval"];
        let rows = self.tally.rows();
        rows.filter(|(name, _)| !of_commands.iter().any(|part| name.contains(part)))
            .collect()
    }

    fn reset_counts(&self) {
        self.tally.reset();
    }

    fn each(&self, show: &mut dyn FnMut(&Connection<'_>)) {
        let listening = self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for (id, address) in listening.iter().enumerate() {
            if let Some(address) = address {
                show(&Connection {
                    id: id as u64,
                    address,
                    listener: None,
                    state: "conn_listening",
                    idle: 0,
                });
            }
        }
        for (worker, part) in self.parts.iter().enumerate() {
            let open = part.open.lock().unwrap_or_else(PoisonError::into_inner);
            for (&index, client) in &open.clients {
                let id = (worker as u64 + 1) << 32 | u64::from(index);
                let listener = listening
                    .get(usize::from(client.listener))
                    .and_then(Option::as_deref);
                let peer = client.peer.map(|peer| shown(&peer.to_string()));
                show(&Connection {
                    id,
                    address: peer.as_deref().unwrap_or("unix:"),
                    listener,
                    state: "conn_read",
                    idle: 0,
                });
            }
        }
    }
}
