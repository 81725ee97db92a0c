//! Servers that the configuration itself names.

use std::collections::HashMap;

use super::SourceKey;
use crate::config::{
    Diagnostic, Place,
    document::{Node, shortened},
    form::{Amount, Form, List, Optional, ServerAddress, Shape, Text},
    reading::Reading,
    schema::{Server, Source},
    section::section,
};

section! {
    /// One server. Its address alone is enough.
    #[short(address)]
    pub(super) struct ServerKeys {
        /// `host:port`, `[v6]:port` or `unix:/path`. A host's name is asked for every second, and followed
        /// where it leads.
        address: ServerAddress,
        /// Share of the keys relative to the others.
        weight: Amount = 1.0,
        /// What consistent hashing and metrics know it by; without it the address. With a name a server may
        /// move without moving its keys.
        name: Optional<Text>,
        /// Failure domain, compared with `--zone`.
        zone: Optional<Text>,
    }
}

/// A server with its place in the text.
#[derive(Debug)]
pub(super) struct ServerForm;

impl Form for ServerForm {
    type Value = (Place, Server);

    fn shape() -> Shape {
        ServerKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        let ServerKeys {
            address,
            weight,
            name,
            zone,
        } = ServerKeys::read(node, cx)?;
        if let Some(name) = name.as_deref().filter(|name| !is_name(name)) {
            return Err(cx
                .refuse(node.at, format!("`{}` is no name for a server", shortened(name)))
                .with_remedy(NAME_REMEDY));
        }
        Ok((
            node.at,
            Server {
                address,
                name,
                weight,
                zone,
                pod: None,
            },
        ))
    }
}

/// The servers in the configuration.
#[derive(Debug)]
pub(super) struct Listed;

impl SourceKey for Listed {
    const KEY: &'static str = "servers";
    const ABOUT: &'static str =
        "The servers: each an address, or a map. A pool has this key or that of another source.";
    type Form = List<ServerForm>;

    fn source(listed: Vec<(Place, Server)>, pool: Place, cx: &Reading) -> Result<Source, Diagnostic> {
        if listed.is_empty() {
            return Err(cx
                .refuse(pool, "the pool has no servers")
                .with_remedy("name at least one"));
        }
        if let Some((at, problem)) = repeated(&listed) {
            return Err(cx.refuse(at, problem).with_remedy("give each a name of its own"));
        }
        let servers: Vec<Server> = listed.into_iter().map(|(_, server)| server).collect();
        Ok(Source::new(servers))
    }
}

const NAME_REMEDY: &str = "a name has no blanks, no `/`, no `#` and at most 255 characters";

/// Whether a server may have this name, which stands in `pool/name`, in files and in metrics.
pub(super) fn is_name(name: &str) -> bool {
    let bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '#');
    !name.is_empty() && name.len() <= 255 && !name.contains(bad)
}

/// The first server whose name an earlier one has.
pub(super) fn repeated(servers: &[(Place, Server)]) -> Option<(Place, String)> {
    let mut seen: HashMap<&str, Place> = HashMap::new();
    for (at, server) in servers {
        let name = server.name.as_deref().unwrap_or(&server.address);
        if let Some(before) = seen.insert(name, *at) {
            return Some((
                *at,
                format!(
                    "the server `{}` stood in line {} already",
                    shortened(name),
                    before.line
                ),
            ));
        }
    }
    None
}
