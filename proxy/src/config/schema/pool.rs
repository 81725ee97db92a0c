//! Pools: sets of servers, and how they are treated.

use std::time::Duration;

use super::{
    Algorithm, ClientTls, Consistency, Dedicated, Hash, Login, PlainLogins, Protocol, Server, Source,
};

/// A named set of servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// The protocol of its servers.
    pub protocol: Protocol,
    /// The source of its list of servers.
    pub source: Source,
    /// How a key chooses a server where a route does not say otherwise.
    pub hash: Hash,
    /// Time for a reply, from the moment the request was handed to the connection.
    pub timeout: Duration,
    /// Time for a connection to be made.
    pub connect_timeout: Duration,
    /// The rules of ejection.
    pub eject: Eject,
    /// Whether `/region/cluster/` is sent to the server with the key, as mcrouter can.
    pub keep_routing_prefix: bool,
    /// The rules for copies, if every server holds a copy of everything. `None`: each holds its share of the
    /// keys.
    pub replicated: Option<Replicated>,
    /// How the server is found that takes all writes. `None`: all servers do, or routes know.
    pub one_writer: Option<OneWriter>,
    /// How the proxy logs in at its servers.
    pub login: Login,
    /// Limits on connections that one client has for itself.
    pub dedicated: Dedicated,
    /// Whether every worker connects to all servers before it is asked for anything.
    pub preconnect: bool,
    /// How the kernel looks after servers that are silent for long. `None`: it does not.
    pub keepalive: Option<KeepAlive>,
    /// Whether each connection begins with the question for the server's version. Otherwise it is asked when
    /// the first command comes that depends on it.
    pub asks_version: bool,
    /// TLS with its servers. `None`: they speak plainly.
    pub tls: Option<ClientTls>,
    /// What becomes of a password that a server asks for where there is no TLS.
    pub plain_logins: PlainLogins,
    /// The addresses of those that speak plainly all the same, as mcrouter's addresses may say.
    pub plain: Vec<String>,
}

/// How the server is found that takes all writes of a pool whose servers follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneWriter {
    /// Names of servers, the first usable of which takes writes.
    pub order: Vec<String>,
    /// The longest time that requests wait while there is none.
    pub wait: Duration,
    /// Whether it serves reads as well, while others do.
    pub reads: bool,
    /// Whether a server serves that brings another one up to date.
    pub donors: bool,
    /// How fresh reads are, where their listener says nothing; `None`: as the [number of
    /// proxies](Self::word) makes possible.
    pub consistency: Option<Consistency>,
    /// The number of proxies before the servers; `None`: unknown.
    pub proxies: Option<u32>,
    /// The longest time that a read waits for a server to have what it must see.
    pub read_wait: Duration,
    /// The greatest age of what an `eventual` read sees.
    pub read_age: Duration,
    /// Time for which a server is well before writes move back to it; `None`: they do not.
    pub failback: Option<Duration>,
    /// How often a statement runs again that was rolled back by a conflict with another one.
    pub conflict_retries: u32,
}

impl OneWriter {
    /// The defaults: by name, ten seconds, reads by others.
    pub const DEFAULT: Self = Self {
        order: Vec::new(),
        wait: Duration::from_secs(10),
        reads: false,
        donors: false,
        consistency: None,
        proxies: None,
        read_wait: Duration::from_millis(50),
        read_age: Duration::from_secs(1),
        failback: Some(Duration::from_secs(10)),
        conflict_retries: 0,
    };

    /// How fresh reads are, where their listener says nothing. A proxy that is the only one knows of every
    /// write.
    pub fn word(&self) -> Consistency {
        self.consistency.unwrap_or(match self.is_only_proxy() {
            true => Consistency::Causal,
            false => Consistency::Strict,
        })
    }

    /// Why that is so: what its pool does.
    pub const fn why(&self) -> &'static str {
        match self.consistency {
            Some(_) => "says so",
            None if self.is_only_proxy() => "says `proxies: 1`",
            None => "does not say `proxies: 1`",
        }
    }

    /// Is this proxy said to be the only one before the servers?
    pub const fn is_only_proxy(&self) -> bool {
        matches!(self.proxies, Some(1))
    }
}

/// How the kernel looks after a silent peer. By default as the system is set: after hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeepAlive {
    /// Silence after which it asks. `None`: the system's time.
    pub idle: Option<Duration>,
    /// Time between two questions. `None`: the system's time.
    pub interval: Option<Duration>,
    /// Questions without an answer after which the connection is lost. `None`: the system's number.
    pub probes: Option<u32>,
}

impl KeepAlive {
    /// For servers of MySQL, whose statements may take any time: one that is gone is noticed after 25 seconds.
    pub const MYSQL: Self = Self {
        idle: Some(Duration::from_secs(10)),
        interval: Some(Duration::from_secs(5)),
        probes: Some(3),
    };
}

impl Pool {
    /// A pool of these servers, with defaults.
    pub fn of(servers: Vec<Server>) -> Self {
        Self {
            protocol: Protocol::MEMCACHED,
            source: Source::new(servers),
            hash: Hash::of(Algorithm::Ketama),
            timeout: Self::TIMEOUT,
            connect_timeout: Self::CONNECT_TIMEOUT,
            eject: Eject::DEFAULT,
            keep_routing_prefix: false,
            replicated: None,
            one_writer: None,
            login: Login::default(),
            dedicated: Dedicated::DEFAULT,
            preconnect: false,
            keepalive: None,
            asks_version: true,
            tls: None,
            plain_logins: PlainLogins::Rejected,
            plain: Vec::new(),
        }
    }

    /// Default of `timeout`.
    pub const TIMEOUT: Duration = Duration::from_secs(1);
    /// Default of `connect_timeout`.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
}

/// Rules for a pool of copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicated {
    /// Copies that must have taken a write. `None`: a majority of the pool.
    pub min_acks: Option<u32>,
    /// The treatment of a copy that missed writes.
    pub rejoin: Rejoin,
    /// Time within which a copy that has left the list of servers may return as the same copy; zero: it is
    /// always a new one.
    pub grace: Duration,
    /// Whether commands that compute a value (add, cas, incr, append, touch, …) are decided at one copy, and
    /// the result is passed on to the others.
    pub decide_at_home: bool,
}

impl Replicated {
    /// The defaults: a majority, repair, a minute, decisions at one copy.
    pub const DEFAULT: Self = Self {
        min_acks: None,
        rejoin: Rejoin::Repair,
        grace: Duration::from_secs(60),
        decide_at_home: true,
    };

    /// Describes a pool whose majority is all of it. The sentence goes on with how to ask for less.
    pub const TWO: &str = "two copies, and a majority of two is two: while one is down, writes are refused, and after the \
                           first refused one reads fail, too, until it is back, and the copy that stayed is emptied";

    /// Copies that must have taken a write in a pool of `pool` copies.
    pub fn acks_of(&self, pool: usize) -> usize {
        self.min_acks.map_or(pool / 2 + 1, |acks| acks as usize).max(1)
    }
}

/// The treatment of a copy that missed writes, before it is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejoin {
    /// The keys that it missed are deleted there. If they are not all known, it is flushed.
    Repair,
    /// It is flushed.
    Flush,
    /// It is trusted to hold what it should.
    Trust,
    /// It is not read before it has been restarted.
    Wait,
}

/// What ejects a server, and how it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EjectBy {
    /// A late reply is a ground for suspicion and counts. A broken connection ejects at once. A server that
    /// answers a probe returns.
    Suspicion,
    /// Every lost connection counts, whatever the reason, and connections of several workers that one event
    /// has ended count once. The server returns after a while, without a probe. Twemproxy does it so.
    LostConnections,
}

/// The rules by which a server is ejected and asked again.
#[derive(Clone, Debug, PartialEq)]
pub struct Eject {
    /// What is counted, and how an ejected server returns.
    pub by: EjectBy,
    /// Failures in a row, counted for the process; 0: never. By suspicion, a refused connection ejects at
    /// once, whatever this says.
    pub failures: u32,
    /// Time from the ejection to the first probe, which is doubled after each failed one, or to the return
    /// without a probe.
    pub probe_initial: Duration,
    /// Longest time between probes.
    pub probe_max: Duration,
    /// Fail-open: if more than this share of the pool is ejected, members that are only suspected are asked
    /// again; 1: never.
    pub fail_open_above: f64,
    /// Whether a server that returns without a probe is flushed before it is asked: what it holds may be old.
    pub flush_on_return: bool,
}

impl Eject {
    /// The defaults: three failures, probes from 1 s to 30 s apart, no fail-open.
    pub const DEFAULT: Self = Self {
        by: EjectBy::Suspicion,
        failures: 3,
        probe_initial: Duration::from_secs(1),
        probe_max: Duration::from_secs(30),
        fail_open_above: 1.0,
        flush_on_return: false,
    };
}
