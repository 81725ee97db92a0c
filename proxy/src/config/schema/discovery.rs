//! What a listener tells its clients of the proxies that they may use.

use std::path::PathBuf;

use super::Peers;

/// The proxies among which clients may choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Discovery {
    /// The address under which clients reach this proxy by this listener. `None`: that of the listener, or
    /// the one by which this machine reaches its peers.
    pub announce: Option<String>,
    /// The other proxies. This one may be among them.
    pub peers: Peers,
    /// The file in which the list is kept with its version. `None`: one in the folder for what the process
    /// keeps.
    pub keep: Option<PathBuf>,
}
