//! Where a spool is, and what its files look like.

use std::path::PathBuf;

/// The options of a spool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolOptions {
    /// The folder of its files (`--async-dir`).
    pub dir: PathBuf,
    /// Whether lines have mcrouter's second form (`--use-asynclog-version2`).
    pub is_second_form: bool,
    /// The port of every server in the lines (`--asynclog-port-override`). `None`: its own.
    pub port: Option<u16>,
    /// The name of this router in file names: its first port.
    pub router: String,
    /// The region and cluster of this router, as the second form tells them.
    pub region: String,
    /// See `region`.
    pub cluster: String,
}
