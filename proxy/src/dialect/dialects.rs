//! The protocols that one process speaks.

use super::{Dialect, Memcache};

/// All of them. The first is that of whoever names none.
#[derive(Clone, Copy)]
pub struct Dialects(&'static [&'static dyn Dialect]);

/// One of them.
#[derive(Clone, Copy)]
pub struct Spoken {
    pub dialect: &'static dyn Dialect,
    /// The number of its first command among the commands of all: metrics are kept by it.
    pub first: u32,
}

impl Dialects {
    /// As ourselves.
    pub const PLAIN: Self = Self::new(&[&Memcache::PLAIN]);
    /// In mcrouter's place.
    pub const MCROUTER: Self = Self::new(&[&Memcache::MCROUTER]);
    /// In mcrouter's place, with `--enable-flush-cmd`.
    pub const MCROUTER_FLUSH: Self = Self::new(&[&Memcache::MCROUTER_FLUSH]);

    /// These, and no two of one name.
    ///
    /// # Panics
    /// There is none.
    pub const fn new(all: &'static [&'static dyn Dialect]) -> Self {
        assert!(!all.is_empty(), "a process speaks at least one protocol");
        Self(all)
    }

    /// That of this name.
    pub fn of(self, name: &str) -> Option<Spoken> {
        self.all().find(|spoken| spoken.dialect.name() == name)
    }

    /// That of whoever names none.
    pub fn default(self) -> Spoken {
        Spoken {
            dialect: self.0[0],
            first: 0,
        }
    }

    /// Each of them.
    pub fn all(self) -> impl Iterator<Item = Spoken> {
        self.0.iter().scan(0, |next, &dialect| {
            let first = *next;
            *next += dialect.commands().len() as u32;
            Some(Spoken { dialect, first })
        })
    }

    /// The commands of all, in the order of their numbers.
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
