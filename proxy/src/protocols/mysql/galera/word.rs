//! The note of a pool's state about a server, as all workers read it.

/// The pool state's note about a server: its number, and whether it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocols::mysql) struct Word(pub(in crate::protocols::mysql) u32);

impl Word {
    const SERVES: u32 = 1;
    const WRITES: u32 = 2;
    const HAS_OTHERS: u32 = 4;
    const SOLVES_CONFLICTS: u32 = 8;
    /// The bits of the flags.
    const FLAGS: u32 = 4;

    /// The note about the server with this number, of which nothing is known.
    pub(in crate::protocols::mysql) const fn new(number: u32) -> Self {
        Self(number << Self::FLAGS)
    }

    const fn with(self, is: bool, flag: u32) -> Self {
        Self(if is { self.0 | flag } else { self.0 & !flag })
    }

    /// The same, where it may be asked or not.
    pub(in crate::protocols::mysql) const fn serving(self, serves: bool) -> Self {
        self.with(serves, Self::SERVES)
    }

    /// The same, where it is the writer or not.
    pub(in crate::protocols::mysql) const fn writing(self, writes: bool) -> Self {
        self.with(writes, Self::WRITES)
    }

    /// The same, where other proxies may write or not.
    pub(in crate::protocols::mysql) const fn with_others(self, has_others: bool) -> Self {
        self.with(has_others, Self::HAS_OTHERS)
    }

    /// The same, where what was rolled back by a conflict is given to it again or not.
    pub(in crate::protocols::mysql) const fn solving_conflicts(self, solves: bool) -> Self {
        self.with(solves, Self::SOLVES_CONFLICTS)
    }

    /// The number of the server; 0 while nothing is known of the server.
    pub(in crate::protocols::mysql) const fn number(self) -> u32 {
        self.0 >> Self::FLAGS
    }

    /// May it be asked?
    pub(in crate::protocols::mysql) const fn serves(self) -> bool {
        self.0 & Self::SERVES != 0
    }

    /// Is it the writer?
    pub(in crate::protocols::mysql) const fn writes(self) -> bool {
        self.0 & Self::WRITES != 0
    }

    /// May another proxy write, in a pool that is said to have one?
    pub(in crate::protocols::mysql) const fn has_others(self) -> bool {
        self.0 & Self::HAS_OTHERS != 0
    }

    /// Is a statement that was rolled back by a conflict given to it again?
    pub(in crate::protocols::mysql) const fn solves_conflicts(self) -> bool {
        self.0 & Self::SOLVES_CONFLICTS != 0
    }
}
