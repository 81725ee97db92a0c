//! What a connection has prepared.

/// The numbers of the statements of a run on one connection, which its server has chosen. 0: it has prepared
/// none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statements {
    /// That which reads a value.
    pub(super) get: u32,
    /// That which writes one.
    pub(super) set: u32,
}
