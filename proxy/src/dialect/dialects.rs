//! The protocols that one process speaks.

use super::{Dialect, Memcache, Redis};

static ALL: [&dyn Dialect; 2] = [&Memcache::PLAIN, &Redis::PLAIN];

/// All protocols of a process. The first one is the default.
#[derive(Clone, Copy)]
pub struct Dialects(&'static [&'static dyn Dialect]);

/// One protocol of a process.
#[derive(Clone, Copy)]
pub struct Spoken {
    /// The codec.
    pub dialect: &'static dyn Dialect,
    /// The number of the protocol's first command among the commands of all protocols, by which metrics are
    /// counted.
    pub first: u32,
}

impl Dialects {
    /// memcached and Redis as Proxima speaks them.
    pub const PLAIN: Self = Self::new(&ALL);
    /// memcached alone.
    pub const MEMCACHED: Self = Self::new(&[&Memcache::PLAIN]);

    /// The protocols of a process; no two may have the same name.
    ///
    /// # Panics
    /// `all` is empty.
    pub const fn new(all: &'static [&'static dyn Dialect]) -> Self {
        assert!(!all.is_empty(), "a process speaks at least one protocol");
        Self(all)
    }

    /// The protocol with this name; `None`: the process does not speak it.
    pub fn of(self, name: &str) -> Option<Spoken> {
        self.all().find(|spoken| spoken.dialect.name() == name)
    }

    /// The protocol of listeners and pools that name none.
    pub fn default(self) -> Spoken {
        Spoken {
            dialect: self.0[0],
            first: 0,
        }
    }

    /// Each protocol, in order.
    pub fn all(self) -> impl Iterator<Item = Spoken> {
        self.0.iter().scan(0, |next, &dialect| {
            let first = *next;
            *next += dialect.commands().len() as u32;
            Some(Spoken { dialect, first })
        })
    }

    /// The commands of all protocols, in the order of their numbers.
    pub fn commands(self) -> impl Iterator<Item = (&'static dyn Dialect, u16)> {
        self.0
            .iter()
            .flat_map(|&dialect| (0..dialect.commands().len() as u16).map(move |command| (dialect, command)))
    }
}

impl std::fmt::Debug for Dialects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|dialect| dialect.name()))
            .finish()
    }
}
