//! Addresses of servers and listeners.

use std::net::{Ipv4Addr, SocketAddr};

use super::{Form, Shape};
use crate::config::{Diagnostic, document::Node, reading::Reading};

/// A server's address: `host:port`, `[v6]:port` or `unix:/path`. The port is not 0.
#[derive(Debug)]
pub(in crate::config) struct ServerAddress;

/// A listener's address. Port 0 means any free port.
#[derive(Debug)]
pub(in crate::config) struct ListenAddress;

/// An address to listen on by TCP, for tools of operators.
#[derive(Debug)]
pub(in crate::config) struct TcpAddress;

const SHAPE: Shape = Shape::Text {
    what: "address",
    pattern: Some(r"^(unix:/.+|\[[0-9A-Fa-f:.]+\]:[0-9]+|[^:/\s]+:[0-9]+)$"),
};

impl Form for ServerAddress {
    type Value = String;

    fn shape() -> Shape {
        SHAPE
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
        read(node, cx, |text| check(text, false))
    }
}

impl Form for ListenAddress {
    type Value = String;

    fn shape() -> Shape {
        SHAPE
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
        read(node, cx, |text| check(text, true).and_then(|()| listens(text)))
    }
}

impl Form for TcpAddress {
    type Value = String;

    fn shape() -> Shape {
        SHAPE
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
        let address = ListenAddress::read(node, cx)?;
        by_tcp(address, node, cx, "operators ask by TCP")
            .map_err(|refused| refused.with_remedy("write `host:port` or `[v6]:port`"))
    }
}

/// An address that was read, unless it is a Unix socket's. `problem`: why it may not be.
pub(in crate::config) fn by_tcp(
    address: String,
    node: &Node,
    cx: &Reading,
    problem: &str,
) -> Result<String, Diagnostic> {
    match address.starts_with("unix:") {
        true => Err(cx.refuse(node.at, problem)),
        false => Ok(address),
    }
}

/// A host name without a port.
#[derive(Debug)]
pub(in crate::config) struct HostName;

impl Form for HostName {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text {
            what: "name of a host",
            pattern: Some(r"^[A-Za-z0-9._-]+$"),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
        let text = node.scalar().unwrap_or_default();
        let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        match !text.is_empty() && text.len() <= 253 && text.bytes().all(good) {
            true => Ok(text.to_owned()),
            false => Err(cx
                .expected(node, "the name of a host")
                .with_remedy("write it without a port")),
        }
    }
}

/// Why a text is no address. The operator has to correct it; the same text never becomes one.
#[allow(missing_docs, reason = "the messages say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    #[error("there is no port")]
    NoPort,
    #[error("the port is 0")]
    PortZero,
    #[error("the port is not a number from 0 to 65535")]
    BadPort,
    #[error("there is no host")]
    NoHost,
    #[error("between the brackets is no IPv6 address")]
    BadV6,
    #[error("an IPv6 address stands in brackets")]
    BareV6,
    #[error("the host is no IPv4 address")]
    BadV4,
    #[error("a host name has at most 253 characters")]
    LongHost,
    #[error("a host name has letters, digits, `.`, `-` and `_`")]
    BadHost,
    #[error("the path of a Unix socket begins with `/`")]
    RelativePath,
    #[error("the path of a Unix socket has at most 107 bytes")]
    LongPath,
    #[error("one listens on an IP address or on localhost")]
    Elsewhere,
}

/// A text is no address to listen on. The message says what would be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; {REMEDY}")]
pub struct BadListenAddress(BadAddress);

/// Checks an address to listen on, for the command line.
///
/// # Errors
/// The text is no such address; the error says why.
pub fn listen_address(text: &str) -> Result<String, BadListenAddress> {
    check(text, true)
        .and_then(|()| listens(text))
        .map(|()| text.to_owned())
        .map_err(BadListenAddress)
}

/// The IP address and port to listen on; `localhost` is 127.0.0.1. `None`: the text is a Unix socket, or a
/// name, which may lead anywhere.
pub fn listen_socket(text: &str) -> Option<SocketAddr> {
    match text.rsplit_once(':') {
        Some((host, port)) if host.eq_ignore_ascii_case("localhost") => {
            Some((Ipv4Addr::LOCALHOST, port.parse().ok()?).into())
        }
        _ => text.parse().ok(),
    }
}

fn listens(text: &str) -> Result<(), BadAddress> {
    match text.starts_with("unix:") || listen_socket(text).is_some() {
        true => Ok(()),
        false => Err(BadAddress::Elsewhere),
    }
}

fn read(
    node: &Node,
    cx: &Reading,
    check: impl Fn(&str) -> Result<(), BadAddress>,
) -> Result<String, Diagnostic> {
    let text = node.scalar().unwrap_or_default();
    match check(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(why) => Err(cx
            .expected(node, &format!("an address ({why})"))
            .with_remedy(REMEDY)),
    }
}

const REMEDY: &str = "write `host:port`, `[v6]:port` or `unix:/path`";

/// Checks that `text` is an address, of a listener if `listens`.
pub(crate) fn check(text: &str, listens: bool) -> Result<(), BadAddress> {
    if let Some(path) = text.strip_prefix("unix:") {
        // The kernel takes 107 bytes and a terminating zero.
        return match path {
            _ if !path.starts_with('/') => Err(BadAddress::RelativePath),
            _ if path.len() > 107 || path.contains('\0') => Err(BadAddress::LongPath),
            _ => Ok(()),
        };
    }
    let (host, port) = text.rsplit_once(':').ok_or(BadAddress::NoPort)?;
    match port.parse::<u16>() {
        Ok(0) if !listens => return Err(BadAddress::PortZero),
        Ok(_) if port.bytes().all(|b| b.is_ascii_digit()) => {}
        _ => return Err(BadAddress::BadPort),
    }
    if let Some(v6) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return v6
            .parse::<std::net::Ipv6Addr>()
            .map(|_| ())
            .map_err(|_| BadAddress::BadV6);
    }
    let looks_like_v4 = host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    match host {
        "" => Err(BadAddress::NoHost),
        _ if host.contains(':') => Err(BadAddress::BareV6),
        _ if looks_like_v4 && host.parse::<std::net::Ipv4Addr>().is_err() => Err(BadAddress::BadV4),
        _ if host.len() > 253 => Err(BadAddress::LongHost),
        _ if host
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_')) =>
        {
            Ok(())
        }
        _ => Err(BadAddress::BadHost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in [
            "10.0.0.1:11211",
            "[::1]:1",
            "[fe80::1]:65535",
            "cache-0.cache.svc:11211",
            "a_b:1",
            "unix:/run/x.sock",
        ] {
            assert_eq!(check(good, false), Ok(()), "{good}");
        }
        let bad = [
            "",
            ":",
            "10.0.0.1",
            "10.0.0.1:",
            "10.0.0.1:0",
            "10.0.0.1:65536",
            "10.0.0.1:+1",
            "10.0.0:1",
            "::1:11211",
            "[::1]",
            "[::g]:1",
            ":11211",
            "a b:1",
            "unix:x",
            "unix:",
            "a/b:1",
            "[a:1",
        ];
        for bad in bad {
            assert!(check(bad, false).is_err(), "{bad}");
        }
        assert_eq!(check("0.0.0.0:0", true), Ok(()));
        assert!(check(&format!("unix:/{}", "x".repeat(107)), false).is_err());
    }
}
