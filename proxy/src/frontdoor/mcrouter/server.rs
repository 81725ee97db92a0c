//! A pool's server as mcrouter writes it.

use crate::config::{
    BadAddress, Diagnostic, check_address,
    document::{Node, Value, shortened},
    reading::Reading,
    schema::Server,
};

/// `host:port[:protocol[:security[:compression]]]`, `[v6]:port…` or `unix:/path`. The port is left out where
/// the pool gives it.
pub(super) fn server(
    node: &Node,
    port_override: Option<i32>,
    cx: &mut Reading,
) -> Result<Server, Diagnostic> {
    let Value::Scalar { text, quoted: true } = &node.value else {
        return Err(cx.expected(node, "a server as a string, or a route handle"));
    };
    let address = address(text, port_override).map_err(|why| {
        cx.refuse(
            node.at,
            format!(
                "invalid server address `{}` ({why}), line: {}",
                shortened(text),
                node.at.line
            ),
        )
    })?;
    Ok(Server {
        address,
        name: None,
        weight: 1.0,
        zone: None,
    })
}

/// Why a text is no server that can be served. The operator has to correct it.
#[derive(Debug, PartialEq, thiserror::Error)]
enum BadServer {
    #[error(transparent)]
    Address(#[from] BadAddress),
    #[error("`{0}` is not served yet")]
    NotServed(String),
}

fn address(text: &str, port_override: Option<i32>) -> Result<String, BadServer> {
    if let Some(socket) = text.strip_prefix("unix:") {
        let (path, rest) = socket.split_once(':').unwrap_or((socket, ""));
        options(rest.split(':').filter(|word| !word.is_empty()))?;
        let address = format!("unix:{path}");
        check_address(&address, false)?;
        return Ok(address);
    }
    let (host, rest) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        Some((v6, rest)) => (format!("[{v6}]"), rest.strip_prefix(':').unwrap_or(rest)),
        None => {
            let (host, rest) = text.split_once(':').unwrap_or((text, ""));
            (host.to_owned(), rest)
        }
    };
    let mut words = rest.split(':').filter(|word| !word.is_empty()).peekable();
    let written = words.next_if(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    options(words)?;
    let port = port_override.map(|port| port.to_string());
    let port = port.as_deref().or(written).ok_or(BadAddress::NoPort)?;
    let address = format!("{host}:{port}");
    check_address(&address, false)?;
    Ok(address)
}

/// Protocol, security and compression. Only the plain ones are served.
fn options<'a>(words: impl Iterator<Item = &'a str>) -> Result<(), BadServer> {
    for (word, served) in words.zip(
        ["ascii", "plain", "notcompressed"]
            .into_iter()
            .map(Some)
            .chain(std::iter::repeat(None)),
    ) {
        if served != Some(word) {
            return Err(BadServer::NotServed(shortened(word)));
        }
    }
    Ok(())
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
            ("[::1]:11211:ascii:plain", "[::1]:11211"),
            ("unix:/run/memcached.sock", "unix:/run/memcached.sock"),
            ("unix:/run/memcached.sock:ascii:plain", "unix:/run/memcached.sock"),
        ];
        for (text, expected) in good {
            assert_eq!(address(text, None).as_deref(), Ok(expected), "{text}");
        }
        for bad in [
            "",
            "cache",
            "cache:0",
            "a:1:caret",
            "a:1:ascii:ssl",
            "a:1:ascii:plain:notcompressed:x",
            "[::1]",
            "::1:1",
        ] {
            assert!(address(bad, None).is_err(), "{bad}");
        }
        assert_eq!(address("cache", Some(5)).as_deref(), Ok("cache:5"));
        assert_eq!(address("[::1]:ascii", Some(5)).as_deref(), Ok("[::1]:5"));
        assert_eq!(address("cache:1:ascii", Some(5)).as_deref(), Ok("cache:5"));
    }
}
