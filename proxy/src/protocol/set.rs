//! The protocols that one process speaks.

use super::Protocol;

/// All protocols of a process. The first one is the default.
#[derive(Clone, Copy)]
pub struct Protocols(&'static [&'static dyn Protocol]);

/// One protocol of a process.
#[derive(Clone, Copy)]
pub struct ProtocolSlot {
    /// The codec.
    pub protocol: &'static dyn Protocol,
    /// The number of the protocol's first command among the commands of all protocols, by which metrics are
    /// counted.
    pub first: u32,
}

impl Protocols {
    /// The protocols of a process; no two may have the same name.
    ///
    /// # Panics
    /// `all` is empty.
    pub const fn new(all: &'static [&'static dyn Protocol]) -> Self {
        assert!(!all.is_empty(), "a process speaks at least one protocol");
        Self(all)
    }

    /// The protocol with this name; `None` if the process does not speak it.
    pub fn of(self, name: &str) -> Option<ProtocolSlot> {
        self.all().find(|spoken| spoken.protocol.name() == name)
    }

    /// The protocol of listeners and pools that name none.
    pub fn default(self) -> ProtocolSlot {
        ProtocolSlot {
            protocol: self.0[0],
            first: 0,
        }
    }

    /// Each protocol, in order.
    pub fn all(self) -> impl Iterator<Item = ProtocolSlot> {
        self.0.iter().scan(0, |next, &protocol| {
            let first = *next;
            *next += protocol.commands().len() as u32;
            Some(ProtocolSlot { protocol, first })
        })
    }

    /// The commands of all protocols, in the order of their numbers.
    pub fn commands(self) -> impl Iterator<Item = (&'static dyn Protocol, u16)> {
        self.0.iter().flat_map(|&protocol| {
            (0..protocol.commands().len() as u16).map(move |command| (protocol, command))
        })
    }
}

impl std::fmt::Debug for Protocols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|protocol| protocol.name()))
            .finish()
    }
}
