//! The note of a pool's state about a server, as all workers read it.

/// The pool state's note about a server: its number, and whether it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocols::mysql) struct Word(pub(in crate::protocols::mysql) u32);

impl Word {
    const SERVES: u32 = 1;
    const WRITES: u32 = 2;
    const HAS_OTHERS: u32 = 4;

    pub(in crate::protocols::mysql) fn new(
        number: u32,
        serves: bool,
        writes: bool,
        has_others: bool,
    ) -> Self {
        let flag = |is: bool, flag: u32| if is { flag } else { 0 };
        Self(
            (number << 3)
                | flag(serves, Self::SERVES)
                | flag(writes, Self::WRITES)
                | flag(has_others, Self::HAS_OTHERS),
        )
    }

    /// The number of the server; 0 while nothing is known of the server.
    pub(in crate::protocols::mysql) const fn number(self) -> u32 {
        self.0 >> 3
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
}
