//! The roles of members in a pool that has one writer.

use std::time::Instant;

/// The role of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It takes the pool's writes.
    Writer,
    /// It is asked for reads.
    Reader,
    /// It is asked for nothing.
    Out,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Writer, Self::Reader, Self::Out];

    /// Its name for operators.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Writer => "writer",
            Self::Reader => "reader",
            Self::Out => "out",
        }
    }
}

/// How far a member is with the writes of all, when it last told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The number of the last write that it has.
    pub position: u64,
    /// Writes that it has been sent and does not show yet.
    pub unapplied: u64,
}

/// The role of a member, as operators see it.
#[derive(Clone, Debug)]
pub struct RoleStatus {
    /// The role.
    pub role: Role,
    /// The time since which it has the role; `None` if that is not known, or if an operator has ordered the
    /// writer.
    pub since: Option<Instant>,
    /// The time at which it was asked to wait for the others when it has done so last; `None`: it has not.
    pub proved: Option<Instant>,
    /// Its version, as it says itself; empty if that is not known.
    pub version: String,
    /// How far it is; `None`: that is not known.
    pub progress: Option<Progress>,
    /// The reasons why it does not serve, each in a word and in a sentence. The words are few, and the same
    /// in every process.
    pub why_out: Vec<(&'static str, String)>,
}

impl RoleStatus {
    /// The reasons why it does not serve, in one sentence; `None` if it serves.
    pub fn why(&self) -> Option<String> {
        let said: Vec<&str> = self.why_out.iter().map(|(_, said)| said.as_str()).collect();
        (!said.is_empty()).then(|| said.join(", "))
    }
}
