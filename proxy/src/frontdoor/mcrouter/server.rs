//! A pool's server as mcrouter writes it.

use std::net::Ipv6Addr;

use super::tls::is_asked_for;
use crate::config::{
    BadAddress, Diagnostic, check_address,
    document::{Node, Value, shortened},
    reading::Reading,
    schema::Server,
};

/// `host:port[:protocol[:security[:compression]]]`, `[v6]:port…` or `unix:/path`. The port is left out where
/// the pool gives it. With it comes whether it asks for TLS; `None`: that is the pool's to say.
pub(super) fn server(
    node: &Node,
    port_override: Option<i32>,
    cx: &mut Reading,
) -> Result<(Server, Option<bool>), Diagnostic> {
    let Value::Scalar { text, quoted: true } = &node.value else {
        return Err(cx.expected(node, "a server as a string, or a route handle"));
    };
    let (address, tls) = address(text, port_override).map_err(|why| {
        cx.refuse(
            node.at,
            format!(
                "invalid server address `{}` ({why}), line: {}",
                shortened(text),
                node.at.line
            ),
        )
    })?;
    let server = Server {
        address,
        name: None,
        weight: 1.0,
        zone: None,
        pod: None,
    };
    Ok((server, tls))
}

/// Why a text is no server that can be served. The operator has to correct it.
#[derive(Debug, PartialEq, thiserror::Error)]
enum BadServer {
    #[error(transparent)]
    Address(#[from] BadAddress),
    #[error("`{0}` is not served yet")]
    NotServed(String),
}

fn address(text: &str, port_override: Option<i32>) -> Result<(String, Option<bool>), BadServer> {
    if let Some(socket) = text.strip_prefix("unix:") {
        let (path, rest) = socket.split_once(':').unwrap_or((socket, ""));
        let tls = options(rest.split(':'))?;
        let address = format!("unix:{path}");
        check_address(&address, false)?;
        return Ok((address, tls));
    }
    // A host in brackets may be a name, too.
    let (host, rest) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        Some((host, rest)) if rest.is_empty() || rest.starts_with(':') => {
            let host = match host.parse::<Ipv6Addr>() {
                Ok(_) => format!("[{host}]"),
                Err(_) => host.to_owned(),
            };
            (host, rest.strip_prefix(':').unwrap_or(rest))
        }
        Some(_) => return Err(BadAddress::NoPort.into()),
        None => {
            let (host, rest) = text.split_once(':').unwrap_or((text, ""));
            (host.to_owned(), rest)
        }
    };
    let (written, rest) = rest.split_once(':').unwrap_or((rest, ""));
    let tls = options(rest.split(':'))?;
    let port = port_override.map(|port| port.to_string());
    // The port of the pool takes the place of whatever is written.
    let port = match port.as_deref().unwrap_or(written) {
        "" => return Err(BadAddress::NoPort.into()),
        port => port,
    };
    let address = format!("{host}:{port}");
    check_address(&address, false)?;
    Ok((address, tls))
}

/// Protocol, security and compression. Words that are left out are the pool's. Compression is about replies
/// that carry more than ASCII. Returns whether TLS is asked for.
fn options<'a>(words: impl Iterator<Item = &'a str>) -> Result<Option<bool>, BadServer> {
    let mut tls = None;
    for (i, word) in words.enumerate() {
        let is_served = match i {
            0 => matches!(word, "" | "ascii"),
            1 if word.is_empty() => true,
            1 => {
                tls = is_asked_for(word);
                tls.is_some()
            }
            2 => matches!(word, "" | "notcompressed" | "compressed"),
            _ => false,
        };
        if !is_served {
            return Err(BadServer::NotServed(shortened(word)));
        }
    }
    Ok(tls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_as_mcrouter_writes_them() {
        let good = [
            ("10.0.0.1:11211", "10.0.0.1:11211"),
            ("10.0.0.1:11211:ascii", "10.0.0.1:11211"),
            ("cache:1:ascii:plain:notcompressed", "cache:1"),
            ("cache:1:ascii:plain:compressed", "cache:1"),
            ("cache:1:", "cache:1"),
            ("cache:1::plain", "cache:1"),
            ("cache:1:ascii::", "cache:1"),
            ("[localhost]:11211", "localhost:11211"),
            ("[10.0.0.1]:1:ascii", "10.0.0.1:1"),
            ("[::1]:11211:ascii:plain", "[::1]:11211"),
            ("unix:/run/memcached.sock", "unix:/run/memcached.sock"),
            ("unix:/run/memcached.sock:ascii:plain", "unix:/run/memcached.sock"),
        ];
        for (text, expected) in good {
            let plain = text.contains("plain").then_some(false);
            assert_eq!(address(text, None), Ok((expected.to_owned(), plain)), "{text}");
        }
        for bad in [
            "",
            "cache",
            "cache:0",
            "a:x",
            "a:1:caret",
            "a:1:ASCII",
            "a::ascii",
            "[::1]x:1",
            "[::1:1",
            "[]:1",
            "a:1:ascii:tls",
            "a:1:ascii:tls_to_plain",
            "a:1:ascii:plain:notcompressed:x",
            "a:1:ascii:plain:notcompressed:",
            "[::1]",
            "::1:1",
        ] {
            assert!(address(bad, None).is_err(), "{bad}");
        }
        let at = |text| address(text, Some(5)).map(|(address, _)| address);
        assert_eq!(at("cache").as_deref(), Ok("cache:5"));
        assert_eq!(at("[::1]:x:ascii").as_deref(), Ok("[::1]:5"));
        assert_eq!(at("cache:1:ascii").as_deref(), Ok("cache:5"));
        for word in ["ssl", "fizz", "ktls12"] {
            let text = format!("cache:1:ascii:{word}");
            assert_eq!(address(&text, None), Ok(("cache:1".to_owned(), Some(true))));
        }
    }
}
