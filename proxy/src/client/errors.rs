//! The error texts of requests that are not served, whatever they ask for.

/// There is no listener any more.
pub(super) const REMOVED: &str = "this listener was removed from the configuration";
/// Buffers are full.
pub(super) const OUT_OF_MEMORY: &str = "out of memory for requests in flight";
