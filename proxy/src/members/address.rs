//! A server's address: an endpoint, or a name that stands for one.

use std::net::SocketAddr;

/// An address as the configuration has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address<'a> {
    /// `unix:/path`.
    Path(&'a str),
    /// `IP:port`.
    Ip(SocketAddr),
    /// `name:port`. The address of the name is asked for by DNS and in the hosts file.
    Host(&'a str, u16),
}

impl<'a> Address<'a> {
    /// Parses an address. `None` if the text is invalid.
    pub fn parse(text: &'a str) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Some(Self::Path(path));
        }
        if let Ok(at) = text.parse() {
            return Some(Self::Ip(at));
        }
        let (host, port) = text.rsplit_once(':')?;
        let is_name = !host.is_empty() && !host.contains(['/', ':', '[', ']']);
        is_name.then_some(Self::Host(host, port.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::Address::{self, Host, Ip, Path};

    #[test]
    fn a_name_is_what_is_neither_a_path_nor_an_ip_address() {
        for (text, expected) in [
            ("unix:/run/m", Some(Path("/run/m"))),
            ("10.0.0.1:11211", Some(Ip(([10, 0, 0, 1], 11211).into()))),
            ("[::1]:1", Some(Ip((std::net::Ipv6Addr::LOCALHOST, 1).into()))),
            ("mc-0.mc.svc:11211", Some(Host("mc-0.mc.svc", 11211))),
            ("localhost:1", Some(Host("localhost", 1))),
            ("pool/mc-0:11211", None),
            ("[fe80::g]:1", None),
            ("mc-0", None),
            (":1", None),
            ("mc-0:65536", None),
        ] {
            assert_eq!(Address::parse(text), expected, "{text}");
        }
    }
}
