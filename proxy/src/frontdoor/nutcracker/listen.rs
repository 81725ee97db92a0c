//! The listeners of a pool.

use std::net::IpAddr;

use super::value::{decimal, text};
use crate::config::{
    Diagnostic, Place, check_address,
    document::{Node, Value},
    listen_socket,
    reading::Reading,
};

/// The address of a listener, and the mode of its socket file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listen {
    /// As our configuration writes it.
    pub(super) address: String,
    pub(super) mode: Option<u32>,
}

/// Reads `host:port`, or `/path` with permissions in octal behind it.
pub(super) fn listen(node: &Node, cx: &Reading) -> Result<Listen, Diagnostic> {
    let text = text(node, cx)?;
    if text.starts_with('/') {
        return socket(text, node, cx);
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(cx
            .expected(node, "`host:port`, or the path of a socket")
            .with_remedy("the path of a socket begins with `/`"));
    };
    let Some(port @ 1..=65535) = decimal(port) else {
        return Err(cx.expected(node, "an address whose port is a number from 1 to 65535"));
    };
    let address = with_port(host, port);
    if listen_socket(&address).is_none() {
        return Err(cx
            .expected(node, "an address of this host")
            .with_remedy("write an IP address (0.0.0.0: all of them) or `localhost`"));
    }
    Ok(Listen { address, mode: None })
}

/// Reads what an option says in the same words. `None` if the text is no address to listen on.
pub(super) fn listen_option(text: &str) -> Option<Listen> {
    let node = Node {
        at: Place { line: 1, column: 1 },
        value: Value::Scalar {
            text: text.to_owned(),
            quoted: true,
        },
    };
    listen(&node, &Reading::default()).ok()
}

/// `host:port` as our configuration writes it: an IPv6 address stands in brackets.
pub(super) fn with_port(host: &str, port: i32) -> String {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(_)) => format!("[{host}]:{port}"),
        _ => format!("{host}:{port}"),
    }
}

fn socket(text: &str, node: &Node, cx: &Reading) -> Result<Listen, Diagnostic> {
    let (path, mode) = match text.split_once(' ') {
        Some((path, mode)) => (path, Some(mode.trim_start())),
        None => (text, None),
    };
    let octal = |mode: &str| u32::from_str_radix(mode, 8).ok().filter(|mode| *mode <= 0o777);
    let mode = match mode.map(|mode| octal(mode).ok_or(mode)) {
        None => None,
        Some(Ok(mode)) => Some(mode),
        Some(Err(_)) => {
            return Err(cx
                .expected(node, "permissions in octal behind the path")
                .with_remedy("write three digits from 0 to 7, as `/run/pool.sock 0660`"));
        }
    };
    let address = format!("unix:{path}");
    match check_address(&address, true) {
        // twemproxy changes nothing where the permissions are 0.
        Ok(()) => Ok(Listen {
            address,
            mode: mode.filter(|mode| *mode != 0),
        }),
        Err(why) => Err(cx.expected(node, &format!("the path of a socket ({why})"))),
    }
}
