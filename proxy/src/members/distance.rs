//! The distance of a member from this process or from a client, and the source of that knowledge.

use std::{collections::HashSet, net::IpAddr};

use serde::Serialize;

/// Nearest first. Between two members of the same distance the pool's order decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// In this process (the embedded store).
    Process,
    /// On the client's NUMA node; only the node agent tells.
    NumaNode,
    /// On the client's socket of this host; only the node agent tells.
    Socket,
    /// On this host.
    Host,
    /// In this zone.
    Zone,
    /// Anywhere else.
    Elsewhere,
}

impl Distance {
    /// Its word in replies, metrics and `explain`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::NumaNode => "numa_node",
            Self::Socket => "socket",
            Self::Host => "host",
            Self::Zone => "zone",
            Self::Elsewhere => "elsewhere",
        }
    }
}

/// The source of a distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DistanceSource {
    /// The node agent names the server's address.
    Agent,
    /// `--node-address` or `HOST_IP` names this host's addresses.
    Option,
    /// The host's interfaces have the server's address.
    Interfaces,
    /// The API server of Kubernetes says that the server's pod is on this node (`NODE_NAME`).
    Kubernetes,
    /// A Unix socket leads to a server on this host.
    UnixSocket,
    /// `--zone` and the server's `zone`.
    Zone,
    /// Nothing is known of the server's address: it is taken to be far.
    Nothing,
}

impl DistanceSource {
    /// Its word in replies, metrics and `explain`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Option => "option",
            Self::Interfaces => "interfaces",
            Self::Kubernetes => "kubernetes",
            Self::UnixSocket => "unix_socket",
            Self::Zone => "zone",
            Self::Nothing => "nothing",
        }
    }
}

/// The location of this process, so that one configuration serves every node.
#[derive(Clone, Debug, Default)]
pub struct OwnLocation {
    addresses: HashSet<IpAddr>,
    /// The addresses were given, not read off the interfaces.
    is_given: bool,
    zone: Option<String>,
    /// The name of this node in Kubernetes.
    node: Option<String>,
}

impl OwnLocation {
    /// `node` is this node's own address where the host's interfaces do not show it (in a container without
    /// the host's network). If it is given, it alone counts: on a test machine all of 127.0.0.0/8 is "this
    /// host".
    pub fn new(node: &[IpAddr], zone: Option<String>) -> Self {
        let addresses = if node.is_empty() {
            interfaces()
        } else {
            node.iter().copied().collect()
        };
        Self {
            addresses,
            is_given: !node.is_empty(),
            zone,
            node: None,
        }
    }

    /// The same, on the node with this name in Kubernetes. `None`: it is not known.
    pub fn on_node(mut self, name: Option<String>) -> Self {
        self.node = name;
        self
    }

    /// The distance of a server at this address (`None`: a Unix socket), on this node of Kubernetes and in
    /// this zone, and its source.
    pub fn distance(
        &self,
        address: Option<IpAddr>,
        node: Option<&str>,
        zone: Option<&str>,
    ) -> (Distance, DistanceSource) {
        match address {
            None => (Distance::Host, DistanceSource::UnixSocket),
            Some(address) if self.addresses.contains(&address.to_canonical()) => match self.is_given {
                true => (Distance::Host, DistanceSource::Option),
                false => (Distance::Host, DistanceSource::Interfaces),
            },
            Some(_) if node.is_some() && node == self.node.as_deref() => {
                (Distance::Host, DistanceSource::Kubernetes)
            }
            Some(_) if zone.is_some() && zone == self.zone.as_deref() => {
                (Distance::Zone, DistanceSource::Zone)
            }
            Some(_) => (Distance::Elsewhere, DistanceSource::Nothing),
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
        let here = OwnLocation::new(&["127.0.0.2".parse().unwrap()], Some("a".into()));
        let cases = [
            (Some("127.0.0.2"), None, Distance::Host, DistanceSource::Option),
            (
                Some("::ffff:127.0.0.2"),
                None,
                Distance::Host,
                DistanceSource::Option,
            ),
            (
                Some("127.0.0.1"),
                None,
                Distance::Elsewhere,
                DistanceSource::Nothing,
            ),
            (Some("10.0.0.1"), Some("a"), Distance::Zone, DistanceSource::Zone),
            (
                Some("10.0.0.1"),
                Some("b"),
                Distance::Elsewhere,
                DistanceSource::Nothing,
            ),
            (None, None, Distance::Host, DistanceSource::UnixSocket),
        ];
        for (address, zone, expected, source) in cases {
            let address = address.map(|text| text.parse().unwrap());
            let found = here.distance(address, None, zone);
            assert_eq!(found, (expected, source), "{address:?} in {zone:?}");
        }
    }

    #[test]
    fn a_pod_on_this_node_is_on_this_host() {
        let here = OwnLocation::new(&["10.0.0.9".parse().unwrap()], Some("a".into()));
        let at = |here: &OwnLocation, node| here.distance(Some("10.0.0.1".parse().unwrap()), node, Some("a"));
        let near = here.clone().on_node(Some("n1".into()));
        assert_eq!(
            at(&near, Some("n1")),
            (Distance::Host, DistanceSource::Kubernetes)
        );
        assert_eq!(at(&near, Some("n2")), (Distance::Zone, DistanceSource::Zone));
        assert_eq!(
            at(&here, Some("n1")),
            (Distance::Zone, DistanceSource::Zone),
            "its own node is not known"
        );
        assert_eq!(at(&here, None), (Distance::Zone, DistanceSource::Zone));
    }

    #[test]
    fn without_one_this_hosts_interfaces_are_local() {
        let here = OwnLocation::new(&[], None);
        assert_eq!(
            here.distance(Some("127.0.0.1".parse().unwrap()), None, None),
            (Distance::Host, DistanceSource::Interfaces)
        );
        assert_eq!(
            here.distance(Some("192.0.2.1".parse().unwrap()), None, None),
            (Distance::Elsewhere, DistanceSource::Nothing)
        );
    }
}
