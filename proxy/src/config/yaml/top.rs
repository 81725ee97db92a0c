//! The keys of the file itself, and those sections that need no file of their own.

use std::{collections::BTreeMap, path::PathBuf};

use super::{pool::PoolForm, route::RouteForm};
use crate::config::{
    Diagnostic,
    document::{Name, Node, Value},
    form::{
        Apart, ByName, Choice, Count, Form, HostName, List, ListenAddress, Mode, Named, Optional, Owner,
        PathText, PositiveTime, Shape, Size, Time, Word,
    },
    reading::Reading,
    schema::{Config, Embedded, Limits, Listener, Nodes, Permissions, Protocol},
    section::section,
};

section! {
    /// A configuration: where clients connect, which servers there are, and how requests find them.
    pub(in crate::config) struct TopKeys {
        /// Where clients connect, and which route their requests enter.
        listeners: Apart<List<Apart<ListenerForm>>>,
        /// Where operators look: `/live`, `/ready`, `/metrics`, `/config`, `/explain`. Without it there is no admin port.
        admin: Apart<Optional<AdminAddress>>,
        /// Names by which operators ask the admin port, beside IP addresses, names without a dot, this machine's own name and those below
        /// `localhost`, `local`, `svc`, `internal`, `home.arpa` and `test`. Requests for other names are refused: a web page from
        /// elsewhere could be behind them.
        admin_hosts: Apart<List<HostName>> = Some(Vec::new()),
        /// Sets of servers, by name.
        pools: Apart<ByName<Apart<PoolForm>, PoolName>>,
        /// Routes, by name.
        routes: Apart<ByName<RouteForm, RouteName>>,
        /// Bounds on what clients may take.
        limits: Apart<LimitsKeys>,
        /// The store in this process that `embedded` routes share.
        embedded: Apart<EmbeddedKeys>,
        /// Worker threads. Without it one for each processor that this process may use.
        workers: Apart<Optional<Count<1, 1024>>>,
        /// A file that says which copies of replicated pools missed writes, so that a restart does not forget it; relative to
        /// this file. Without it a start takes every copy that answers as good.
        state: Apart<Optional<PathText>>,
        /// Who tells on which NUMA node of this host clients and servers are, for `nearest`: `agent` is enough. Without it all on this
        /// host are equally near.
        nodes: Apart<Optional<NodesForm>>,
    }
}

section! {
    /// Who tells on which NUMA node of this host clients and servers are.
    #[short(from)]
    pub(super) struct NodesKeys {
        /// `agent`: the node agent, at the socket that it has unless told otherwise; or the path of its socket, relative to this file.
        from: AgentSocket,
        /// What the agent said last holds for so long after it is gone, as while it is updated; then all on this host are equally
        /// near until it is back.
        grace: Time = Nodes::GRACE,
    }
}

/// Who tells of NUMA nodes, as the configuration has it.
#[derive(Debug)]
pub(super) struct NodesForm;

impl Form for NodesForm {
    type Value = Nodes;

    fn shape() -> Shape {
        NodesKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Nodes, Diagnostic> {
        let NodesKeys { from, grace } = NodesKeys::read(node, cx)?;
        Ok(Nodes { from, grace })
    }
}

/// The word `agent`, or the path of a Unix socket.
#[derive(Debug)]
pub(super) struct AgentSocket;

impl Form for AgentSocket {
    type Value = PathBuf;

    fn shape() -> Shape {
        Shape::Text {
            what: "`agent` or a path",
            pattern: Some("^(agent|.*/.*)$"),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<PathBuf, Diagnostic> {
        match node.scalar().unwrap_or_default() {
            "agent" => Ok(PathBuf::from(Nodes::SOCKET)),
            // The kernel takes 107 bytes and a terminating zero.
            path if path.contains('/') && !path.contains('\0') && path.len() <= 107 => {
                Ok(PathBuf::from(path))
            }
            _ => Err(cx
                .expected(node, "`agent`, or the path of its socket")
                .with_remedy(format!("write `nodes: agent`, which is {}", Nodes::SOCKET))),
        }
    }
}

section! {
    /// An address where clients connect.
    pub(super) struct ListenerKeys {
        /// `IP:port`, `[v6]:port`, `localhost:port` (127.0.0.1) or `unix:/path`; port 0 = any free one, told at start.
        address: ListenAddress,
        /// What its clients speak. Its route leads to pools that speak the same.
        protocol: Word<Protocol> = Protocol::MEMCACHED,
        /// Where its requests enter.
        route: RouteForm,
        /// Who may connect to a Unix socket, as `chmod` takes it: three octal digits. Without it the umask of the process decides.
        mode: Optional<Mode>,
        /// Whose a Unix socket is, as `chown` takes it: `USER`, `USER:GROUP` or `:GROUP`, names or numbers. Without it the process'.
        owner: Optional<Owner>,
    }
}

impl Choice for Protocol {
    const WHAT: &'static str = "a protocol";
    const WORDS: &'static [(&'static str, Self, &'static str)] =
        &[("memcached", Self::MEMCACHED, "text and meta commands")];
}

section! {
    /// Bounds on what clients may take.
    pub(super) struct LimitsKeys {
        /// Connections of clients, all workers together; one more is closed at once.
        clients: Count<1> = Limits::DEFAULT.clients as u32,
        /// Requests of one client that may wait for replies; reading from it stops there.
        requests_in_flight: Count<1> = Limits::DEFAULT.requests_in_flight as u32,
        /// Bytes buffered for one connection before reading from it stops.
        connection_bytes: Size = Limits::DEFAULT.connection_bytes,
        /// Bytes of all buffers. When they are used up, requests wait for room, and clients that hold the most are closed.
        total_bytes: Size = Limits::DEFAULT.total_bytes,
        /// The largest value; a larger one is refused as memcached does.
        value_size: Size = Limits::DEFAULT.value_bytes,
        /// A client that neither sends nor is answered for this long is closed; 0s = never.
        idle: Time = Limits::DEFAULT.idle,
        /// A client that takes nothing of what it is due for this long is closed.
        write_timeout: PositiveTime = Limits::DEFAULT.write_timeout,
        /// A client that has begun a request and not sent the rest after this long is closed. A value above 64 KiB that is
        /// passed on to servers as it comes may take longer.
        request_timeout: PositiveTime = Limits::DEFAULT.request_timeout,
        /// Bytes a second that a client in the middle of a value of more than 64 KiB must move while others want its place; one
        /// that moves less is closed. A server takes or gives three such values at once for each worker.
        minimum_rate: Size = Limits::DEFAULT.minimum_rate,
    }
}

section! {
    /// The store in this process that `embedded` routes share.
    pub(super) struct EmbeddedKeys {
        /// For keys, values and their overhead; beyond it the least recently used are dropped.
        memory: Size = Embedded::DEFAULT.memory,
    }
}

/// Pools, for messages.
#[derive(Debug)]
pub(in crate::config) struct PoolName;

impl Named for PoolName {
    const WHAT: &'static str = "pool";
}

/// Routes, for messages.
#[derive(Debug)]
pub(in crate::config) struct RouteName;

impl Named for RouteName {
    const WHAT: &'static str = "route";
}

/// A listener, its address' place noted for the checks.
#[derive(Debug)]
pub(super) struct ListenerForm;

impl Form for ListenerForm {
    type Value = Listener;

    fn shape() -> Shape {
        ListenerKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Listener, Diagnostic> {
        let keys = ListenerKeys::read(node, cx)?;
        let site = cx.site(node.at);
        let permissions = Permissions {
            mode: keys.mode,
            owner: keys.owner,
        };
        if !keys.address.starts_with("unix:") && permissions != Permissions::default() {
            return Err(site
                .refuse("`mode` and `owner` are those of a Unix socket")
                .with_remedy("leave them out, or write `address: unix:/PATH`"));
        }
        cx.index.listeners.push(site);
        Ok(Listener {
            protocol: keys.protocol,
            address: keys.address,
            route: keys.route,
            permissions,
        })
    }
}

/// The admin port's address, its place noted for the checks.
#[derive(Debug)]
pub(super) struct AdminAddress;

impl Form for AdminAddress {
    type Value = String;

    fn shape() -> Shape {
        ListenAddress::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
        cx.index.admin = Some(cx.site(node.at));
        let address = ListenAddress::read(node, cx)?;
        match address.starts_with("unix:") {
            true => Err(cx
                .refuse(node.at, "operators ask by TCP")
                .with_remedy("write `host:port` or `[v6]:port`")),
            false => Ok(address),
        }
    }
}

/// Whether the file has keys that are unknown, of which one may be a misspelt `pools` or `routes`.
fn has_unknown_keys(root: &Node) -> bool {
    let (Value::Map(entries), Shape::Section(section)) = (&root.value, TopKeys::shape()) else {
        return false;
    };
    let is_known = |name: &Name| section.keys.iter().any(|key| key.name == name.text);
    !entries.iter().all(|(name, _)| is_known(name))
}

/// The configuration that the keys describe, without those parts of it that have mistakes.
pub(super) fn build(keys: TopKeys, root: &Node, cx: &mut Reading) -> Config {
    if keys.listeners.as_ref().is_some_and(Vec::is_empty) {
        let empty = cx
            .refuse(root.at, "`listeners` is empty")
            .with_remedy("name at least one address and its route");
        cx.mistakes.push(empty);
    }
    cx.index.has_all_names = keys.pools.is_some() && keys.routes.is_some() && !has_unknown_keys(root);
    let pools = keys.pools.unwrap_or_default();
    let pools = named("pools", pools, |cx| &mut cx.index.pools, cx);
    let routes = keys.routes.unwrap_or_default();
    let routes = routes
        .into_iter()
        .map(|(name, route)| (name, Some(route)))
        .collect();
    let routes = named("routes", routes, |cx| &mut cx.index.routes, cx);
    Config {
        workers: keys.workers.flatten().map(|n| n as usize),
        listeners: keys.listeners.into_iter().flatten().flatten().collect(),
        admin: keys.admin.flatten(),
        admin_hosts: keys.admin_hosts.unwrap_or_default(),
        pools,
        routes,
        limits: keys.limits.map_or(Limits::DEFAULT, limits),
        embedded: keys
            .embedded
            .map_or(Embedded::DEFAULT, |EmbeddedKeys { memory }| Embedded { memory }),
        state: keys.state.flatten(),
        nodes: keys.nodes.flatten(),
    }
}

fn limits(keys: LimitsKeys) -> Limits {
    let LimitsKeys {
        clients,
        requests_in_flight,
        connection_bytes,
        total_bytes,
        value_size,
        idle,
        write_timeout,
        request_timeout,
        minimum_rate,
    } = keys;
    Limits {
        clients: clients as usize,
        requests_in_flight: requests_in_flight as usize,
        connection_bytes,
        total_bytes,
        value_bytes: value_size,
        idle,
        write_timeout,
        request_timeout,
        minimum_rate,
    }
}

type Sites = BTreeMap<String, crate::config::reading::Site>;

/// Refuses names that mean something else; notes where each is defined, be what it names good or not.
fn named<T>(
    key: &'static str,
    entries: Vec<(Name, Option<T>)>,
    sites: impl Fn(&mut Reading) -> &mut Sites,
    cx: &mut Reading,
) -> BTreeMap<String, T> {
    let mut out = BTreeMap::new();
    for (name, value) in entries {
        let site = cx.within(key, |cx| cx.within(&*name.text, |cx| cx.site(name.at)));
        let refused = match name.text.as_str() {
            "" => Some("a name is empty"),
            "embedded" | "null" => Some("this name is a route of its own"),
            text if text.contains('/') || text.chars().any(char::is_control) => {
                Some("a name has no `/` and no control characters")
            }
            _ => None,
        };
        if let Some(problem) = refused {
            cx.mistakes
                .push(site.refuse(problem).with_remedy("choose another name"));
        }
        sites(cx).insert(name.text.clone(), site);
        out.extend(value.map(|value| (name.text, value)));
    }
    out
}
