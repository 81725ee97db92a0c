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
pub(super) struct Own(Vec<Server>);

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
        Ok(self.0.clone())
    }

    fn own(&self) -> Option<&[Server]> {
        Some(&self.0)
    }
}

/// The own copy as it stands in a configuration.
#[derive(Debug)]
pub(super) struct OwnForm;

impl Form for OwnForm {
    type Value = Own;

    fn shape() -> Shape {
        ServerAddress::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Own, Diagnostic> {
        if node.scalar() == Some("none") {
            return Ok(Own(Vec::new()));
        }
        let address = ServerAddress::read(node, cx)?;
        Ok(Own(vec![Server {
            address,
            name: None,
            weight: 1.0,
            zone: None,
        }]))
    }
}
