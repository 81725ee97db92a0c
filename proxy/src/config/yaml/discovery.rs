//! What a listener tells its clients of the proxies that they may use.

use super::fleet::PeersForm;
use crate::config::{
    Diagnostic,
    document::Node,
    form::{Form, Optional, PathText, ServerAddress, Shape},
    reading::Reading,
    schema::Discovery,
    section::section,
};

section! {
    /// The proxies among which clients may choose, told to those who ask `config get cluster` as clients of
    /// ElastiCache do.
    pub(super) struct DiscoveryKeys {
        /// The other proxies: `{dns: NAME:PORT}`, `{file: PATH}` (an address a line, followed), or a list of
        /// addresses. This proxy may be among them, so that all have the same list.
        peers: PeersForm,
        /// The address under which clients reach this proxy, as it stands in the lists of the others. The
        /// default is that of the listener; where that is every address of this machine (`0.0.0.0`), the one
        /// by which this machine reaches the first peer.
        announce: Optional<ServerAddress>,
        /// The file in which the list is kept with its version, relative to this file. The default is a file
        /// in `$STATE_DIRECTORY`, or in `/var/lib/proxima`.
        keep: Optional<PathText>,
    }
}

/// The proxies of a listener as they stand in a configuration.
#[derive(Debug)]
pub(super) struct DiscoveryForm;

impl Form for DiscoveryForm {
    type Value = Discovery;

    fn shape() -> Shape {
        DiscoveryKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Discovery, Diagnostic> {
        let DiscoveryKeys {
            peers,
            announce,
            keep,
        } = DiscoveryKeys::read(node, cx)?;
        if announce
            .as_ref()
            .is_some_and(|address| address.starts_with("unix:"))
        {
            return Err(cx
                .refuse(node.at, "clients of other machines reach no Unix socket")
                .with_remedy("write `announce: NAME:port`"));
        }
        Ok(Discovery {
            announce,
            peers,
            keep,
        })
    }
}
