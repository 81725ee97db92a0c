//! What a listener serves of MySQL.

use super::Consistency;

/// What the clients of a listener may do, and how fresh their reads are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Door {
    /// What becomes of statements that write.
    pub writes: Writes,
    /// Where reads go.
    pub reads: Reads,
    /// How fresh reads are; `None`: as the pools say.
    pub consistency: Option<Consistency>,
    /// Whether nobody is served who speaks plainly.
    pub requires_tls: bool,
}

/// What becomes of statements that write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writes {
    /// They are served.
    #[default]
    Served,
    /// They are rejected, as by a server that only reads.
    Rejected,
}

/// Where reads go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    /// To readers.
    #[default]
    Readers,
    /// To the writer.
    Writer,
}
