//! Servers by the API server of Kubernetes: the endpoints of a Service.

use std::path::Path;

use super::SourceKey;
pub(super) use crate::config::schema::Service;
use crate::config::{
    ConfigError, Diagnostic, Place,
    document::Node,
    form::{Form, Optional, PathText, Shape},
    reading::Reading,
    schema::{Question, Server, ServerSource, ServicePort, Source},
    section::section,
};

section! {
    /// A Service of Kubernetes. `NAME[.NAMESPACE][:PORT]` alone is enough.
    #[short(service)]
    pub(super) struct ServiceKeys {
        /// `NAME[.NAMESPACE][:PORT]`. Without a namespace it is that of the proxy's own pod. The port is a
        /// number, or the name that a port of the Service has; without it the Service has only one.
        service: ServiceText,
        /// The file in which the last good list is kept, relative to this file. A start while the API server
        /// does not answer uses it. The default is a file in `$STATE_DIRECTORY`, or in `/var/lib/proxima`.
        keep: Optional<PathText>,
    }
}

/// The longest name of a Service, and of a namespace.
const LONGEST: usize = 63;
/// The longest name of a port.
const LONGEST_PORT: usize = 15;

/// A Service with its namespace and port, as far as they are said.
#[derive(Debug)]
pub(super) struct ServiceText;

impl Form for ServiceText {
    type Value = (String, Option<String>, ServicePort);

    fn shape() -> Shape {
        Shape::Text {
            what: "name of a Service",
            pattern: Some(r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)?(:[a-z0-9-]+)?$"),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        read(node.scalar().unwrap_or_default()).map_err(|why| {
            cx.expected(node, &format!("a Service ({why})"))
                .with_remedy("write `NAME.NAMESPACE:PORT`, as in `memcached.cache:11211`")
        })
    }
}

/// Why a text is no Service. The operator has to correct it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum BadService {
    #[error("its name is 1 to {LONGEST} small letters, digits and hyphens between them")]
    Name,
    #[error("a namespace is 1 to {LONGEST} small letters, digits and hyphens between them")]
    Namespace,
    #[error("of a name in DNS only NAME.NAMESPACE is written")]
    Domain,
    #[error("a port is 1 to 65535, or a name of 1 to {LONGEST_PORT} small letters, digits and hyphens")]
    Port,
}

fn read(text: &str) -> Result<(String, Option<String>, ServicePort), BadService> {
    let (whole, port) = match text.split_once(':') {
        Some((whole, port)) => (whole, port_of(port)?),
        None => (text, ServicePort::Only),
    };
    let mut parts = whole.split('.');
    let name = parts.next().filter(|name| is_label(name, LONGEST));
    let name = name.ok_or(BadService::Name)?;
    let namespace = match parts.next() {
        Some(namespace) if is_label(namespace, LONGEST) => Some(namespace.to_owned()),
        Some(_) => return Err(BadService::Namespace),
        None => None,
    };
    match parts.next() {
        Some(_) => Err(BadService::Domain),
        None => Ok((name.to_owned(), namespace, port)),
    }
}

fn port_of(text: &str) -> Result<ServicePort, BadService> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number = text.parse().ok().filter(|&number: &u16| number > 0);
        return number.map(ServicePort::Number).ok_or(BadService::Port);
    }
    match is_label(text, LONGEST_PORT) {
        true => Ok(ServicePort::Name(text.to_owned())),
        false => Err(BadService::Port),
    }
}

/// Is this a label as RFC 1123 has it, of this length at most?
fn is_label(text: &str, longest: usize) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let ends = !text.starts_with('-') && !text.ends_with('-');
    (1..=longest).contains(&text.len()) && ends && text.bytes().all(is_inner)
}

/// A Service as it stands in a configuration.
#[derive(Debug)]
pub(in crate::config) struct ServiceForm;

impl Form for ServiceForm {
    type Value = Service;

    fn shape() -> Shape {
        ServiceKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Service, Diagnostic> {
        let ServiceKeys { service, keep } = ServiceKeys::read(node, cx)?;
        let (name, namespace, port) = service;
        Ok(Service {
            name,
            namespace,
            port,
            keep,
        })
    }
}

impl SourceKey for Service {
    const KEY: &'static str = "kubernetes";
    const ABOUT: &'static str = "A Service of Kubernetes whose endpoints are the servers, followed at the API server: \
                                 `NAME[.NAMESPACE][:PORT]`, or a map.";
    type Form = ServiceForm;

    fn source(service: Self, _pool: Place, _cx: &Reading) -> Result<Source, Diagnostic> {
        Ok(Source::new(service))
    }
}

impl ServerSource for Service {
    fn read(&self) -> Result<Vec<Server>, ConfigError> {
        // The control thread asks.
        Ok(Vec::new())
    }

    fn question(&self) -> Option<Question> {
        Some(Question::Service(self.clone()))
    }

    fn below(&self, folder: &Path) -> Option<Source> {
        let mut seen = self.clone();
        seen.keep = seen.keep.map(|keep| folder.join(keep));
        Some(Source::new(seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_read_or_it_is_said_why_not() {
        let found = |name: &str, namespace: Option<&str>, port| {
            Ok((name.to_owned(), namespace.map(ToOwned::to_owned), port))
        };
        let named = |port: &str| ServicePort::Name(port.to_owned());
        let long = "a".repeat(LONGEST + 1);
        for (text, expected) in [
            ("mc", found("mc", None, ServicePort::Only)),
            ("mc.cache", found("mc", Some("cache"), ServicePort::Only)),
            ("mc:11211", found("mc", None, ServicePort::Number(11211))),
            (
                "mc.cache:memcached",
                found("mc", Some("cache"), named("memcached")),
            ),
            ("m-1.c-2:p-3", found("m-1", Some("c-2"), named("p-3"))),
            ("", Err(BadService::Name)),
            ("-mc", Err(BadService::Name)),
            ("MC", Err(BadService::Name)),
            (&*long, Err(BadService::Name)),
            ("mc.", Err(BadService::Namespace)),
            ("mc.cache.svc.cluster.local", Err(BadService::Domain)),
            ("mc:", Err(BadService::Port)),
            ("mc:0", Err(BadService::Port)),
            ("mc:65536", Err(BadService::Port)),
            ("mc:sixteen-letters-", Err(BadService::Port)),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn a_service_is_shown_as_it_was_written() {
        for text in ["mc", "mc.cache", "mc:11211", "mc.cache:memcached"] {
            let (name, namespace, port) = read(text).unwrap();
            let service = Service {
                name,
                namespace,
                port,
                keep: None,
            };
            assert_eq!(service.to_string(), text);
        }
    }
}
