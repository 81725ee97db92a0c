//! Servers by DNS: a name whose addresses they are.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use super::SourceKey;
pub(super) use crate::config::schema::Dns;
use crate::config::{
    BadAddress, ConfigError, Diagnostic, Place,
    document::{Node, shortened},
    form::{Choice, Form, Optional, PositiveTime, Shape, Word, check_address},
    reading::Reading,
    schema::{Question, Record, Server, ServerSource, Source},
    section::section,
};

section! {
    /// A name whose addresses are the servers. `name:port` alone is enough.
    #[short(name)]
    pub(super) struct DnsKeys {
        /// `name:port`, or the name alone where its records have ports. It is asked as it stands: write it in
        /// full, search domains are not tried.
        name: NameAndPort,
        /// Which records name servers.
        record: Word<Kind> = Kind::A,
        /// Time from one question to the next, whatever the TTL says; at least `100ms`.
        interval: PositiveTime = Dns::INTERVAL,
        /// The DNS server to ask, as `IP:port`, or `IP` for port 53. Without it `/etc/hosts` and the servers
        /// of `/etc/resolv.conf`.
        server: Optional<DnsServer>,
    }
}

/// The shortest interval: more questions would burden their server and serve no purpose.
const SHORTEST: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    A,
    Aaaa,
    Srv,
}

impl Choice for Kind {
    const WHAT: &'static str = "a kind of record";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("a", Self::A, "IPv4 addresses"),
        ("aaaa", Self::Aaaa, "IPv6 addresses"),
        (
            "srv",
            Self::Srv,
            "names with port and weight; only those of the best priority (the least number) are servers, each by its IPv4 \
             addresses or, where it has none, its IPv6 ones",
        ),
    ];
}

/// A name, with a port or without.
#[derive(Debug)]
pub(super) struct NameAndPort;

impl Form for NameAndPort {
    type Value = (String, Option<u16>);

    fn shape() -> Shape {
        Shape::Text {
            what: "name with port",
            pattern: Some(r"^[A-Za-z0-9._-]+(:[0-9]+)?$"),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        let text = node.scalar().unwrap_or_default();
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        };
        match check(name, port) {
            Ok(port) => Ok((name.to_owned(), port)),
            Err(why) => Err(cx
                .expected(node, &format!("a name and a port ({why})"))
                .with_remedy("write `memcached.cache.svc.cluster.local:11211`")),
        }
    }
}

/// Why a text is no name for DNS. The operator has to correct it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum BadName {
    #[error(transparent)]
    Address(#[from] BadAddress),
    #[error("the port is no number")]
    BadPort,
    #[error("an IP address is not asked for; it stands in `servers`")]
    Ip,
    #[error("between two dots there are 1 to 63 characters")]
    Label,
}

/// Checks the name, and returns its port.
fn check(name: &str, port: Option<&str>) -> Result<Option<u16>, BadName> {
    check_address(&format!("{name}:{}", port.unwrap_or("1")), false)?;
    let port = port.map(str::parse).transpose().map_err(|_| BadName::BadPort)?;
    let mut labels = name.strip_suffix('.').unwrap_or(name).split('.');
    match name.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(_) => Err(BadName::Ip),
        Err(_) if labels.any(|label| label.is_empty() || label.len() > 63) => Err(BadName::Label),
        Err(_) => Ok(port),
    }
}

/// The address of a DNS server.
#[derive(Debug)]
pub(super) struct DnsServer;

impl Form for DnsServer {
    type Value = SocketAddr;

    fn shape() -> Shape {
        Shape::Text {
            what: "IP address with or without port",
            pattern: Some(r"^[0-9A-Fa-f.:\[\]]+$"),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<SocketAddr, Diagnostic> {
        let text = node.scalar().unwrap_or_default();
        let address = text
            .parse()
            .ok()
            .or_else(|| Some((text.parse::<IpAddr>().ok()?, 53).into()));
        address
            .filter(|address: &SocketAddr| address.port() != 0)
            .ok_or_else(|| {
                cx.expected(node, "the address of a DNS server")
                    .with_remedy("write `10.96.0.10`, `127.0.0.1:5353` or `[::1]:5353`")
            })
    }
}

impl SourceKey for Dns {
    const KEY: &'static str = "dns";
    const ABOUT: &'static str =
        "A name whose addresses are the servers, asked every second: `name:port`, or a map.";
    type Form = DnsForm;

    fn source(question: Self, _pool: Place, _cx: &Reading) -> Result<Source, Diagnostic> {
        Ok(Source::new(question))
    }
}

impl ServerSource for Dns {
    fn read(&self) -> Result<Vec<Server>, ConfigError> {
        // The control thread asks.
        Ok(Vec::new())
    }

    fn question(&self) -> Option<Question> {
        Some(Question::Dns(self.clone()))
    }
}

/// A question as it stands in a configuration.
#[derive(Debug)]
pub(super) struct DnsForm;

impl Form for DnsForm {
    type Value = Dns;

    fn shape() -> Shape {
        DnsKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Dns, Diagnostic> {
        let DnsKeys {
            name: (name, port),
            record,
            interval,
            server,
        } = DnsKeys::read(node, cx)?;
        let record = match (record, port) {
            (Kind::A, Some(port)) => Record::A(port),
            (Kind::Aaaa, Some(port)) => Record::Aaaa(port),
            (Kind::Srv, None) => Record::Srv,
            (Kind::Srv, Some(_)) => {
                return Err(cx
                    .refuse(node.at, "SRV records have ports of their own")
                    .with_remedy("leave the port out"));
            }
            (_, None) => {
                return Err(cx
                    .refuse(node.at, format!("`{}` has no port", shortened(&name)))
                    .with_remedy("write `name:port`, or `record: srv` if its records have ports"));
            }
        };
        if interval < SHORTEST {
            return Err(cx
                .refuse(node.at, "`interval` is less than 100ms")
                .with_remedy("write `1s`"));
        }
        Ok(Dns {
            name,
            record,
            interval,
            server,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn names_and_ports() {
        let long = "x".repeat(64);
        for (name, port, good) in [
            ("memcached.cache.svc.cluster.local", Some("11211"), true),
            ("memcached", Some("1"), true),
            ("memcached.cache.svc.cluster.local.", Some("11211"), true),
            ("_memcached._tcp.cache.svc.cluster.local", None, true),
            ("a", Some("0"), false),
            ("a", Some("65536"), false),
            ("unix", Some("/run/x"), false),
            ("10.0.0.1", Some("11211"), false),
            ("[::1]", Some("11211"), false),
            ("", Some("1"), false),
            ("a..b", None, false),
            (".", None, false),
            ("a b", None, false),
            ("ä.de", None, false),
            (&long, None, false),
        ] {
            assert_eq!(check(name, port).is_ok(), good, "{name} {port:?}");
        }
    }
}
