//! The keys at the top of the file, and small sections.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use super::{
    discovery::DiscoveryForm,
    fleet::FleetForm,
    health::{DrainForm, HealthForm},
    login::{Checker, VariableName, access},
    names::{PoolName, RouteName},
    near::NearCacheKeys,
    permission::{Mode, Owner},
    pool::PoolForm,
    redis_commands::{CommandKeys, CommandName, declared},
    slow_requests::SlowRequestsKeys,
    tls::{ListenerTlsForm, ServerTlsForm},
};
use crate::config::{
    Diagnostic,
    document::{Name, Node, Value},
    form::{
        Apart, ByName, Choice, Count, Form, HostName, List, ListenAddress, Optional, PathText, PositiveTime,
        Shape, Size, TcpAddress, Text, Time, Word,
    },
    reading::Reading,
    routes::RouteForm,
    schema::{
        Access, Config, Consistency, Door, Drain, Embedded, HotKeys, Limits, Listener, NearCache, Nodes,
        Permissions, PlainLogins, Protocol, Reads, ReplyStyle, ShownKeys, SlowRequests, SocketOptions, Users,
        Writes,
    },
    section::section,
};

section! {
    /// A configuration: where clients connect, which servers there are, and how requests find them.
    pub(in crate::config) struct TopKeys {
        /// Where clients connect, and which route their requests enter.
        listeners: Apart<List<Apart<ListenerForm>>>,
        /// The admin port: `/live`, `/ready`, `/metrics`, `/config`, `/explain`. Without it there is none.
        admin: Apart<Optional<AdminForm>>,
        /// Further names by which operators reach the admin port. IP addresses, names without a dot, this
        /// machine's own name and names below `localhost`, `local`, `svc`, `internal`, `home.arpa` and `test`
        /// need no entry. Requests for other names are refused: a web page from elsewhere could be behind
        /// them.
        admin_hosts: Apart<List<HostName>> = Some(Vec::new()),
        /// Where load balancers ask whether clients may be sent here.
        health: Apart<List<HealthForm>> = Some(Vec::new()),
        /// How clients are led away when the proxy is taken out or ends.
        drain: Apart<DrainForm>,
        /// Sets of servers, by name.
        pools: Apart<ByName<Apart<PoolForm>, PoolName>>,
        /// Routes, by name.
        routes: Apart<ByName<RouteForm, RouteName>>,
        /// Commands of Redis that Proxima does not know: of modules, or newer, by name. Others that are
        /// unknown are answered as servers answer them.
        commands: Apart<ByName<Apart<CommandKeys>, CommandName>>,
        /// Limits on clients.
        limits: Apart<LimitsKeys>,
        /// The store in this process that `embedded` routes share.
        embedded: Apart<EmbeddedKeys>,
        /// The near cache of this process, which `near` routes share.
        near: Apart<NearCacheKeys>,
        /// Worker threads. The default is one for each processor that this process may use.
        workers: Apart<Optional<Count<1, 1024>>>,
        /// The state file, relative to this file. It records which copies of replicated pools have missed
        /// writes, so that a restart does not forget it. Without it a start takes every copy that answers as
        /// good.
        state: Apart<Optional<PathText>>,
        /// The source of the NUMA nodes of clients and servers, for `nearest`; `agent` is enough. Without it
        /// all servers on this host are equally near.
        nodes: Apart<Optional<NodesForm>>,
        /// The fleet that this proxy is a peer of. Without it this proxy keeps its promise alone: other
        /// proxies that write to the same servers do not know of it.
        fleet: Apart<Optional<FleetForm>>,
        /// When the keys that are asked for most are counted, by samples of requests.
        hot_keys: Apart<Word<HotKeys>> = Some(HotKeys::Watched),
        /// Slow requests, which are kept for operators; a time alone is enough. Without it none are.
        slow_requests: Apart<Optional<SlowRequestsKeys>>,
    }
}

section! {
    /// The source of the NUMA nodes of clients and servers.
    #[short(from)]
    pub(super) struct NodesKeys {
        /// `agent`: the node agent at its default socket; or the path of its socket, relative to this file.
        from: AgentSocket,
        /// Time for which the agent's last snapshot holds after the agent is gone, as during an update. After
        /// that all servers on this host are equally near until it is back.
        grace: Time = Nodes::GRACE,
    }
}

/// The source of NUMA nodes as it stands in a configuration.
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
        /// `IP:port`, `[v6]:port`, `localhost:port` (127.0.0.1) or `unix:/path`. Port 0 means any free port,
        /// which is logged at the start.
        address: ListenAddress,
        /// The protocol of its clients. Its route leads to pools with the same protocol.
        protocol: Word<Protocol> = Protocol::MEMCACHED,
        /// Where its requests enter.
        route: RouteForm,
        /// The mode of a Unix socket, as `chmod` takes it: three octal digits. The default is what the umask
        /// of the process leaves.
        mode: Optional<Mode>,
        /// The owner of a Unix socket, as `chown` takes it: `USER`, `USER:GROUP` or `:GROUP`, names or
        /// numbers. The default is the process' own.
        owner: Optional<Owner>,
        /// The users that clients of MySQL may be: `server`, which is the default, are those that the servers
        /// know; anything else is a file with them, relative to this file. It is read again when it changes.
        users: Optional<PathText>,
        /// What becomes of the password of a client of MySQL that speaks plainly, with `users: server`.
        plain_logins: Word<PlainLogins> = PlainLogins::Rejected,
        /// What becomes of statements of MySQL that write.
        writes: Word<Writes> = Writes::Served,
        /// Where reads of MySQL go.
        reads: Word<Reads> = Reads::Readers,
        /// How fresh reads of MySQL are, where no route and no user says it. Without it, as the pools say to
        /// which its route leads (`galera.consistency`).
        consistency: Optional<Word<Consistency>>,
        /// The version that clients of MySQL are greeted with before a server has told its own.
        server_version: Optional<Text>,
        /// A file with the password that clients of Redis must say, relative to this file. It is read again
        /// when it changes.
        password_file: Optional<PathText>,
        /// The environment variable with the password that clients of Redis must say.
        password_env: Optional<VariableName>,
        /// What else checks the login of clients of Redis.
        auth: Optional<Word<Checker>>,
        /// The proxies among which clients of memcached may choose, told to those who discover them as
        /// clients of ElastiCache do. Without it nobody is told anything.
        discovery: Optional<DiscoveryForm>,
        /// TLS with its clients. Without it they speak plainly.
        tls: Optional<ListenerTlsForm>,
    }
}

impl Choice for Protocol {
    const WHAT: &'static str = "a protocol";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("memcached", Self::MEMCACHED, "text and meta commands"),
        ("redis", Self::REDIS, "Redis and Valkey: RESP2 and RESP3"),
        ("mysql", Self::MYSQL, "MySQL and MariaDB"),
    ];
}

impl Choice for HotKeys {
    const WHAT: &'static str = "when hot keys are counted";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("watched", Self::Watched, "while somebody watches"),
        ("on", Self::On, "always, so that whoever comes sees them at once"),
    ];
}

impl Choice for Writes {
    const WHAT: &'static str = "what becomes of writes";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("served", Self::Served, "they go to the server that takes writes"),
        (
            "rejected",
            Self::Rejected,
            "they are rejected with error 1290, as by a server that only reads",
        ),
    ];
}

impl Choice for Reads {
    const WHAT: &'static str = "where reads go";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("readers", Self::Readers, "to servers that follow the writer"),
        ("writer", Self::Writer, "to the server that takes writes"),
    ];
}

impl Choice for Consistency {
    const WHAT: &'static str = "a consistency";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        (
            Self::Strict.name(),
            Self::Strict,
            "a read sees whatever any server had acknowledged before it came",
        ),
        (
            Self::Causal.name(),
            Self::Causal,
            "a read sees whatever this process had acknowledged before it came",
        ),
        (
            Self::Session.name(),
            Self::Session,
            "a read sees what its own session has written and seen before",
        ),
        (
            Self::Eventual.name(),
            Self::Eventual,
            "a read waits for nothing, and may be as old as `galera.read_age`",
        ),
    ];
}

section! {
    /// Limits on clients.
    pub(super) struct LimitsKeys {
        /// Connections of clients, all workers together. Further ones are closed at once.
        clients: Count<1> = Limits::DEFAULT.clients as u32,
        /// Requests of one client that may wait for replies. At this limit the client is not read.
        requests_in_flight: Count<1> = Limits::DEFAULT.requests_in_flight as u32,
        /// Bytes buffered for one connection. At this limit it is not read.
        connection_bytes: Size = Limits::DEFAULT.connection_bytes,
        /// Bytes of all buffers. At this limit requests wait for room, and clients that hold the most are
        /// closed.
        total_bytes: Size = Limits::DEFAULT.total_bytes,
        /// The largest value. A larger one is refused as memcached does.
        value_size: Size = Limits::DEFAULT.value_bytes,
        /// Time after which a client that neither sends nor waits for a reply is closed; 0s: never.
        idle: Time = Limits::DEFAULT.idle,
        /// The same for a client in a transaction, which holds locks of a server, or a connection to it
        /// (`MULTI` and `WATCH` of Redis); 0s: never.
        idle_in_transaction: Time = Limits::DEFAULT.idle_in_transaction,
        /// Time after which a server is asked to end a statement of MySQL that it has not answered (`KILL
        /// QUERY`), which then has error 1317; 0s: never.
        statement_timeout: Time = Limits::DEFAULT.statement_timeout,
        /// The greatest age of a client, so that new backends of a balancer get their share; 0s: there is
        /// none. A client is closed when nothing is due to it, after four fifths to the whole of this time:
        /// not all of those that came together leave together.
        age: Time = Limits::DEFAULT.age,
        /// Time after which a client that takes no bytes that wait for it is closed.
        write_timeout: PositiveTime = Limits::DEFAULT.write_timeout,
        /// Time from the first byte of a request to its last, after which the client is closed. A value above
        /// 64 KiB that is passed on to servers as it comes may take longer.
        request_timeout: PositiveTime = Limits::DEFAULT.request_timeout,
        /// Logins at servers (a user, a database) that clients of one worker may have at a time, beside the
        /// pools' own. Those that no client uses any more make room. One host gets three quarters of them at
        /// most.
        logins: Count<1, 65535> = Limits::DEFAULT.logins as u32,
        /// Bytes a second that a client in the middle of a value of more than 64 KiB must move while others
        /// wait for its place. A slower one is closed. A server takes or gives three such values at once for
        /// each worker.
        minimum_rate: Size = Limits::DEFAULT.minimum_rate,
    }
}

section! {
    /// The admin port. Its address alone is enough.
    #[short(address)]
    pub(super) struct AdminKeys {
        /// `IP:port`, `[v6]:port` or `localhost:port` (127.0.0.1).
        address: AdminAddress,
        /// Further names by which operators reach it, as in `admin_hosts`.
        hosts: List<HostName> = Vec::new(),
        /// TLS with operators. Without it they speak plainly.
        tls: Optional<ServerTlsForm>,
        /// The file with the tokens of those who may change something, one a line, each of 16 visible characters or
        /// more. It is read at every such request: add a new token before the old one is removed. Without it whoever
        /// reaches the port may change something, and orders of an operator are accepted from this host alone.
        token_file: Optional<PathText>,
        /// How keys are told that clients have asked for: in `/tap`, hot keys and `/near/top`. Whoever reaches the port
        /// may read them.
        keys: Word<ShownKeys> = ShownKeys::Plain,
    }
}

/// The admin port as it stands in a configuration.
#[derive(Debug)]
pub(super) struct AdminForm;

impl Form for AdminForm {
    type Value = AdminKeys;

    fn shape() -> Shape {
        AdminKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<AdminKeys, Diagnostic> {
        AdminKeys::read(node, cx)
    }
}

section! {
    /// The store in this process that `embedded` routes share.
    pub(super) struct EmbeddedKeys {
        /// Bytes for keys, values and their overhead. At this limit the least recently used are dropped.
        memory: Size = Embedded::DEFAULT.memory,
    }
}

/// A listener. Its place is recorded for the checks.
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
        let password = (keys.password_file, keys.password_env);
        let access = access(keys.auth, password, node.at, cx)?;
        let (tls, requires_tls) = keys.tls.unwrap_or_default();
        let door = Door {
            requires_tls,
            writes: keys.writes,
            reads: keys.reads,
            consistency: keys.consistency,
        };
        let is_mysql = keys.protocol == Protocol::MYSQL;
        if !is_mysql && (keys.users.is_some() || door != Door::default() || keys.server_version.is_some()) {
            return Err(site
                .refuse(
                    "`users`, `writes`, `reads`, `consistency`, `server_version` and `tls.required` are for clients of \
                     MySQL",
                )
                .with_remedy("leave them out, or write `protocol: mysql`"));
        }
        let users = match keys.users {
            _ if !is_mysql => None,
            Some(file) if file.as_os_str() != "server" => Some(Access::Users(Users {
                file,
                passwords: Vec::new(),
                known: Arc::default(),
            })),
            _ => {
                let problem =
                    "`users: server`: the proxy learns the passwords of the users, and keeps them in memory";
                cx.warn(node.at, problem);
                Some(Access::Servers(keys.plain_logins))
            }
        };
        if requires_tls && tls.is_none() && !matches!(users, Some(Access::Servers(_))) {
            return Err(site
                .refuse("`tls` with a list of users needs a certificate")
                .with_remedy("write `tls: {certificate: PATH, key: PATH, required: true}`"));
        }
        if keys.plain_logins != PlainLogins::Rejected && !matches!(users, Some(Access::Servers(_))) {
            return Err(site
                .refuse("`plain_logins` is for `users: server`, where clients of MySQL say their passwords")
                .with_remedy("leave it out"));
        }
        if keys.protocol != Protocol::REDIS && access != Access::Open {
            return Err(site
                .refuse("`password_file`, `password_env` and `auth` are for clients of Redis")
                .with_remedy("leave them out, or write `protocol: redis`"));
        }
        if let Some(discovery) = &keys.discovery {
            if keys.protocol != Protocol::MEMCACHED {
                return Err(site
                    .refuse("`discovery` is for clients of memcached")
                    .with_remedy("leave it out"));
            }
            if keys.address.starts_with("unix:") && discovery.announce.is_none() {
                return Err(site
                    .refuse("`discovery` at a Unix socket cannot tell where this proxy is")
                    .with_remedy("write `announce: NAME:port`, or listen by TCP"));
            }
        }
        cx.index.listeners.push(site);
        Ok(Listener {
            discovery: keys.discovery,
            access: users.unwrap_or(access),
            door,
            protocol: keys.protocol,
            address: keys.address,
            route: keys.route,
            permissions,
            socket: SocketOptions::default(),
            reply_style: ReplyStyle::Own,
            tls,
            server_version: keys.server_version,
        })
    }
}

/// The address of the admin port. Its place is recorded for the checks.
#[derive(Debug)]
pub(super) struct AdminAddress;

impl Form for AdminAddress {
    type Value = String;

    fn shape() -> Shape {
        TcpAddress::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
        cx.index.admin = Some(cx.site(node.at));
        TcpAddress::read(node, cx)
    }
}

/// Whether the file has unknown keys. One of them may be a misspelt `pools` or `routes`.
fn has_unknown_keys(root: &Node) -> bool {
    let (Value::Map(entries), Shape::Section(section)) = (&root.value, TopKeys::shape()) else {
        return false;
    };
    let is_known = |name: &Name| section.keys.iter().any(|key| key.name == name.text);
    !entries.iter().all(|(name, _)| is_known(name))
}

/// The configuration without those parts that have mistakes.
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
    let commands = declared(keys.commands.unwrap_or_default(), cx);
    let admin = keys.admin.flatten();
    let hosts = admin.iter().map(|admin| &admin.hosts).chain(&keys.admin_hosts);
    Config {
        workers: keys.workers.flatten().map(|n| n as usize),
        listeners: keys.listeners.into_iter().flatten().flatten().collect(),
        admin: admin.as_ref().map(|admin| admin.address.clone()),
        admin_hosts: hosts.flatten().cloned().collect(),
        admin_tls: admin.as_ref().and_then(|admin| admin.tls.clone()),
        sampled_keys: admin.as_ref().map_or(ShownKeys::Plain, |admin| admin.keys),
        admin_tokens: admin.and_then(|admin| admin.token_file),
        health: keys.health.unwrap_or_default(),
        drain: keys.drain.unwrap_or(Drain::DEFAULT),
        pools,
        routes,
        commands,
        limits: keys.limits.map_or(Limits::DEFAULT, limits),
        embedded: keys
            .embedded
            .map_or(Embedded::DEFAULT, |EmbeddedKeys { memory }| Embedded { memory }),
        near: keys.near.map_or_else(NearCache::default, NearCache::from),
        state: keys.state.flatten(),
        nodes: keys.nodes.flatten(),
        fleet: keys.fleet.flatten(),
        hot_keys: keys.hot_keys.unwrap_or(HotKeys::Watched),
        slow_requests: keys.slow_requests.flatten().map(SlowRequests::from),
        // mcrouter's front door has it.
        spool: None,
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
        idle_in_transaction,
        statement_timeout,
        age,
        write_timeout,
        request_timeout,
        logins,
        minimum_rate,
    } = keys;
    Limits {
        clients: clients as usize,
        requests_in_flight: requests_in_flight as usize,
        connection_bytes,
        total_bytes,
        value_bytes: value_size,
        idle,
        idle_in_transaction,
        statement_timeout,
        age,
        write_timeout,
        request_timeout,
        logins: logins as usize,
        minimum_rate,
        server_idle: Limits::DEFAULT.server_idle,
    }
}

type Sites = BTreeMap<String, crate::config::reading::Site>;

/// Refuses names that mean something else, and records the place of each, whether its value is good or not.
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
