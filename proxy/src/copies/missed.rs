//! The writes that a copy missed, by their keys.

use std::{collections::HashSet, fmt, net::SocketAddr, time::Instant};

/// Keys remembered for one copy; beyond that, every key counts as missed.
const KEYS: usize = 10_000;
/// Bytes of keys remembered for one copy.
const BYTES: usize = 1 << 20;

/// The word for a copy that may have missed any key, in `/members` and in the state file.
pub const EVERYTHING: &str = "everything";
/// The word for a copy that missed no write.
pub const NOTHING: &str = "nothing";

/// Keys of the writes that one worker has seen a copy miss.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissedKeys {
    keys: HashSet<Box<[u8]>>,
    bytes: usize,
    /// More than the keys.
    everything: bool,
}

impl MissedKeys {
    /// Every key that there is.
    pub fn everything() -> Self {
        Self {
            everything: true,
            ..Self::default()
        }
    }

    /// Adds a key. An empty key is a change of which no key is known: everything.
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

/// All writes that one copy missed, and what may still bring it old ones.
#[derive(Clone, Debug, Default)]
pub struct MissedWrites {
    keys: MissedKeys,
    /// Our ends of connections that broke with requests unanswered: the server may still execute their bytes.
    pub connections: Vec<SocketAddr>,
    /// There was such a connection whose end is not known.
    pub unknown_connection: bool,
    /// When a write was first known to be missed; `None`: never.
    pub first: Option<Instant>,
    /// When a write was last known to be missed; `None`: never.
    pub last: Option<Instant>,
}

impl MissedWrites {
    /// Adds keys.
    pub fn add(&mut self, keys: MissedKeys) {
        self.keys.merge(keys);
    }

    /// A write was missed at this time, or before it.
    pub(super) fn missed_at(&mut self, now: Instant) {
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    /// Adds our end of a connection that broke; `None` if it has no address that the server could list.
    pub(super) fn add_connection(&mut self, address: Option<SocketAddr>) {
        /// Longer lists are not compared; the repair waits instead.
        const MOST: usize = 10_000;
        match address {
            Some(address) if self.connections.len() < MOST => self.connections.push(address),
            _ => self.unknown_connection = true,
        }
    }

    /// Our ends of all broken connections; `None` for one whose end is unknown.
    pub fn ends(&self) -> impl Iterator<Item = Option<SocketAddr>> {
        let known = self.connections.iter().copied().map(Some);
        known.chain(self.unknown_connection.then_some(None))
    }

    /// The keys; `None`: not all of them are known.
    pub fn keys(&self) -> Option<impl Iterator<Item = &[u8]>> {
        (!self.keys.everything).then(|| self.keys.keys.iter().map(|key| &**key))
    }

    /// How many keys; `None`: everything.
    pub fn count(&self) -> Option<usize> {
        (!self.keys.everything).then_some(self.keys.keys.len())
    }
}

/// The missed writes in words for operators.
impl fmt::Display for MissedWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count() {
            None => f.write_str(EVERYTHING),
            Some(0) => f.write_str(NOTHING),
            Some(1) => f.write_str("1 key"),
            Some(keys) => write!(f, "{keys} keys"),
        }
    }
}
