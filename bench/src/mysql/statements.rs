//! The statements that a connection has prepared.

/// The numbers of the statements of a run on one connection, which its server has chosen. 0: it has prepared
/// none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statements {
    /// The statement that reads a value.
    pub(crate) get: u32,
    /// The statement that writes a value.
    pub(crate) set: u32,
}
