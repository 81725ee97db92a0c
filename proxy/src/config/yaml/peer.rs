//! The file that makes a proxy with another program's configuration a peer of a fleet.

use super::{events, fleet::FleetForm, names::PoolName};
use crate::config::{
    Diagnostic,
    form::{ByName, Form, Optional},
    reading::Reading,
    schema::{Fleet, Source},
    section::section,
    source::OwnForm,
};

section! {
    /// A peer of a fleet, whose pools stand in another file.
    pub(super) struct PeerKeys {
        /// The fleet, as in Proxima's own configuration.
        fleet: FleetForm,
        /// By pool, the server at this proxy's side, or `none`. Without it, the listed server that is on this
        /// machine.
        own: Optional<ByName<OwnForm, PoolName>>,
    }
}

/// A peer of a fleet, whose pools stand in another file.
#[derive(Clone, Debug)]
pub(crate) struct PeerFile {
    /// The fleet.
    pub(crate) fleet: Fleet,
    /// By pool, the server at this proxy's side.
    pub(crate) own: Vec<(String, Source)>,
}

/// Reads such a file.
pub(in crate::config) fn parse_peer(text: &str, cx: &mut Reading) -> Result<PeerFile, Diagnostic> {
    let PeerKeys { fleet, own } = PeerKeys::read(&events::parse(text)?, cx)?;
    let own = own.into_iter().flatten();
    Ok(PeerFile {
        fleet,
        own: own.map(|(name, own)| (name.text, Source::new(own))).collect(),
    })
}
