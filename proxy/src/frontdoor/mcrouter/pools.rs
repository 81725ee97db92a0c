//! `pools`: servers by name. The keys of one pool may be the defaults of another's.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    object::{Object, flag, list, number, text, whole},
    preprocess::Preprocessor,
    server::server,
    settings::{Settings, Timeouts},
    tls::is_asked_for,
};
use crate::config::{
    Diagnostic,
    document::{Name, Node, Value, shortened},
    reading::Reading,
    schema::{
        Algorithm, ClientTls, Dedicated, Eject, Hash, KeepAlive, KeyHash, Login, PlainLogins, Pool, Protocol,
        Server, Source, Verify,
    },
    suggest,
};

/// Milliseconds of the longest time-out that mcrouter takes.
const LONGEST_TIMEOUT: i32 = 1_000_000;
/// Keys that would change where requests go, or what clients get.
const UNSERVED: [&str; 4] = ["tko_tracker", "shadows", "rates", "shard_splits"];
/// Keys of features that do not exist here: replies that carry more than ASCII, diagnostics, packet marks.
const IDLE: [&str; 3] = ["enable_compression", "qos", "additional_fanout"];

/// A pool, and the answer of an empty one.
#[derive(Clone, Debug)]
pub(super) struct ListedPool {
    pub(super) pool: Pool,
    pub(super) servers: Vec<Server>,
    /// Handles that stand among the servers, by their places in the whole list.
    pub(super) handles: BTreeMap<usize, Node>,
    /// Weights by place in the whole list.
    pub(super) weights: Option<Vec<f64>>,
    /// Names by place in the whole list, for rendezvous.
    pub(super) tags: Option<Vec<String>>,
    /// The failure domain of each server; empty: they have none.
    pub(super) domains: Vec<u32>,
    /// Whether deletes are kept that its servers have not taken, and the name under which; `None`: the pool's.
    pub(super) asynclog: (bool, Option<String>),
    /// mcrouter's `error_on_empty`: an error instead of a miss.
    pub(super) error_on_empty: bool,
}

impl ListedPool {
    /// The number of servers, and of handles among them.
    pub(super) fn len(&self) -> usize {
        self.servers.len() + self.handles.len()
    }
}

/// All pools of one configuration.
#[derive(Debug)]
pub(super) struct Pools {
    pub(super) listed: BTreeMap<String, ListedPool>,
    /// Pools that cannot be read, each with the reason. As in mcrouter this matters where a route names them.
    unreadable: BTreeMap<String, Diagnostic>,
    /// The keys of the pools of the object `pools`, for those that inherit from them.
    keys: BTreeMap<String, Node>,
    timeouts: Timeouts,
    eject: Eject,
    keepalive: Option<KeepAlive>,
    /// TLS with servers that are asked by it.
    tls: ClientTls,
}

impl Pools {
    /// Reads the object under `pools`.
    pub(super) fn read(
        node: Option<&Node>,
        settings: &Settings,
        preprocessor: &mut Preprocessor<'_>,
        cx: &mut Reading,
    ) -> Result<Self, Diagnostic> {
        let mut pools = Self {
            listed: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            keys: BTreeMap::new(),
            timeouts: settings.timeouts.clone(),
            eject: settings.eject.clone(),
            keepalive: settings.keepalive,
            tls: settings.tls.clone(),
        };
        let Some(node) = node else { return Ok(pools) };
        let object = Object::of(node, cx)?;
        for (name, node) in object.entries() {
            match cx.within(&*name.text, |cx| from_file(node, cx, preprocessor)) {
                Ok(keys) => drop(pools.keys.insert(name.text.clone(), keys)),
                Err(why) => drop(pools.unreadable.insert(name.text.clone(), why)),
            }
        }
        for name in pools.keys.keys().cloned().collect::<Vec<_>>() {
            let known = cx.mistakes.len();
            let read = cx.within(&*name, |cx| pools.one(&pools.keys[&name], cx));
            let fault = cx.mistakes.drain(known..).next();
            match fault.map_or(read, Err) {
                Ok(pool) => drop(pools.listed.insert(name, pool)),
                Err(why) => drop(pools.unreadable.insert(name, why)),
            }
        }
        Ok(pools)
    }

    /// Warns of the pools that cannot be read. No route needs them.
    pub(super) fn warn_of_unreadable(&self, cx: &mut Reading) {
        cx.warnings.extend(self.unreadable.values().map(|why| Diagnostic {
            problem: format!("no route uses this pool, and none could: {}", why.problem),
            ..why.clone()
        }));
    }

    /// Adds a pool that is defined where it is used. The first definition of a name counts.
    pub(super) fn add(&mut self, name: &str, node: &Node, cx: &mut Reading) -> Result<(), Diagnostic> {
        if let Some(why) = self.unreadable.get(name) {
            return Err(why.clone());
        }
        if !self.listed.contains_key(name) {
            let pool = self.one(node, cx)?;
            self.listed.insert(name.to_owned(), pool);
        }
        Ok(())
    }

    /// Refuses a name that no pool has, or one that cannot be read.
    pub(super) fn check(&self, name: &str, at: &Node, cx: &Reading) -> Result<(), Diagnostic> {
        match self.unreadable.get(name) {
            Some(why) => Err(why.clone()),
            None if self.listed.contains_key(name) => Ok(()),
            None => Err(Diagnostic {
                remedy: suggest::remedy(name, self.listed.keys().map(String::as_str)),
                ..cx.refuse(
                    at.at,
                    format!("there is no pool `{}`, line: {}", shortened(name), at.at.line),
                )
            }),
        }
    }

    fn one(&self, node: &Node, cx: &mut Reading) -> Result<ListedPool, Diagnostic> {
        let node = &self.inherited(node, cx)?;
        let object = Object::of(node, cx)?;
        let milliseconds = |key: &str, cx: &mut Reading| {
            let time = object.take(key, cx, |node, cx| match whole(1)(node, cx)? {
                time @ ..=LONGEST_TIMEOUT => Ok(time),
                _ => Err(cx.expected(node, &format!("a number from 1 to {LONGEST_TIMEOUT}"))),
            })?;
            Ok(time.map(|time| Duration::from_millis(u64::from(time.unsigned_abs()))))
        };
        let server_timeout = milliseconds("server_timeout", cx)?;
        let connect_timeout = milliseconds("connect_timeout", cx)?;
        let region = object.take("region", cx, text)?;
        let cluster = object.take("cluster", cx, text)?;
        let timeout = self
            .timeouts
            .of(server_timeout, region.as_deref(), cluster.as_deref());
        let port = object.take("port_override", cx, whole(1))?;
        plain("protocol", |word| word.eq_ignore_ascii_case("ascii"), &object, cx)?;
        plain("security_mech", |word| is_asked_for(word).is_some(), &object, cx)?;
        let by_pool = match object.take("security_mech", cx, text)? {
            Some(word) => is_asked_for(&word) == Some(true),
            None => object.take("use_ssl", cx, flag)?.unwrap_or(false),
        };
        let read = |node: &Node, cx: &mut Reading| match is_handle(node) {
            true => Ok(Err(node.clone())),
            false => server(node, port, cx).map(Ok),
        };
        let Some(places) = object.take("servers", cx, list(read))? else {
            return Err(cx
                .refuse(
                    object.at,
                    format!("`servers` is missing, line: {}", object.at.line),
                )
                .with_remedy("write `\"servers\": []` for a pool without servers"));
        };
        let count = places.len();
        let (mut servers, mut handles, mut taken) = (Vec::new(), BTreeMap::new(), Vec::new());
        let (mut has_tls, mut plain) = (false, Vec::new());
        for (place, read) in places.into_iter().enumerate() {
            match read {
                Ok((server, tls)) => {
                    match tls.unwrap_or(by_pool) {
                        true => has_tls = true,
                        false => plain.push(server.address.clone()),
                    }
                    servers.push(server);
                    taken.push(place);
                }
                Err(node) => {
                    handles.insert(place, node);
                }
            }
        }
        if has_tls && self.tls.verify == Verify::None {
            let problem = "without `--ssl-verify-peers` and `--pem-ca-path` whoever answers at a server's address is \
                           taken for the server";
            cx.warn(object.at, problem);
        }
        let mut hash = Hash::of(Algorithm::Ch3);
        let mut weights = object.take("weights", cx, list(number))?;
        if let Some(weights) = &mut weights {
            hash.algorithm = Algorithm::WeightedCh3;
            if weights.len() != count {
                let problem = format!(
                    "{} weights for {count} servers; missing ones are 0.5",
                    weights.len()
                );
                cx.fault(object.at, problem);
                weights.resize(count, 0.5);
            }
            weights
                .iter_mut()
                .for_each(|weight| *weight = weight.clamp(0.0, 1.0));
            for (server, place) in servers.iter_mut().zip(&taken) {
                server.weight = weights[*place];
            }
        }
        let pool = Pool {
            protocol: Protocol::MEMCACHED,
            source: Source::new(servers.clone()),
            hash,
            timeout,
            connect_timeout: connect_timeout.unwrap_or(timeout),
            eject: self.eject.clone(),
            keep_routing_prefix: object.take("keep_routing_prefix", cx, flag)?.unwrap_or(false),
            replicated: None,
            login: Login::default(),
            one_writer: None,
            dedicated: Dedicated::DEFAULT,
            preconnect: false,
            keepalive: self.keepalive,
            asks_version: false,
            tls: has_tls.then(|| self.tls.clone()),
            plain_logins: PlainLogins::Rejected,
            plain: if has_tls { plain } else { Vec::new() },
        };
        let asynclog = (
            object.take("asynclog", cx, flag)?.unwrap_or(true),
            object.take("asynclog_name", cx, text)?,
        );
        let error_on_empty = object.take("error_on_empty", cx, flag)?.unwrap_or(true);
        let tags = object.take("tags", cx, list(text))?;
        // A domain may have a name, of which the hash is its number.
        let domain = |node: &Node, cx: &mut Reading| match &node.value {
            Value::Scalar { text, quoted: true } => Ok(KeyHash::Crc32a.hash(text.as_bytes())),
            _ => whole(0)(node, cx).map(i32::unsigned_abs),
        };
        let domains = object
            .take("failure_domains", cx, list(domain))?
            .unwrap_or_default();
        if !domains.is_empty() && domains.len() != count {
            let problem = format!("{} failure domains for {count} servers", domains.len());
            return Err(cx.refuse(object.at, problem));
        }
        let domains = taken
            .iter()
            .filter_map(|&place| domains.get(place).copied())
            .collect();
        object.finish(&UNSERVED, &IDLE, cx)?;
        Ok(ListedPool {
            pool,
            servers,
            handles,
            weights,
            tags,
            domains,
            asynclog,
            error_on_empty,
        })
    }

    /// A pool's keys, followed by those of the pools from which it inherits.
    fn inherited(&self, node: &Node, cx: &mut Reading) -> Result<Node, Diagnostic> {
        let mut keys = node.clone();
        let mut seen = BTreeSet::new();
        while let Value::Map(entries) = &mut keys.value
            && let Some(i) = entries.iter().position(|(name, _)| name.text == "inherit")
        {
            let (_, from) = entries.remove(i);
            let name = cx.within("inherit", |cx| text(&from, cx))?;
            let parent = self.keys.get(&name).filter(|_| seen.insert(name.clone()));
            let Some(parent) = parent else {
                let problem = format!(
                    "there is no pool `{}` to inherit from, line: {}",
                    shortened(&name),
                    from.at.line
                );
                return Err(cx.refuse(from.at, problem));
            };
            let Value::Map(defaults) = &parent.value else {
                return Err(cx.refuse(from.at, format!("the pool `{}` is no object", shortened(&name))));
            };
            let new: Vec<_> = defaults
                .iter()
                .filter(|(name, _)| !entries.iter().any(|(known, _)| known.text == name.text))
                .cloned()
                .collect();
            entries.extend(new);
        }
        Ok(keys)
    }
}

/// Is this a route handle, and no server?
fn is_handle(node: &Node) -> bool {
    match &node.value {
        Value::Map(_) => true,
        Value::Scalar { text, quoted: true } => {
            let kind = text.split('|').next().unwrap_or(text);
            kind.ends_with("Route") && kind.bytes().all(|byte| byte.is_ascii_alphanumeric())
        }
        _ => false,
    }
}

/// Checks a key of which only the plain value is served.
fn plain(
    key: &str,
    is_served: impl Fn(&str) -> bool,
    object: &Object<'_>,
    cx: &mut Reading,
) -> Result<(), Diagnostic> {
    match object.get(key) {
        Some(node) if !is_served(node.scalar().unwrap_or_default()) => {
            let problem = format!(
                "`{key}` {} is not served yet, line: {}",
                node.describe(),
                node.at.line
            );
            Err(cx.refuse(node.at, problem))
        }
        _ => Ok(()),
    }
}

/// A pool's object. `"file:PATH"` names another file with it.
fn from_file(node: &Node, cx: &mut Reading, preprocessor: &mut Preprocessor<'_>) -> Result<Node, Diagnostic> {
    let Some(path) = node.scalar().and_then(|text| text.strip_prefix("file:")) else {
        return Ok(node.clone());
    };
    let keys = preprocessor.file(path).map_err(|diagnostic| {
        let blank = diagnostic.at.map_or(" ", |_| "");
        cx.refuse(node.at, format!("{path}:{blank}{diagnostic}"))
    })?;
    // Diagnostics about keys in another file get the place that names the file.
    Ok(moved(keys, node))
}

fn moved(node: Node, to: &Node) -> Node {
    let value = match node.value {
        Value::List(nodes) => Value::List(nodes.into_iter().map(|node| moved(node, to)).collect()),
        Value::Map(entries) => {
            let entry = |(name, node)| (Name { at: to.at, ..name }, moved(node, to));
            Value::Map(entries.into_iter().map(entry).collect())
        }
        scalar => scalar,
    };
    Node { at: to.at, value }
}
