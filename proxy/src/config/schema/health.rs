//! What load balancers are told, and how clients are led away.

use std::{collections::BTreeMap, net::IpAddr, path::PathBuf, time::Duration};

/// An address where load balancers ask whether clients may be sent here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthListener {
    /// `IP:port`, `[v6]:port` or `localhost:port`.
    pub address: String,
    /// How the answer is given.
    pub check: HealthCheck,
    /// The least number of members that must be up, by pool. Empty: one in every pool.
    pub pools: BTreeMap<String, u32>,
    /// The networks that may ask. An empty list lets everybody ask.
    pub allow: Vec<Network>,
}

/// How a health listener answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthCheck {
    /// HTTP: 200, or 503 with the reason.
    Http,
    /// A connection is accepted, or the port is closed.
    Tcp,
}

/// A network: an address, of which the first bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    ip: IpAddr,
    bits: u8,
}

impl Network {
    /// Reads `IP` or `IP/BITS`. `None`: the text is neither.
    pub fn parse(text: &str) -> Option<Self> {
        let (ip, bits) = match text.split_once('/') {
            Some((ip, bits)) => (ip, Some(bits)),
            None => (text, None),
        };
        let ip: IpAddr = ip.parse().ok()?;
        let most = if ip.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => bits.parse().ok()?,
            Some(_) => return None,
        };
        (bits <= most).then_some(Self { ip, bits })
    }

    /// Whether the address is in it. An IPv4 address that came by IPv6 is an IPv4 address.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let same = |one: u128, other: u128, size: u8| {
            let ignored = u32::from(size - self.bits);
            one.checked_shr(ignored) == other.checked_shr(ignored)
        };
        match (self.ip, ip.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(ip)) => same(own.to_bits().into(), ip.to_bits().into(), 32),
            (IpAddr::V6(own), IpAddr::V6(ip)) => same(own.to_bits(), ip.to_bits(), 128),
            _ => false,
        }
    }
}

/// How clients are led away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drain {
    /// While this file is there the proxy drains. `None`: no file is looked for.
    pub file: Option<PathBuf>,
    /// Time for which the proxy is unwell and still serves everybody.
    pub delay: Duration,
    /// Time after which clients that are still connected are cut off.
    pub limit: Duration,
}

impl Drain {
    /// No file, no delay, and time for what is under way.
    pub const DEFAULT: Self = Self {
        file: None,
        delay: Duration::ZERO,
        limit: Duration::from_secs(20),
    };
}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn a_network_contains_the_addresses_that_share_its_first_bits() {
        for (network, ip, inside) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("10.0.0.0/16", "10.0.255.7", true),
            ("10.0.0.0/16", "10.1.0.7", false),
            ("10.0.3.4/16", "10.0.0.7", true),
            ("10.0.0.0/16", "::ffff:10.0.0.7", true),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "fd00::1", true),
            ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe80::1", false),
        ] {
            let parsed = Network::parse(network).unwrap();
            assert_eq!(parsed.contains(ip.parse().unwrap()), inside, "{ip} in {network}");
        }
    }

    #[test]
    fn what_is_no_network_is_not_read() {
        for text in [
            "",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "::/129",
            "10.0.0/8",
            "any",
            "10.0.0.0/8/8",
        ] {
            assert_eq!(Network::parse(text), None, "{text}");
        }
    }
}
