//! The servers of a pool: each is `host:port:weight`, or `/path:weight`, and a name behind it. In their place
//! may stand the endpoint that names them: `elasticache:NAME:port`, which twemproxy does not know.

use std::collections::HashMap;

use super::{
    listen::with_port,
    value::{decimal, text},
};
use crate::config::{
    Diagnostic, Place, check_address,
    document::{Node, Value, shortened},
    reading::Reading,
    schema::{Endpoint, Server, Source},
};

/// The port that is no part of a server's name: libmemcached has it so.
const DEFAULT_PORT: i32 = 11211;

/// Reads a list of servers, or of one endpoint that names them.
pub(super) fn servers(node: &Node, cx: &mut Reading) -> Result<Source, Diagnostic> {
    let Value::List(listed) = &node.value else {
        return Err(cx
            .expected(node, "a list of servers")
            .with_remedy("write one in each line, as `- 10.0.0.1:11211:1`"));
    };
    if listed.is_empty() {
        return Err(cx.expected(node, "at least one server"));
    }
    for (i, node) in listed.iter().enumerate() {
        if let Some(address) = node.scalar().and_then(endpoint_of) {
            let is_alone = listed.len() == 1;
            return cx.within(format!("[{i}]"), |cx| endpoint(address, is_alone, node, cx));
        }
    }
    let mut known: HashMap<String, Place> = HashMap::new();
    let read = listed.iter().enumerate().map(|(i, node)| {
        cx.within(format!("[{i}]"), |cx| {
            let server = server(node, cx)?;
            let name = server.name.clone().unwrap_or_default();
            match known.insert(name.clone(), node.at) {
                None => Ok(server),
                Some(first) => Err(cx
                    .refuse(
                        node.at,
                        format!(
                            "a server of line {} is called `{}`, too",
                            first.line,
                            shortened(&name)
                        ),
                    )
                    .with_remedy("give one of them another name, behind a blank")),
            }
        })
    });
    let read: Vec<_> = read.collect();
    cx.all(read).map(Source::new)
}

/// The address of the endpoint that an entry names. `None`: the entry is a server. A server's host may be
/// called `elasticache`, but no endpoint's name is a number.
fn endpoint_of(entry: &str) -> Option<&str> {
    let address = entry.strip_prefix("elasticache:")?;
    let place = address.split(' ').next().unwrap_or_default();
    let is_number = |byte: u8| byte.is_ascii_digit() || byte == b':';
    (!place.bytes().all(is_number)).then_some(address)
}

fn endpoint(address: &str, is_alone: bool, node: &Node, cx: &Reading) -> Result<Source, Diagnostic> {
    if !is_alone {
        return Err(cx
            .refuse(node.at, "an endpoint beside other servers")
            .with_remedy("leave it alone in the list, as it names all servers"));
    }
    match check_address(address, false) {
        Ok(()) if !address.starts_with("unix:") => Ok(Source::new(Endpoint {
            address: address.to_owned(),
            interval: Endpoint::INTERVAL,
            keep: None,
            tls: None,
        })),
        _ => Err(cx.expected(node, "the address of an endpoint").with_remedy(
            "write `elasticache:NAME.cfg.cache.amazonaws.com:11211`, as the cluster's page shows it",
        )),
    }
}

/// Reads a server.
fn server(node: &Node, cx: &Reading) -> Result<Server, Diagnostic> {
    const FORM: &str =
        "write `host:port:weight` or `/path:weight`, and behind it, if you like, a blank and a name";
    let text = text(node, cx)?;
    let refuse = |what: &str| cx.expected(node, what).with_remedy(FORM);
    // A blank at the end stands before a name that is empty.
    let (place, base) = match text.rsplit_once(' ') {
        Some((place, name)) => (place, Some(name)),
        None => (text, None),
    };
    let (place, weight) = place
        .rsplit_once(':')
        .ok_or_else(|| refuse("a server with a weight"))?;
    let Some(weight @ 1..) = decimal(weight) else {
        return Err(refuse("a server whose weight is a number from 1"));
    };
    let (address, name) = if place.starts_with('/') {
        if place.contains(':') {
            return Err(refuse("the path of a socket without a colon, and a weight"));
        }
        // A colon ends the name, as it stands between the host and the port of other servers.
        (format!("unix:{place}"), format!("{place}:"))
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
        (with_port(host, number), name.to_owned())
    };
    if let Err(why) = check_address(&address, false) {
        return Err(refuse(&format!("the address of a server ({why})")));
    }
    Ok(Server {
        address,
        name: Some(base.map_or(name, str::to_owned)),
        weight: f64::from(weight),
        zone: None,
        pod: None,
    })
}
