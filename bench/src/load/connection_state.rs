//! The state of a connection apart from its bytes.

/// The state of a connection apart from its bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct ConnectionState {
    /// Open loop: requests that were due so far.
    pub(super) due: u64,
    /// Open loop: how many of them were sent.
    pub(super) sent: u64,
    /// Whether it is among the retries.
    pub(super) parked: bool,
}
