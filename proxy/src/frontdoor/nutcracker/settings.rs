//! The keys of a pool, and what each of them says.

use std::collections::HashMap;

use super::{
    listen::{Listen, listen},
    server::server,
    value::{decimal, flag, number, text},
};
use crate::config::{
    Diagnostic, Place,
    document::{Node, Value, shortened},
    reading::Reading,
    schema::{KeyHash, Secret, Server},
    suggest,
};

/// All keys.
pub(super) const KEYS: [&str; 18] = [
    "listen",
    "hash",
    "hash_tag",
    "distribution",
    "timeout",
    "backlog",
    "client_connections",
    "redis",
    "redis_auth",
    "redis_db",
    "preconnect",
    "auto_eject_hosts",
    "server_connections",
    "server_retry_timeout",
    "server_failure_limit",
    "tcpkeepalive",
    "reuseport",
    "servers",
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
    pub(super) tcpkeepalive: bool,
    pub(super) reuseport: bool,
    pub(super) servers: Vec<Server>,
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
            tcpkeepalive: false,
            reuseport: false,
            servers: Vec::new(),
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
        let read = entries.iter().map(|(name, node)| {
            let remedy = suggest::remedy(&name.text, KEYS);
            match KEYS.contains(&name.text.as_str()) {
                true => cx.within(&*name.text, |cx| settings.set(&name.text, node, cx)),
                false => Err(Diagnostic {
                    remedy,
                    ..cx.refuse(name.at, format!("unknown key `{}`", shortened(&name.text)))
                }),
            }
        });
        let read: Vec<_> = read.collect();
        cx.all(read)?;
        Ok(settings)
    }

    fn set(&mut self, key: &str, node: &Node, cx: &mut Reading) -> Result<(), Diagnostic> {
        match key {
            "listen" => {
                cx.index.listeners.push(cx.site(node.at));
                self.listen = Some(listen(node, cx)?);
            }
            "hash" => {
                let name = text(node, cx)?;
                let names = KeyHash::ALL.map(KeyHash::name);
                self.hash = KeyHash::from_name(name).ok_or_else(|| Diagnostic {
                    remedy: suggest::remedy(name, names),
                    ..cx.expected(node, "a hash")
                })?;
            }
            "hash_tag" => self.hash_tag = Some(tag(node, cx)?),
            "distribution" => {
                let name = text(node, cx)?;
                let known = DISTRIBUTIONS.iter().find(|(known, _)| *known == name);
                self.distribution = known.map(|known| known.1).ok_or_else(|| Diagnostic {
                    remedy: suggest::remedy(name, DISTRIBUTIONS.map(|known| known.0)),
                    ..cx.expected(node, "a distribution")
                })?;
            }
            "timeout" => self.timeout = timeout(node, cx)?,
            "backlog" => self.backlog = number(node, 0, cx)?,
            // twemproxy accepts any number, and limits nothing.
            "client_connections" => drop(number(node, 0, cx)?),
            "redis" => self.redis = flag(node, cx)?,
            "redis_auth" => {
                let secret = Secret::new(text(node, cx)?.as_bytes());
                self.redis_auth = Some((node.at, secret));
            }
            "redis_db" => self.redis_db = number(node, 0, cx)?,
            "preconnect" => self.preconnect = flag(node, cx)?,
            "auto_eject_hosts" => self.auto_eject_hosts = flag(node, cx)?,
            // Each worker has a connection to each server, and pipelines requests on it.
            "server_connections" => drop(number(node, 1, cx)?),
            "server_retry_timeout" => self.server_retry_timeout = number(node, 0, cx)?,
            "server_failure_limit" => self.server_failure_limit = number(node, 0, cx)?,
            "tcpkeepalive" => self.tcpkeepalive = flag(node, cx)?,
            "reuseport" => self.reuseport = flag(node, cx)?,
            "servers" => self.servers = servers(node, cx)?,
            _ => {}
        }
        Ok(())
    }
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

fn servers(node: &Node, cx: &mut Reading) -> Result<Vec<Server>, Diagnostic> {
    let Value::List(listed) = &node.value else {
        return Err(cx
            .expected(node, "a list of servers")
            .with_remedy("write one in each line, as `- 10.0.0.1:11211:1`"));
    };
    if listed.is_empty() {
        return Err(cx.expected(node, "at least one server"));
    }
    let mut known: HashMap<String, Place> = HashMap::new();
    let read = listed.iter().enumerate().map(|(i, node)| {
        cx.within(format!("[{i}]"), |cx| {
            let server = server(node, cx)?;
            let name = server.name.clone().unwrap_or_default();
            match known.insert(name.clone(), node.at) {
                None => Ok(server),
                Some(first) => Err(cx
                    .refuse(
                        node.at,
                        format!(
                            "a server of line {} is called `{}`, too",
                            first.line,
                            shortened(&name)
                        ),
                    )
                    .with_remedy("give one of them another name, behind a blank")),
            }
        })
    });
    let read: Vec<_> = read.collect();
    cx.all(read)
}
