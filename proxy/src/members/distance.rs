//! How far a member is from this process.

use std::{collections::HashSet, net::IpAddr};

use serde::Serialize;

/// Nearest first. Between two members of the same distance the pool's order decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// In this process (the embedded store).
    Process,
    /// On this host.
    Host,
    /// In this zone.
    Zone,
    /// Anywhere else.
    Elsewhere,
}

/// Where this process is: so that one configuration serves every node.
#[derive(Clone, Debug, Default)]
pub struct Here {
    addresses: HashSet<IpAddr>,
    zone: Option<String>,
}

impl Here {
    /// `node` is this node's own address where the host's interfaces do not tell it (in a container without the host's
    /// network); given, it is the only one that counts: on a test machine all of 127.0.0.0/8 is "this host".
    pub fn new(node: &[IpAddr], zone: Option<String>) -> Self {
        let addresses = if node.is_empty() {
            interfaces()
        } else {
            node.iter().copied().collect()
        };
        Self { addresses, zone }
    }

    /// How far a server at this address (none: a Unix socket) and in this zone is.
    pub fn distance(&self, address: Option<IpAddr>, zone: Option<&str>) -> Distance {
        match address {
            None => Distance::Host,
            Some(address) if self.addresses.contains(&address.to_canonical()) => Distance::Host,
            Some(_) if zone.is_some() && zone == self.zone.as_deref() => Distance::Zone,
            Some(_) => Distance::Elsewhere,
        }
    }
}

/// The addresses of this host's interfaces, and 127.0.0.1.
fn interfaces() -> HashSet<IpAddr> {
    let listed = if_addrs::get_if_addrs().unwrap_or_default();
    let loopback = IpAddr::from([127, 0, 0, 1]);
    listed
        .into_iter()
        .map(|interface| interface.ip())
        .chain([loopback])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_node_address_is_the_only_local_one() {
        let here = Here::new(&["127.0.0.2".parse().unwrap()], Some("a".into()));
        let cases = [
            (Some("127.0.0.2"), None, Distance::Host),
            (Some("::ffff:127.0.0.2"), None, Distance::Host),
            (Some("127.0.0.1"), None, Distance::Elsewhere),
            (Some("10.0.0.1"), Some("a"), Distance::Zone),
            (Some("10.0.0.1"), Some("b"), Distance::Elsewhere),
            (None, None, Distance::Host),
        ];
        for (address, zone, expected) in cases {
            let address = address.map(|text| text.parse().unwrap());
            assert_eq!(here.distance(address, zone), expected, "{address:?} in {zone:?}");
        }
    }

    #[test]
    fn without_one_this_hosts_interfaces_are_local() {
        let here = Here::new(&[], None);
        assert_eq!(
            here.distance(Some("127.0.0.1".parse().unwrap()), None),
            Distance::Host
        );
        assert_eq!(
            here.distance(Some("192.0.2.1".parse().unwrap()), None),
            Distance::Elsewhere
        );
    }
}
