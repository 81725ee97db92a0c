//! The own copy: the one server of a pool that is at this proxy's side. The other peers of the fleet have the
//! others.

use super::SourceKey;
use crate::config::{
    ConfigError, Diagnostic, Place,
    document::Node,
    form::{Form, ServerAddress, Shape},
    reading::Reading,
    schema::{Server, ServerSource, Source},
};

/// The server at this proxy's side, if there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Own {
    /// At most one server.
    own: Vec<Server>,
    /// The servers of all peers, where the configuration lists them.
    listed: Vec<Server>,
}

impl Own {
    /// The server at this proxy's side. The others of the list are at the sides of other peers.
    pub fn of(own: Option<Server>, listed: &[Server]) -> Self {
        Self {
            own: own.into_iter().collect(),
            listed: listed.to_vec(),
        }
    }
}

impl SourceKey for Own {
    const KEY: &'static str = "own";
    const ABOUT: &'static str =
        "In a fleet: the server at this proxy's side, or `none`. Each other peer names its own.";
    type Form = OwnForm;

    fn source(own: Self, _pool: Place, _cx: &Reading) -> Result<Source, Diagnostic> {
        Ok(Source::new(own))
    }
}

impl ServerSource for Own {
    fn read(&self) -> Result<Vec<Server>, ConfigError> {
        Ok(self.own.clone())
    }

    fn own(&self) -> Option<&[Server]> {
        Some(&self.own)
    }

    fn listed_copies(&self) -> &[Server] {
        &self.listed
    }
}

/// The own copy as it stands in a configuration.
#[derive(Debug)]
pub(in crate::config) struct OwnForm;

impl Form for OwnForm {
    type Value = Own;

    fn shape() -> Shape {
        ServerAddress::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Own, Diagnostic> {
        if node.scalar() == Some("none") {
            return Ok(Own::of(None, &[]));
        }
        let own = Server {
            address: ServerAddress::read(node, cx)?,
            name: None,
            weight: 1.0,
            zone: None,
            pod: None,
        };
        Ok(Own::of(Some(own), &[]))
    }
}
