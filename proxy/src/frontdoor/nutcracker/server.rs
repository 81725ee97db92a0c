//! A server of a pool: `host:port:weight`, or `/path:weight`, and a name behind it.

use super::{
    listen::with_port,
    value::{decimal, text},
};
use crate::config::{Diagnostic, check_address, document::Node, reading::Reading, schema::Server};

/// The port that is no part of a server's name: libmemcached has it so.
const DEFAULT_PORT: i32 = 11211;

/// Reads a server.
pub(super) fn server(node: &Node, cx: &Reading) -> Result<Server, Diagnostic> {
    const FORM: &str =
        "write `host:port:weight` or `/path:weight`, and behind it, if you like, a blank and a name";
    let text = text(node, cx)?;
    let refuse = |what: &str| cx.expected(node, what).with_remedy(FORM);
    let (place, given) = match text.rsplit_once(' ') {
        Some((place, name)) => (place, Some(name).filter(|name| !name.is_empty())),
        None => (text, None),
    };
    let (place, weight) = place
        .rsplit_once(':')
        .ok_or_else(|| refuse("a server with a weight"))?;
    let Some(weight @ 1..) = decimal(weight) else {
        return Err(refuse("a server whose weight is a number from 1"));
    };
    let (address, name) = if place.starts_with('/') {
        (format!("unix:{place}"), place)
    } else {
        let (host, port) = place
            .rsplit_once(':')
            .ok_or_else(|| refuse("a server with a port and a weight"))?;
        let Some(number @ 1..=65535) = decimal(port) else {
            return Err(refuse("a server whose port is a number from 1 to 65535"));
        };
        let name = if number == DEFAULT_PORT { host } else { place };
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        (with_port(host, number), name)
    };
    if let Err(why) = check_address(&address, false) {
        return Err(refuse(&format!("the address of a server ({why})")));
    }
    Ok(Server {
        address,
        name: Some(given.unwrap_or(name).to_owned()),
        weight: f64::from(weight),
        zone: None,
    })
}
