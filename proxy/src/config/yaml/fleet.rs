//! The section about the fleet.

use std::time::Duration;

use crate::config::{
    Diagnostic,
    document::{Node, Value},
    form::{
        Choice, Count, Form, List, ListenAddress, Optional, PathText, PositiveTime, ServerAddress, Shape,
        Text, Word,
    },
    reading::Reading,
    schema::{Fleet, FleetPeers, Identity, PeerTls, Peers, Role},
    section::section,
    source::ServiceForm,
};

section! {
    /// The fleet: proxies, each with a copy at its side, that keep one promise together.
    pub(super) struct FleetKeys {
        /// Where the other peers connect: `IP:port` or `[v6]:port`.
        listen: ListenAddress,
        /// The address under which the other peers reach this one. The default is `listen`; where that is
        /// every address of this machine (`0.0.0.0`), the one by which this machine reaches the first peer.
        announce: Optional<ServerAddress>,
        /// Where the other peers are: `{kubernetes: NAME}` (the pods of a Service), `{dns: NAME:PORT}`, `{file:
        /// PATH}` (an address a line, followed), or a list of addresses. This peer's own may be among them.
        peers: FleetPeersForm,
        /// The name of this peer, unique in the fleet and the same after a restart. The default is the name
        /// of the host.
        name: Optional<Text>,
        /// A directory that outlives the process, relative to this file. Each peer has its own.
        dir: PathText,
        /// The peers that vote: `auto` (the first 3; from 9 peers on 5), or a list of names.
        voters: VotersForm,
        /// The number of peers at the very first start, which waits until so many are there. The default is
        /// the number of peers that are listed; with a file or DNS it must be said. With `kubernetes` the first
        /// start waits for all pods that the Service has.
        expect: Optional<Count<1, 2048>>,
        /// What this proxy is in the fleet.
        role: Word<Role> = Role::Peer,
        /// Time for which a peer may answer after it was last heard of, from `500ms` to `10s`. A peer that is
        /// cut off is left out after this time.
        lease: PositiveTime = Fleet::LEASE,
        /// A change that a peer leaves unanswered for this long is complained of, and the peer may be left
        /// out. It is less than `lease`.
        suspect: PositiveTime = Fleet::SUSPECT,
        /// The files of mutual TLS among the peers, or `none`. Without it `listen` must be an address of the
        /// loopback interface.
        tls: Optional<TlsForm>,
    }
}

section! {
    /// The files of mutual TLS, in PEM form. They are read again when they change.
    pub(super) struct TlsKeys {
        /// This peer's certificate, with those between it and the authority.
        certificate: PathText,
        /// Its private key.
        key: PathText,
        /// The certificate of the authority that has signed those of all peers, and of nobody else.
        ca: PathText,
    }
}

impl Choice for Role {
    const WHAT: &'static str = "a role";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("peer", Self::Peer, "it serves clients, and may have copies"),
        (
            "witness",
            Self::Witness,
            "it only votes, so that of two peers one may be lost",
        ),
    ];
}

/// The peers of a fleet.
#[derive(Debug)]
pub(super) struct FleetPeersForm;

section! {
    /// Where the peers of a fleet are: one of these.
    pub(super) struct FleetPeersKeys {
        /// A Service whose pods are the peers, followed at the API server.
        kubernetes: Optional<ServiceForm>,
        /// `NAME:PORT`: a name whose addresses the peers have, asked every second.
        dns: Optional<ServerAddress>,
        /// A file with an address a line, which is followed.
        file: Optional<PathText>,
    }
}

impl Form for FleetPeersForm {
    type Value = FleetPeers;

    fn shape() -> Shape {
        Shape::AnyOf(vec![List::<ServerAddress>::shape(), FleetPeersKeys::shape()])
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<FleetPeers, Diagnostic> {
        if let Value::List(_) = &node.value {
            let listed = List::<ServerAddress>::read(node, cx)?;
            return Ok(FleetPeers::At(Peers::Listed(listed)));
        }
        let keys = FleetPeersKeys::read(node, cx)?;
        match (keys.kubernetes, keys.dns, keys.file) {
            (Some(service), None, None) => Ok(FleetPeers::Service(service)),
            (None, Some(dns), None) => Ok(FleetPeers::At(Peers::Dns(dns))),
            (None, None, Some(file)) => Ok(FleetPeers::At(Peers::File(file))),
            _ => Err(cx
                .refuse(node.at, "the peers need one of `kubernetes`, `dns` and `file`")
                .with_remedy(
                    "write `{kubernetes: NAME}`, `{dns: NAME:PORT}`, `{file: PATH}` or a list of addresses",
                )),
        }
    }
}

/// Other proxies.
#[derive(Debug)]
pub(super) struct PeersForm;

section! {
    /// Where the peers are, by a name or a file.
    pub(super) struct PeersKeys {
        /// `NAME:PORT`: a name whose addresses the peers have, asked every second.
        dns: Optional<ServerAddress>,
        /// A file with an address a line, which is followed.
        file: Optional<PathText>,
    }
}

impl Form for PeersForm {
    type Value = Peers;

    fn shape() -> Shape {
        Shape::AnyOf(vec![List::<ServerAddress>::shape(), PeersKeys::shape()])
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Peers, Diagnostic> {
        if let Value::List(_) = &node.value {
            return List::<ServerAddress>::read(node, cx).map(Peers::Listed);
        }
        let keys = PeersKeys::read(node, cx)?;
        match (keys.dns, keys.file) {
            (Some(dns), None) => Ok(Peers::Dns(dns)),
            (None, Some(file)) => Ok(Peers::File(file)),
            _ => Err(cx
                .refuse(node.at, "the peers need one of `dns` and `file`")
                .with_remedy("write `{dns: NAME:PORT}`, `{file: PATH}` or a list of addresses")),
        }
    }
}

/// The voters of a fleet.
#[derive(Debug)]
pub(super) struct VotersForm;

impl Form for VotersForm {
    type Value = Option<Vec<String>>;

    fn shape() -> Shape {
        Shape::AnyOf(vec![
            Shape::Text {
                what: "`auto`",
                pattern: Some("^auto$"),
            },
            List::<Text>::shape(),
        ])
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        if node.scalar() == Some("auto") {
            return Ok(None);
        }
        let names = List::<Text>::read(node, cx)?;
        match names.len() {
            1 | 3 | 5 => Ok(Some(names)),
            count => Err(cx
                .refuse(node.at, format!("{count} voters: one more would cost nothing"))
                .with_remedy("name 1, 3 or 5, or write `auto`")),
        }
    }

    fn absent() -> Option<Self::Value> {
        Some(None)
    }
}

/// The protection of channels: files, or the word `none`.
#[derive(Debug)]
pub(super) struct TlsForm;

impl Form for TlsForm {
    type Value = Option<PeerTls>;

    fn shape() -> Shape {
        Shape::AnyOf(vec![
            Shape::Text {
                what: "`none`",
                pattern: Some("^none$"),
            },
            TlsKeys::shape(),
        ])
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        if node.scalar() == Some("none") {
            return Ok(None);
        }
        let TlsKeys { certificate, key, ca } = TlsKeys::read(node, cx)?;
        let identity = Identity { certificate, key };
        Ok(Some(PeerTls { identity, ca }))
    }
}

/// The fleet as it stands in a configuration. Its place is recorded for the checks.
#[derive(Debug)]
pub(super) struct FleetForm;

impl Form for FleetForm {
    type Value = Fleet;

    fn shape() -> Shape {
        FleetKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Fleet, Diagnostic> {
        let keys = FleetKeys::read(node, cx)?;
        let site = cx.site(node.at);
        cx.index.fleet = Some(site);
        let refuse = |problem: String, remedy: &str| Err(cx.refuse(node.at, problem).with_remedy(remedy));
        let lease = keys.lease;
        if !(Duration::from_millis(500)..=Duration::from_secs(10)).contains(&lease) {
            return refuse(
                format!("`lease: {lease:?}` is out of bounds"),
                "write a time from 500ms to 10s",
            );
        }
        if keys.suspect >= lease {
            return refuse(
                format!("`suspect: {:?}` is not less than `lease`", keys.suspect),
                "a peer is complained of before its lease could end",
            );
        }
        let name = match keys.name.as_deref().map(variable) {
            Some(Some(variable)) => match value_of(variable) {
                Some(value) => Some(value),
                None => {
                    return refuse(
                        format!(
                            "the name of this peer is that of the variable `{variable}`, which is not set"
                        ),
                        "set it, or write the name itself",
                    );
                }
            },
            _ => keys.name,
        };
        let listed = match &keys.peers {
            FleetPeers::At(Peers::Listed(peers)) => Some(peers.len()),
            FleetPeers::At(Peers::Dns(_) | Peers::File(_)) => None,
            FleetPeers::Service(_) => Some(1),
        };
        let Some(expect) = keys.expect.map(|count| count as usize).or(listed) else {
            return refuse(
                "`expect` is missing: nobody can tell how many peers the first start waits for".to_owned(),
                "write `expect: 3`, or how many there are",
            );
        };
        let is_protected = keys.tls.is_some();
        let is_local = crate::config::listen_socket(&keys.listen).is_some_and(|at| at.ip().is_loopback());
        if !is_protected && !is_local {
            return refuse(
                format!(
                    "`tls` is missing, and `{}` is not only this machine's",
                    keys.listen
                ),
                "write `tls: {certificate: …, key: …, ca: …}` (`proxima fleet keys` makes them), or `tls: none` \
                 where nobody else reaches it",
            );
        }
        if keys.listen.starts_with("unix:") {
            return refuse("peers connect by TCP".to_owned(), "write `listen: IP:port`");
        }
        Ok(Fleet {
            listen: keys.listen,
            announce: keys.announce,
            peers: keys.peers,
            name,
            dir: keys.dir,
            voters: keys.voters,
            expect,
            role: keys.role,
            lease,
            suspect: keys.suspect,
            tls: keys.tls.flatten(),
        })
    }
}

/// The value of a variable of the environment that is set.
#[allow(
    clippy::disallowed_methods,
    reason = "one configuration serves all nodes: in Kubernetes only the environment has the node's name"
)]
fn value_of(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

/// The variable of the environment that a text stands for.
fn variable(text: &str) -> Option<&str> {
    text.strip_prefix("${")?.strip_suffix('}')
}
