//! Finds out who the proxies of a listener are.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::Path,
};

use crate::{
    config::{
        check_address, file,
        schema::{Discovery, Peers},
    },
    control::surroundings::{discovery::Resolve, host::way_to},
    members::{
        Address,
        discovery::{BadNode, Node, NodeList},
    },
};

/// Why it is not known who the proxies are. What is known stays.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unknown {
    /// DNS names none.
    #[error("{name}: {failure}")]
    Dns { name: String, failure: String },
    /// The file cannot be read, or is no list of addresses.
    #[error("{path}: {why}")]
    File { path: String, why: String },
    /// An address is none that clients could use.
    #[error("`{address}`: {why}")]
    Address { address: String, why: BadNode },
    /// Clients cannot be told where this proxy is.
    #[error("the address under which clients reach this proxy is not known; name it with `announce`")]
    Own,
    /// There are too many, or two of one name.
    #[error("the list has more proxies than any real one")]
    TooMany,
}

/// What is known of the proxies' names.
#[derive(Default)]
pub(super) struct Proxies {
    /// The address in use of each name, which stays while its look-up fails.
    found: BTreeMap<String, IpAddr>,
    /// A look-up of this round has failed. The others are not waited for.
    has_failed: bool,
}

impl Proxies {
    /// The proxies, and the name of this one among them. The version of the list is 0. `bound` is where the
    /// listener listens; `None`: at a Unix socket.
    pub(super) async fn find(
        &mut self,
        discovery: &Discovery,
        bound: Option<SocketAddr>,
        resolver: &impl Resolve,
    ) -> Result<(NodeList, String), Unknown> {
        self.has_failed = false;
        let mut nodes = match &discovery.peers {
            Peers::Dns(name) => named(name, resolver).await?,
            Peers::Listed(addresses) => self.listed(addresses, resolver).await?,
            Peers::File(path) => self.listed(&addresses(path)?, resolver).await?,
        };
        let own = match &discovery.announce {
            Some(address) => self.node(address, resolver).await?,
            None => own(bound, &nodes)?,
        };
        let is_own = |node: &&Node| {
            let is_there = own.ip().is_some() && node.ip() == own.ip() && node.port() == own.port();
            node.name() == own.name() || is_there
        };
        let name = match nodes.iter().find(is_own) {
            Some(known) => known.name(),
            None => {
                nodes.push(own.clone());
                own.name()
            }
        };
        nodes.sort();
        nodes.dedup_by_key(|node| node.name());
        let list = NodeList::new(0, nodes).ok_or(Unknown::TooMany)?;
        Ok((list, name))
    }

    async fn listed(&mut self, addresses: &[String], resolver: &impl Resolve) -> Result<Vec<Node>, Unknown> {
        let mut nodes = Vec::with_capacity(addresses.len());
        for address in addresses {
            nodes.push(self.node(address, resolver).await?);
        }
        Ok(nodes)
    }

    async fn look_up(&mut self, host: &str, resolver: &impl Resolve) {
        if self.has_failed {
            return;
        }
        let found = resolver.resolve(host).await;
        self.has_failed = found.is_err();
        let found = found.ok().flatten().unwrap_or_default();
        let before = self.found.get(host).filter(|before| found.contains(before));
        if let Some(&ip) = before.or(found.iter().min()) {
            self.found.insert(host.to_owned(), ip);
        }
    }

    /// The proxy at this address. If its name has never had an IP address, the list has none.
    async fn node(&mut self, address: &str, resolver: &impl Resolve) -> Result<Node, Unknown> {
        let bad = |why| Unknown::Address {
            address: address.to_owned(),
            why,
        };
        match Address::parse(address) {
            Some(Address::Ip(at)) => at_ip(at).map_err(bad),
            Some(Address::Host(host, port)) => {
                self.look_up(host, resolver).await;
                Node::new(host, self.found.get(host).copied(), port).map_err(bad)
            }
            Some(Address::Path(_)) | None => Err(bad(BadNode::Parts)),
        }
    }
}

/// A node that is known by its IP address.
fn at_ip(at: SocketAddr) -> Result<Node, BadNode> {
    Node::new(&at.ip().to_string(), Some(at.ip()), at.port())
}

/// The proxies at all addresses of a name.
async fn named(name: &str, resolver: &impl Resolve) -> Result<Vec<Node>, Unknown> {
    let failed = |failure: String| Unknown::Dns {
        name: name.to_owned(),
        failure,
    };
    let found: Vec<SocketAddr> = match Address::parse(name) {
        Some(Address::Ip(at)) => vec![at],
        Some(Address::Host(host, port)) => {
            let found = resolver.resolve(host).await.map_err(failed)?;
            let found = found.ok_or_else(|| failed("there is no such name".to_owned()))?;
            found.into_iter().map(|ip| (ip, port).into()).collect()
        }
        Some(Address::Path(_)) | None => Vec::new(),
    };
    let nodes: Result<Vec<Node>, BadNode> = found.into_iter().map(at_ip).collect();
    nodes.map_err(|why| failed(why.to_string()))
}

/// The addresses in a file, one a line. A file without any is more likely half written than meant.
fn addresses(path: &Path) -> Result<Vec<String>, Unknown> {
    let failed = |why: String| Unknown::File {
        path: path.display().to_string(),
        why,
    };
    let text = file::read(path).map_err(|diagnostic| failed(diagnostic.to_string()))?;
    let mut addresses = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let address = line.split_once('#').map_or(line, |(before, _)| before).trim();
        if address.is_empty() {
            continue;
        }
        check_address(address, false)
            .map_err(|why| failed(format!("line {} is no address ({why})", number + 1)))?;
        addresses.push(address.to_owned());
    }
    match addresses.is_empty() {
        true => Err(failed("names no proxy".to_owned())),
        false => Ok(addresses),
    }
}

/// This proxy, where the configuration does not say how clients reach it.
fn own(bound: Option<SocketAddr>, peers: &[Node]) -> Result<Node, Unknown> {
    let bound = bound.ok_or(Unknown::Own)?;
    let ip = match bound.ip().is_unspecified() {
        false => Some(bound.ip()),
        true => peers
            .iter()
            .find_map(|peer| way_to((peer.ip()?, peer.port()).into())),
    };
    let at = ip.map(|ip| SocketAddr::new(ip, bound.port()));
    at.and_then(|at| at_ip(at).ok()).ok_or(Unknown::Own)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knows `a` and `all`. `late` is not answered.
    struct Names;

    impl Resolve for Names {
        async fn resolve(&self, host: &str) -> Result<Option<Vec<IpAddr>>, String> {
            let ip = |last| IpAddr::from([127, 0, 0, last]);
            match host {
                "a" => Ok(Some(vec![ip(1)])),
                "all" => Ok(Some(vec![ip(2), ip(1)])),
                "late" => Err("late".to_owned()),
                _ => Ok(None),
            }
        }
    }

    async fn found(peers: Peers, announce: Option<&str>, bound: &str) -> Result<(String, String), String> {
        let discovery = Discovery {
            announce: announce.map(str::to_owned),
            peers,
            keep: None,
        };
        let found = Proxies::default()
            .find(&discovery, bound.parse().ok(), &Names)
            .await;
        found
            .map(|(list, own)| (list.text(), own))
            .map_err(|error| error.to_string())
    }

    fn listed(addresses: &[&str]) -> Peers {
        Peers::Listed(addresses.iter().map(|&address| address.to_owned()).collect())
    }

    #[tokio::test]
    async fn list_is_the_same_whether_it_names_this_proxy_or_not() {
        let both = "0\n127.0.0.1|127.0.0.1|1 127.0.0.2|127.0.0.2|1\n";
        let named = "0\n127.0.0.2|127.0.0.2|1 a|127.0.0.1|1\n";
        for (peers, announce, bound, list, own) in [
            (listed(&["127.0.0.2:1"]), None, "127.0.0.1:1", both, "127.0.0.1:1"),
            (
                listed(&["127.0.0.2:1", "127.0.0.1:1"]),
                None,
                "127.0.0.1:1",
                both,
                "127.0.0.1:1",
            ),
            (listed(&["127.0.0.2:1"]), None, "0.0.0.0:1", both, "127.0.0.1:1"),
            (
                Peers::Dns("all:1".into()),
                None,
                "127.0.0.1:1",
                both,
                "127.0.0.1:1",
            ),
            (
                Peers::Dns("all:1".into()),
                None,
                "127.0.0.2:1",
                both,
                "127.0.0.2:1",
            ),
            (listed(&["127.0.0.2:1", "a:1"]), None, "127.0.0.1:1", named, "a:1"),
            (listed(&["127.0.0.2:1"]), Some("a:1"), "127.0.0.1:1", named, "a:1"),
            (listed(&["127.0.0.2:1"]), Some("a:1"), "0.0.0.0:9", named, "a:1"),
        ] {
            let shown = format!("{peers:?} {announce:?} {bound}");
            let expected = Ok((list.to_owned(), own.to_owned()));
            assert_eq!(found(peers, announce, bound).await, expected, "{shown}");
        }
    }

    #[tokio::test]
    async fn proxy_whose_name_is_not_found_has_no_ip_and_other_failures_are_no_list() {
        let list = found(listed(&["late:1"]), None, "127.0.0.1:1").await.unwrap().0;
        assert_eq!(list, "0\n127.0.0.1|127.0.0.1|1 late||1\n");
        let folder = tempfile::tempdir().unwrap();
        let file = |text: &str| {
            let path = folder.path().join(format!("peers{}", text.len()));
            std::fs::write(&path, text).unwrap();
            Peers::File(path)
        };
        for (peers, bound, why) in [
            (Peers::Dns("late:1".into()), "127.0.0.1:1", "late:1: late"),
            (Peers::Dns("none:1".into()), "127.0.0.1:1", "no such name"),
            (Peers::File("/nowhere".into()), "127.0.0.1:1", "/nowhere"),
            (file("# none\n"), "127.0.0.1:1", "names no proxy"),
            (
                file("127.0.0.2:1\nb\n"),
                "127.0.0.1:1",
                "line 2 is no address (there is no port)",
            ),
            (file("127.0.0.2:112110\n"), "127.0.0.1:1", "line 1 is no address"),
            (listed(&["late:1"]), "0.0.0.0:1", "name it with `announce`"),
            (listed(&["unix:/run/m"]), "127.0.0.1:1", "`unix:/run/m`"),
            (listed(&["127.0.0.2:1"]), "unix:/run/m", "name it with `announce`"),
        ] {
            let failure = found(peers, None, bound).await.unwrap_err();
            assert!(failure.contains(why), "{failure}");
        }
        let good = found(file("127.0.0.2:1 # the other\n\n"), None, "127.0.0.1:1").await;
        assert!(good.is_ok(), "{good:?}");
    }
}
