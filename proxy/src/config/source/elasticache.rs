//! Servers by auto discovery: the configuration endpoint of an ElastiCache cluster, or whatever else answers
//! its question, as a Proxima does.

use std::{path::Path, time::Duration};

use super::SourceKey;
pub(super) use crate::config::schema::Endpoint;
use crate::config::{
    ConfigError, Diagnostic, Place,
    document::Node,
    form::{Form, Optional, PathText, PositiveTime, ServerAddress, Shape, by_tcp},
    reading::Reading,
    schema::{ClientTls, Question, Server, ServerSource, Source},
    section::section,
};

section! {
    /// The configuration endpoint of a cluster. `NAME:port` alone is enough.
    #[short(endpoint)]
    pub(super) struct EndpointKeys {
        /// `NAME:port`, or `IP:port`. The name is looked up before each question, as endpoints move.
        endpoint: EndpointAddress,
        /// Time from one question to the next; at least `100ms`. After the loss of a server the endpoint is
        /// asked at once.
        interval: PositiveTime = Endpoint::INTERVAL,
        /// The file in which the last good list is kept, relative to this file. A start while the endpoint
        /// does not answer uses it. The default is a file in `$STATE_DIRECTORY`, or in `/var/lib/proxima`.
        keep: Optional<PathText>,
    }
}

/// The shortest interval: more questions would burden the node that is asked and serve no purpose.
const SHORTEST: Duration = Duration::from_millis(100);

/// The address of an endpoint, which is no Unix socket.
#[derive(Debug)]
pub(super) struct EndpointAddress;

impl Form for EndpointAddress {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text {
            what: "name with port",
            pattern: Some(r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]+$"),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
        let remedy = "write `NAME.cfg.cache.amazonaws.com:11211`, as the cluster's page shows it";
        ServerAddress::read(node, cx)
            .and_then(|address| by_tcp(address, node, cx, "an endpoint is asked by TCP"))
            .map_err(|refused| refused.with_remedy(remedy))
    }
}

/// An endpoint as it stands in a configuration.
#[derive(Debug)]
pub(super) struct EndpointForm;

impl Form for EndpointForm {
    type Value = Endpoint;

    fn shape() -> Shape {
        EndpointKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Endpoint, Diagnostic> {
        let EndpointKeys {
            endpoint,
            interval,
            keep,
        } = EndpointKeys::read(node, cx)?;
        match interval < SHORTEST {
            true => Err(cx
                .refuse(node.at, "`interval` is less than 100ms")
                .with_remedy("write `60s`")),
            false => Ok(Endpoint {
                address: endpoint,
                interval,
                keep,
                // The pool says it.
                tls: None,
            }),
        }
    }
}

impl SourceKey for Endpoint {
    const KEY: &'static str = "elasticache";
    const ABOUT: &'static str = "The configuration endpoint of an ElastiCache cluster, asked every minute for its nodes: \
                                 `NAME:port`, or a map.";
    type Form = EndpointForm;

    fn source(endpoint: Self, _pool: Place, _cx: &Reading) -> Result<Source, Diagnostic> {
        Ok(Source::new(endpoint))
    }
}

impl ServerSource for Endpoint {
    fn read(&self) -> Result<Vec<Server>, ConfigError> {
        // The control thread asks.
        Ok(Vec::new())
    }

    fn question(&self) -> Option<Question> {
        Some(Question::Endpoint(self.clone()))
    }

    fn behind(&self, tls: &ClientTls) -> Option<Source> {
        Some(Source::new(Self {
            tls: Some(tls.clone()),
            ..self.clone()
        }))
    }

    fn below(&self, folder: &Path) -> Option<Source> {
        let mut seen = self.clone();
        seen.keep = seen.keep.map(|keep| folder.join(keep));
        if let Some(tls) = &mut seen.tls {
            tls.below(folder);
        }
        Some(Source::new(seen))
    }
}
