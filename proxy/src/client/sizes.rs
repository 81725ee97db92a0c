//! The sizes that decide how a message is passed on.

/// Only a request up to this size, held whole, enters a shared lane; in bytes.
pub const WHOLE: u64 = 64 * 1024;
/// A client waits while a server that takes its upload has this many bytes or more to be sent.
pub const HIGH_WATER: usize = 256 * 1024;
