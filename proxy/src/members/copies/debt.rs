//! What a copy owes: the keys of the writes that it missed.

use std::{collections::HashSet, fmt, net::SocketAddr, time::Instant};

/// Keys remembered for one copy, and their bytes; what is owed beyond that is everything.
const KEYS: usize = 10_000;
const BYTES: usize = 1 << 20;

/// How it is said, wherever it is said, that all that a copy holds is owed, and that none of it is.
pub const EVERYTHING: &str = "everything";
pub const NOTHING: &str = "nothing";

/// Keys that one worker has seen a copy miss.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owed {
    keys: HashSet<Box<[u8]>>,
    bytes: usize,
    /// More than the keys.
    everything: bool,
}

impl Owed {
    /// Everything that there is.
    pub fn everything() -> Self {
        Self {
            everything: true,
            ..Self::default()
        }
    }

    /// A change that names no key is one of everything.
    pub fn add(&mut self, key: &[u8]) {
        if key.is_empty() {
            *self = Self::everything();
        }
        if self.everything || self.keys.contains(key) {
            return;
        }
        self.bytes += key.len();
        if self.keys.len() >= KEYS || self.bytes > BYTES {
            *self = Self::everything();
        } else {
            self.keys.insert(key.into());
        }
    }

    fn merge(&mut self, other: Self) {
        if other.everything {
            *self = Self::everything();
        }
        other.keys.iter().for_each(|key| self.add(key));
    }
}

/// All that one copy owes.
#[derive(Clone, Debug, Default)]
pub struct Debt {
    owed: Owed,
    /// Our ends of connections that broke with requests unanswered: their bytes may still be executed.
    pub connections: Vec<SocketAddr>,
    /// There was one whose end is not known.
    pub unknown_connection: bool,
    /// When a write was first and last known to be missed.
    pub first: Option<Instant>,
    pub last: Option<Instant>,
}

impl Debt {
    pub fn add(&mut self, owed: Owed) {
        self.owed.merge(owed);
    }

    /// A write was missed at this time, or before it.
    pub fn missed(&mut self, now: Instant) {
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    /// The connection of a lane that broke; none: it has no address that the server could list.
    pub fn connection(&mut self, address: Option<SocketAddr>) {
        /// Beyond this nobody compares lists; the visit waits instead.
        const MOST: usize = 10_000;
        match address {
            Some(address) if self.connections.len() < MOST => self.connections.push(address),
            _ => self.unknown_connection = true,
        }
    }

    /// Our ends of all broken connections; none: one that is not known.
    pub fn ends(&self) -> impl Iterator<Item = Option<SocketAddr>> {
        let known = self.connections.iter().copied().map(Some);
        known.chain(self.unknown_connection.then_some(None))
    }

    /// The keys, where all of them are known.
    pub fn keys(&self) -> Option<impl Iterator<Item = &[u8]>> {
        (!self.owed.everything).then(|| self.owed.keys.iter().map(|key| &**key))
    }

    /// How many keys; none: everything.
    pub fn count(&self) -> Option<usize> {
        (!self.owed.everything).then_some(self.owed.keys.len())
    }
}

/// What is owed, in words.
impl fmt::Display for Debt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count() {
            None => f.write_str(EVERYTHING),
            Some(0) => f.write_str(NOTHING),
            Some(1) => f.write_str("1 key"),
            Some(keys) => write!(f, "{keys} keys"),
        }
    }
}
