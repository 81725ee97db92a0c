//! The freshness of reads, where servers follow one that takes writes.

/// The writes that a read sees at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// Those that any server had acknowledged before it came.
    #[default]
    Strict,
    /// Those that this process had acknowledged before it came, and all that its session has seen.
    Causal,
    /// Those of its own session, and all that the session has seen.
    Session,
    /// Those that were there some time ago.
    Eventual,
}

impl Consistency {
    /// All of them by their numbers, the strictest first.
    pub const ALL: [Self; 4] = [Self::Strict, Self::Causal, Self::Session, Self::Eventual];

    /// Its name, as in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eventual => "eventual",
            Self::Session => "session",
            Self::Causal => "causal",
            Self::Strict => "strict",
        }
    }

    /// The one with this name, in any case.
    pub fn of(name: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|one| name.eq_ignore_ascii_case(one.name().as_bytes()))
    }
}
