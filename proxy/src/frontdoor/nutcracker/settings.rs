//! The keys of a pool, and their values.

use super::{
    listen::{Listen, listen},
    server::servers,
    value::{decimal, flag, number, text},
};
use crate::config::{
    Diagnostic, Place,
    document::{Node, Value, shortened},
    reading::Reading,
    schema::{KeyHash, Secret, Source},
    suggest,
};

/// The reader of a key's value.
type Set = fn(&mut Settings, &Node, &mut Reading) -> Result<(), Diagnostic>;

/// The key of a password, which is not shown.
pub(super) const PASSWORD: &str = "redis_auth";

/// All keys, and what each of them sets.
const KEYS: &[(&str, Set)] = &[
    ("listen", |pool, node, cx| {
        cx.index.listeners.push(cx.site(node.at));
        put(&mut pool.listen, listen(node, cx).map(Some))
    }),
    ("hash", |pool, node, cx| put(&mut pool.hash, hash(node, cx))),
    ("hash_tag", |pool, node, cx| {
        put(&mut pool.hash_tag, tag(node, cx).map(Some))
    }),
    ("distribution", |pool, node, cx| {
        put(&mut pool.distribution, distribution(node, cx))
    }),
    ("timeout", |pool, node, cx| {
        put(&mut pool.timeout, timeout(node, cx))
    }),
    ("backlog", |pool, node, cx| {
        put(&mut pool.backlog, number(node, 0, cx))
    }),
    // twemproxy accepts any number, and limits nothing.
    ("client_connections", |_, node, cx| number(node, 0, cx).map(drop)),
    ("redis", |pool, node, cx| put(&mut pool.redis, flag(node, cx))),
    (PASSWORD, |pool, node, cx| {
        let secret = Secret::new(text(node, cx)?.as_bytes());
        put(&mut pool.redis_auth, Ok(Some((node.at, secret))))
    }),
    ("redis_db", |pool, node, cx| {
        put(&mut pool.redis_db, number(node, 0, cx))
    }),
    ("preconnect", |pool, node, cx| {
        put(&mut pool.preconnect, flag(node, cx))
    }),
    ("auto_eject_hosts", |pool, node, cx| {
        put(&mut pool.auto_eject_hosts, flag(node, cx))
    }),
    // Each worker has a connection to each server, and pipelines requests on it.
    ("server_connections", |_, node, cx| number(node, 1, cx).map(drop)),
    ("server_retry_timeout", |pool, node, cx| {
        put(&mut pool.server_retry_timeout, number(node, 0, cx))
    }),
    ("server_failure_limit", |pool, node, cx| {
        put(&mut pool.server_failure_limit, number(node, 0, cx))
    }),
    // This one is ours.
    ("flush_on_return", |pool, node, cx| {
        let is_wanted = flag(node, cx)?;
        put(&mut pool.flush_on_return, Ok(is_wanted.then_some(node.at)))
    }),
    ("tcpkeepalive", |pool, node, cx| {
        put(&mut pool.tcpkeepalive, flag(node, cx))
    }),
    ("reuseport", |pool, node, cx| {
        put(&mut pool.reuseport, flag(node, cx))
    }),
    ("servers", |pool, node, cx| {
        put(&mut pool.servers, servers(node, cx).map(Some))
    }),
];

/// How keys are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distribution {
    Ketama,
    Modula,
    Random,
}

const DISTRIBUTIONS: [(&str, Distribution); 3] = [
    ("ketama", Distribution::Ketama),
    ("modula", Distribution::Modula),
    ("random", Distribution::Random),
];

/// A pool as it stands in the file, with twemproxy's defaults.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) listen: Option<Listen>,
    pub(super) hash: KeyHash,
    pub(super) hash_tag: Option<[u8; 2]>,
    pub(super) distribution: Distribution,
    /// Milliseconds; 0: for ever.
    pub(super) timeout: i32,
    pub(super) backlog: i32,
    pub(super) redis: bool,
    pub(super) redis_auth: Option<(Place, Secret)>,
    pub(super) redis_db: i32,
    pub(super) preconnect: bool,
    pub(super) auto_eject_hosts: bool,
    pub(super) server_retry_timeout: i32,
    pub(super) server_failure_limit: i32,
    /// The place of the key that says so. `None`: a server that returns is not flushed.
    pub(super) flush_on_return: Option<Place>,
    pub(super) tcpkeepalive: bool,
    pub(super) reuseport: bool,
    /// The source of its servers. `None` if the key is missing.
    pub(super) servers: Option<Source>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: None,
            hash: KeyHash::default(),
            hash_tag: None,
            distribution: Distribution::Ketama,
            timeout: 0,
            backlog: 512,
            redis: false,
            redis_auth: None,
            redis_db: 0,
            preconnect: false,
            auto_eject_hosts: false,
            server_retry_timeout: 30_000,
            server_failure_limit: 2,
            flush_on_return: None,
            tcpkeepalive: false,
            reuseport: false,
            servers: None,
        }
    }
}

impl Settings {
    /// Reads all keys of a pool. Mistakes other than the first are recorded.
    pub(super) fn read(node: &Node, cx: &mut Reading) -> Result<Self, Diagnostic> {
        let Value::Map(entries) = &node.value else {
            return Err(cx
                .expected(node, "a pool")
                .with_remedy("write its keys below its name: `listen`, `servers` and what else it needs"));
        };
        let mut settings = Self::default();
        let read = entries.iter().map(
            |(name, node)| match KEYS.iter().find(|(key, _)| *key == name.text) {
                Some((key, set)) => cx.within(*key, |cx| set(&mut settings, node, cx)),
                None => Err(Diagnostic {
                    remedy: suggest::remedy(&name.text, KEYS.iter().map(|(key, _)| *key)),
                    ..cx.refuse(name.at, format!("unknown key `{}`", shortened(&name.text)))
                }),
            },
        );
        let read: Vec<_> = read.collect();
        cx.all(read)?;
        Ok(settings)
    }
}

/// Puts what was read in its place.
fn put<T>(place: &mut T, read: Result<T, Diagnostic>) -> Result<(), Diagnostic> {
    *place = read?;
    Ok(())
}

fn hash(node: &Node, cx: &Reading) -> Result<KeyHash, Diagnostic> {
    let name = text(node, cx)?;
    KeyHash::from_name(name).ok_or_else(|| Diagnostic {
        remedy: suggest::remedy(name, KeyHash::ALL.map(KeyHash::name)),
        ..cx.expected(node, "a hash")
    })
}

fn distribution(node: &Node, cx: &Reading) -> Result<Distribution, Diagnostic> {
    let name = text(node, cx)?;
    let known = DISTRIBUTIONS.iter().find(|(known, _)| *known == name);
    known.map(|known| known.1).ok_or_else(|| Diagnostic {
        remedy: suggest::remedy(name, DISTRIBUTIONS.map(|known| known.0)),
        ..cx.expected(node, "a distribution")
    })
}

fn tag(node: &Node, cx: &Reading) -> Result<[u8; 2], Diagnostic> {
    let text = node.scalar().unwrap_or_default();
    text.as_bytes().try_into().map_err(|_| {
        cx.expected(node, "two characters")
            .with_remedy("write them in quotes, as `\"{}\"`")
    })
}

fn timeout(node: &Node, cx: &Reading) -> Result<i32, Diagnostic> {
    let never = node.scalar().is_some_and(|text| {
        text.strip_prefix('-')
            .is_some_and(|digits| decimal(digits).is_some())
    });
    number(node, 0, cx).map_err(|refused| match never {
        true => refused.with_remedy("leave it out, and servers are waited for without end"),
        false => refused,
    })
}
