//! Health listeners, and how clients are led away.

use super::names::PoolName;
use crate::config::{
    Diagnostic,
    document::Node,
    form::{ByName, Choice, Count, Form, List, Optional, PathText, Shape, TcpAddress, Time, Word},
    reading::{Kind, Reading},
    schema::{Drain, HealthCheck, HealthListener, Network},
    section::section,
};

section! {
    /// An address where load balancers ask whether clients may be sent here. Its address alone is enough.
    #[short(address)]
    pub(super) struct HealthKeys {
        /// `IP:port`, `[v6]:port` or `localhost:port` (127.0.0.1).
        address: TcpAddress,
        /// How the answer is given.
        check: Word<HealthCheck> = HealthCheck::Http,
        /// The least number of members that must be up, by pool. Without it one in every pool.
        pools: ByName<Count<1>, PoolName>,
        /// Who may ask: IP addresses, and networks such as `10.0.0.0/16`. Others are closed without an
        /// answer. Without it everybody may.
        allow: List<NetworkText> = Vec::new(),
    }
}

impl Choice for HealthCheck {
    const WHAT: &'static str = "a kind of health check";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        (
            "http",
            Self::Http,
            "HTTP 1.0 and 1.1, any path: 200, or 503 with the reason in one line",
        ),
        (
            "tcp",
            Self::Tcp,
            "a connection is accepted and closed, or the port is closed",
        ),
    ];
}

/// A network.
#[derive(Debug)]
pub(super) struct NetworkText;

impl Form for NetworkText {
    type Value = Network;

    fn shape() -> Shape {
        Shape::Text {
            what: "IP address or network",
            pattern: Some("^[0-9A-Fa-f.:]+(/[0-9]+)?$"),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Network, Diagnostic> {
        Network::parse(node.scalar().unwrap_or_default()).ok_or_else(|| {
            cx.expected(node, "an IP address or a network")
                .with_remedy("write `127.0.0.1`, `10.0.0.0/16` or `fd00::/8`")
        })
    }
}

/// A health listener. Its place and its pools are recorded for the checks.
#[derive(Debug)]
pub(super) struct HealthForm;

impl Form for HealthForm {
    type Value = HealthListener;

    fn shape() -> Shape {
        HealthKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<HealthListener, Diagnostic> {
        let HealthKeys {
            address,
            check,
            pools,
            allow,
        } = HealthKeys::read(node, cx)?;
        let site = cx.site(node.at);
        if check == HealthCheck::Tcp && !allow.is_empty() {
            return Err(site
                .refuse("with `check: tcp` the kernel accepts everybody, whatever `allow` says")
                .with_remedy("leave `allow` out, or write `check: http`"));
        }
        cx.index.health.push(site);
        cx.within("pools", |cx| {
            for (name, least) in &pools {
                cx.mention(name.at, Kind::Pool, &name.text);
                let remedy = "lower the number, or list more servers".to_owned();
                cx.want(name.at, &name.text, *least, remedy);
            }
        });
        Ok(HealthListener {
            address,
            check,
            pools: pools
                .into_iter()
                .map(|(name, least)| (name.text, least))
                .collect(),
            allow,
        })
    }
}

section! {
    /// How clients are led away: by the file, by `POST /drain` of the admin port, and by SIGTERM.
    pub(super) struct DrainKeys {
        /// While this file is there the proxy drains; relative to this file. Without it no file is looked
        /// for.
        file: Optional<PathText>,
        /// Time for which `/ready` and the health listeners are unwell while everybody is still served, so
        /// that balancers stop sending clients before there is nobody to take them.
        delay: Time = Drain::DEFAULT.delay,
        /// Time after that at which clients that are still connected are cut off.
        limit: Time = Drain::DEFAULT.limit,
    }
}

/// How clients are led away, as it stands in a configuration.
#[derive(Debug)]
pub(super) struct DrainForm;

impl Form for DrainForm {
    type Value = Drain;

    fn shape() -> Shape {
        DrainKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Drain, Diagnostic> {
        let DrainKeys { file, delay, limit } = DrainKeys::read(node, cx)?;
        Ok(Drain { file, delay, limit })
    }

    fn absent() -> Option<Drain> {
        Some(Drain::DEFAULT)
    }
}
