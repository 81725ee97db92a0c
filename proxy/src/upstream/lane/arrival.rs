//! The order in which commands that let their clients wait have come.

/// The event that a lane's blocking command itself waits for. The numbers are in the order in which the
/// commands of this worker came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::upstream) enum Arrival {
    /// Nothing: it is sent, or there is none.
    Past,
    /// Its connection, which is being made. Others wait for it.
    Opening(u64),
    /// Those for which connections are being made.
    Behind(u64),
}
