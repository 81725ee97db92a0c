//! Who is connected to this process, for `stats conns`: a proxy that flushes the embedded store as a member must be able to
//! see that its old connections are gone. Touched when a client comes or goes, never by a request.
#![allow(
    clippy::disallowed_types,
    reason = "touched when a client comes or goes, never by a request"
)]

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use crate::near::embedded::{Connection, Connections};

/// One part for each worker, so that accepting takes no contended lock.
#[derive(Debug)]
pub struct Register {
    parts: Vec<Part>,
    /// Clients for which there are descriptors.
    room: AtomicU64,
    listening: Mutex<Vec<String>>,
}

#[derive(Debug, Default)]
struct Part {
    total: AtomicU64,
    current: AtomicU64,
    /// Peer and listener of each client of a listener that leads straight to the embedded store.
    open: Mutex<HashMap<u32, (String, Arc<str>)>>,
}

/// An address as memcached shows it: `tcp:127.0.0.1:11211`, `tcp6:[::1]:11211`, `unix:/path`.
pub fn shown(address: &str) -> String {
    match address.as_bytes() {
        [b'u', ..] => address.to_owned(),
        [b'[', ..] => format!("tcp6:{address}"),
        _ => format!("tcp:{address}"),
    }
}

impl Register {
    pub fn new(workers: usize) -> Self {
        Self {
            parts: (0..workers).map(|_| Part::default()).collect(),
            room: AtomicU64::new(u64::MAX),
            listening: Mutex::default(),
        }
    }

    /// There are descriptors for so many clients.
    pub fn set_room(&self, clients: u64) {
        self.room.store(clients, Relaxed);
    }

    /// Are there descriptors for one more client?
    pub fn has_room(&self) -> bool {
        self.current() < self.room.load(Relaxed)
    }

    /// The addresses where clients are accepted.
    pub fn listening<'a>(&self, addresses: impl Iterator<Item = &'a String>) {
        let addresses = addresses.map(|address| shown(address)).collect();
        *self.listening.lock().unwrap_or_else(PoisonError::into_inner) = addresses;
    }

    /// The worker with the fewest clients.
    pub fn least_busy(&self) -> usize {
        let clients = |part: &Part| part.current.load(Relaxed);
        self.parts
            .iter()
            .enumerate()
            .min_by_key(|(_, part)| clients(part))
            .map_or(0, |(worker, _)| worker)
    }

    /// A client is on its way to this worker: counted at once, so that the next one goes elsewhere.
    pub fn expect(&self, worker: usize) {
        if let Some(part) = self.parts.get(worker) {
            part.current.fetch_add(1, Relaxed);
        }
    }

    /// The expected client is here, and is counted as every other from now on.
    pub fn arrived(&self, worker: usize) {
        if let Some(part) = self.parts.get(worker) {
            part.current.fetch_sub(1, Relaxed);
        }
    }

    /// A client has come; `address` where it is to be listed.
    pub fn opened(&self, worker: usize, client: u32, address: Option<(String, Arc<str>)>) {
        let Some(part) = self.parts.get(worker) else {
            return;
        };
        part.total.fetch_add(1, Relaxed);
        part.current.fetch_add(1, Relaxed);
        if let Some(address) = address {
            part.open
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(client, address);
        }
    }

    /// It has gone.
    pub fn closed(&self, worker: usize, client: u32, listed: bool) {
        let Some(part) = self.parts.get(worker) else {
            return;
        };
        part.current.fetch_sub(1, Relaxed);
        if listed {
            part.open
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&client);
        }
    }
}

impl Connections for Register {
    fn current(&self) -> u64 {
        self.parts.iter().map(|part| part.current.load(Relaxed)).sum()
    }

    fn total(&self) -> u64 {
        self.parts.iter().map(|part| part.total.load(Relaxed)).sum()
    }

    fn each(&self, show: &mut dyn FnMut(&Connection<'_>)) {
        let listening = self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for (id, address) in listening.iter().enumerate() {
            show(&Connection {
                id: id as u64,
                address,
                listener: None,
                state: "conn_listening",
                idle: 0,
            });
        }
        for (worker, part) in self.parts.iter().enumerate() {
            let open = part.open.lock().unwrap_or_else(PoisonError::into_inner);
            for (&client, (address, listener)) in open.iter() {
                let id = (worker as u64 + 1) << 32 | u64::from(client);
                show(&Connection {
                    id,
                    address,
                    listener: Some(listener),
                    state: "conn_read",
                    idle: 0,
                });
            }
        }
    }
}
