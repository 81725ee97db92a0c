//! One node of a list: `host|ip|port`, of which the IP address may be missing.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

use proxima_wire::hash::ketama_name;

use crate::config::{BadAddress, check_address, schema::Server};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    host: String,
    port: u16,
    ip: Option<IpAddr>,
}

/// Why a word is no node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadNode {
    /// It has not three parts.
    #[error("a node is `host|ip|port`")]
    Parts,
    /// The port is no port.
    #[error("the port is not a number from 1 to 65535")]
    Port,
    /// The middle is neither empty nor an IP address.
    #[error("its ip is no IP address")]
    Ip,
    /// The first part is no host.
    #[error("its host is none ({0})")]
    Host(BadAddress),
}

impl Node {
    /// A node. `host` is a name or an IP address.
    ///
    /// # Errors
    /// The host name is invalid.
    pub fn new(host: &str, ip: Option<IpAddr>, port: u16) -> Result<Self, BadNode> {
        if host.parse::<IpAddr>().is_err() {
            // With a colon it could be read as the path of a Unix socket.
            match host.contains(':') {
                true => return Err(BadNode::Host(BadAddress::BadHost)),
                false => check_address(&format!("{host}:1"), false).map_err(BadNode::Host)?,
            }
        }
        match port {
            0 => Err(BadNode::Port),
            _ => Ok(Self {
                host: host.to_owned(),
                port,
                ip,
            }),
        }
    }

    /// Reads a node.
    pub(super) fn parse(word: &str) -> Result<Self, BadNode> {
        let mut parts = word.split('|');
        let (Some(host), Some(ip), Some(port), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(BadNode::Parts);
        };
        let port = super::number(port).and_then(|port| u16::try_from(port).ok());
        let ip = match ip {
            "" => None,
            ip => Some(ip.parse().map_err(|_| BadNode::Ip)?),
        };
        Self::new(host, ip, port.ok_or(BadNode::Port)?)
    }

    /// The host's name, or its IP address. A node without an IP address of its own is found by it.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its IP address. `None` if its host's name is to be resolved.
    pub fn ip(&self) -> Option<IpAddr> {
        self.ip.or_else(|| self.host.parse().ok())
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `host:port`, by which it is known wherever it is.
    pub fn name(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// The node as a server of a pool. Its IP address saves a look-up. Hashes use its host: a node that is
    /// replaced keeps its keys.
    pub(super) fn server(&self) -> Server {
        let name = self.name();
        Server {
            address: match self.ip {
                Some(ip) => SocketAddr::new(ip, self.port).to_string(),
                None => name.clone(),
            },
            name: Some(ketama_name(&name, None).to_owned()),
            weight: 1.0,
            zone: None,
            pod: None,
        }
    }
}

/// As it stands in a list.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}|", self.host)?;
        if let Some(ip) = self.ip {
            write!(f, "{ip}")?;
        }
        write!(f, "|{}", self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_has_a_host_perhaps_an_ip_and_a_port() {
        for good in [
            "a.x|10.0.0.1|11211",
            "a||1",
            "10.0.0.1|10.0.0.1|65535",
            "::1|::1|1",
        ] {
            assert_eq!(Node::parse(good).map(|node| node.to_string()), Ok(good.into()));
        }
        let port = Err(BadNode::Port);
        for (bad, expected) in [
            ("a", Err(BadNode::Parts)),
            ("a:11211", Err(BadNode::Parts)),
            ("a|11211", Err(BadNode::Parts)),
            ("a|10.0.0.1|1|1", Err(BadNode::Parts)),
            ("a||0", port.clone()),
            ("a||", port.clone()),
            ("a||65536", port.clone()),
            ("a||112110", port.clone()),
            ("a||+1", port.clone()),
            ("a||0x1", port),
            ("a|10.0.0|1", Err(BadNode::Ip)),
            ("a|b|1", Err(BadNode::Ip)),
            ("||1", Err(BadNode::Host(BadAddress::NoHost))),
            ("|10.0.0.1|1", Err(BadNode::Host(BadAddress::NoHost))),
            ("a/b||1", Err(BadNode::Host(BadAddress::BadHost))),
            ("unix:/a||1", Err(BadNode::Host(BadAddress::BadHost))),
        ] {
            assert_eq!(Node::parse(bad), expected, "{bad}");
        }
    }
}
