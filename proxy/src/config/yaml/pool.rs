//! Pools and their options.

use std::time::Duration;

use super::{
    dedicated::DedicatedForm,
    login::{VariableName, login},
    tls::ClientTlsForm,
};
use crate::config::{
    Diagnostic,
    document::Node,
    form::{
        Choice, Count, Flag, Form, List, Optional, PathText, PositiveTime, Shape, Share, Text, Time, Word,
    },
    hash::HashForm,
    reading::Reading,
    schema::{
        Algorithm, Consistency, Dedicated, Eject, EjectBy, Hash, KeepAlive, Login, OneWriter, PlainLogins,
        Pool, Protocol, Rejoin, Replicated, Reset,
    },
    section::section,
    source::SourceKeys,
};

section! {
    /// A set of servers. A list of servers alone is enough.
    #[short(servers)]
    pub(super) struct PoolKeys {
        ..source: SourceKeys,
        /// What its servers speak.
        protocol: Word<Protocol> = Protocol::MEMCACHED,
        /// How a key chooses a server where a route does not say otherwise.
        hash: HashForm = Hash::of(Algorithm::Ketama),
        /// Time for a reply, from the moment the request was handed to the connection.
        timeout: PositiveTime = Pool::TIMEOUT,
        /// Time for a connection to be made.
        connect_timeout: PositiveTime = Pool::CONNECT_TIMEOUT,
        /// When a server is left out, and when it is asked again.
        eject: EjectForm,
        /// Whether every server holds a copy of everything. The pool's name as a route then reads from the
        /// nearest copy and writes to all. `true` is enough.
        replicated: ReplicatedForm,
        /// Whether this is a Galera cluster of MySQL servers. The pool's name as a route then sends reads to readers,
        /// and all else to one writer. `true` is enough.
        galera: GaleraForm,
        /// The user as whom the proxy logs in at Redis servers, where the default is the servers' default user, and
        /// at MySQL servers for what it asks itself.
        user: Optional<Text>,
        /// A file with the password for Redis or MySQL servers, relative to this file. It is read again when it
        /// changes.
        password_file: Optional<PathText>,
        /// The environment variable with the password for Redis or MySQL servers.
        password_env: Optional<VariableName>,
        /// The number of the database at Redis servers.
        database: Count<0, 65535> = 0,
        /// Limits on the connections to a Redis or MySQL server that one client has for itself, of each worker.
        dedicated: DedicatedForm,
        /// TLS with its servers. Without it they speak plainly. The time for a connection includes the
        /// handshake.
        tls: Optional<ClientTlsForm>,
        /// What becomes of a password that a MySQL server asks for where there is no TLS.
        plain_logins: Word<PlainLogins> = PlainLogins::Rejected,
    }
}

section! {
    /// Rules for a pool of copies.
    #[short(enabled)]
    pub(super) struct ReplicatedKeys {
        /// Whether this is a pool of copies.
        enabled: Flag = true,
        /// Copies that must have taken a write before it is acknowledged; with fewer it is refused. The
        /// default is a majority of the pool (of two that is two).
        min_acks: Optional<Count<1>>,
        /// The treatment of a copy that missed writes, before it is read again.
        rejoin: Word<Rejoin> = Rejoin::Repair,
        /// A copy that leaves the list of servers and returns within this time is repaired, and keeps what it
        /// did not miss. Later it is a new copy, whose contents are unknown. `0s`: it is always a new one.
        grace: Time = Replicated::DEFAULT.grace,
    }
}

impl Choice for Rejoin {
    const WHAT: &'static str = "a way to rejoin";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        (
            "repair",
            Self::Repair,
            "the keys it missed are deleted there; flushed when they are not all known",
        ),
        ("flush", Self::Flush, "it is flushed"),
        (
            "trust",
            Self::Trust,
            "nothing: it is read as it is, old values included",
        ),
        ("wait", Self::Wait, "it is not read before it was restarted empty"),
    ];
}

/// The rules for a pool of copies, if it is one.
#[derive(Debug)]
pub(super) struct ReplicatedForm;

impl Form for ReplicatedForm {
    type Value = Option<Replicated>;

    fn shape() -> Shape {
        ReplicatedKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        let ReplicatedKeys {
            enabled,
            min_acks,
            rejoin,
            grace,
        } = ReplicatedKeys::read(node, cx)?;
        Ok(enabled.then_some(Replicated {
            min_acks,
            rejoin,
            grace,
            ..Replicated::DEFAULT
        }))
    }

    fn absent() -> Option<Self::Value> {
        Some(None)
    }
}

section! {
    /// When a server is left out, and when it is asked again.
    pub(super) struct EjectKeys {
        /// Failures in a row, counted for the process; 0: never. A refused connection ejects at once,
        /// whatever this says.
        failures: Count = Eject::DEFAULT.failures,
        /// First probe after the ejection; the time is doubled after each failed one.
        probe_initial: PositiveTime = Eject::DEFAULT.probe_initial,
        /// Longest time between probes.
        probe_max: PositiveTime = Eject::DEFAULT.probe_max,
        /// If more than this share of the pool is ejected, members that are only suspected are asked again;
        /// 1: never.
        fail_open_above: Share = Eject::DEFAULT.fail_open_above,
    }
}

/// The rules of ejection as they stand in a configuration.
#[derive(Debug)]
pub(super) struct EjectForm;

impl Form for EjectForm {
    type Value = Eject;

    fn shape() -> Shape {
        EjectKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Eject, Diagnostic> {
        let EjectKeys {
            failures,
            probe_initial,
            probe_max,
            fail_open_above,
        } = EjectKeys::read(node, cx)?;
        match probe_max < probe_initial {
            true => Err(cx
                .refuse(node.at, "`probe_max` is less than `probe_initial`")
                .with_remedy("the time between probes grows from the one to the other")),
            false => Ok(Eject {
                by: EjectBy::Suspicion,
                failures,
                probe_initial,
                probe_max,
                fail_open_above,
                flush_on_return: false,
            }),
        }
    }

    fn absent() -> Option<Eject> {
        Some(Eject::DEFAULT)
    }
}

section! {
    /// How the servers of a Galera cluster are used.
    #[short(enabled)]
    pub(super) struct GaleraKeys {
        /// Whether this is a Galera cluster.
        enabled: Flag = true,
        /// Names of servers (`wsrep_node_name`): the first usable one takes writes. Behind them come all others,
        /// by name, where `pxc-2` is before `pxc-10`.
        writer: List<Text> = Vec::new(),
        /// Time for which a server that comes before the writer is well, by `writer` or by an operator's
        /// order, before writes move back to it, without an error. `never`: they stay.
        failback: Failback = OneWriter::DEFAULT.failback,
        /// Time for which statements wait while no server can take writes; after that they are answered as the
        /// servers answer them.
        writer_wait: PositiveTime = OneWriter::DEFAULT.wait,
        /// Whether the writer serves reads as well, while other servers do.
        writer_reads: Flag = false,
        /// Whether a server serves that brings another one up to date.
        donors: Word<Donors> = Donors::Wait,
        /// The number of proxies through which applications use the servers. With 1, which nothing else may
        /// write past, `consistency` is `causal` by default. While another proxy is seen, `causal` reads are
        /// `strict`.
        proxies: Optional<Count<1>>,
        /// How fresh reads are, where no listener, user or route says it: `strict` by default. It counts if
        /// all pools say the same to which the listener's route leads; otherwise reads are `strict`.
        consistency: Optional<Word<Consistency>>,
        /// Time for which a read waits for a reader that has what the read must see. After that it goes to the
        /// writer.
        read_wait: PositiveTime = OneWriter::DEFAULT.read_wait,
        /// The greatest age of what a read sees. A reader that has waited for the others longer ago is not asked.
        read_age: PositiveTime = OneWriter::DEFAULT.read_age,
        /// How often a statement outside of a transaction runs again that was rolled back whole, by a
        /// deadlock, a conflict with a write at another server, or a wait for a lock (errors 1213 and 1205).
        conflict_retries: Count<0, 2> = OneWriter::DEFAULT.conflict_retries,
    }
}

/// What a server does that brings another one up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Donors {
    Serve,
    Wait,
}

impl Choice for Donors {
    const WHAT: &'static str = "what donors do";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("serve", Self::Serve, "they serve clients as well"),
        ("wait", Self::Wait, "they serve no clients meanwhile"),
    ];
}

/// A time, or `never`.
#[derive(Debug)]
pub(super) struct Failback;

const NEVER: &str = "never";

impl Form for Failback {
    type Value = Option<Duration>;

    fn shape() -> Shape {
        Shape::AnyOf(vec![
            PositiveTime::shape(),
            Shape::Words(vec![(NEVER, "writes stay where they are")]),
        ])
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        match node.scalar() {
            Some(NEVER) => Ok(None),
            _ => PositiveTime::read(node, cx).map(Some),
        }
    }

    fn show(value: &Self::Value) -> Option<String> {
        match value {
            Some(time) => PositiveTime::show(time),
            None => Some(NEVER.to_owned()),
        }
    }
}

/// How a Galera cluster is used, if the pool is one.
#[derive(Debug)]
pub(super) struct GaleraForm;

impl Form for GaleraForm {
    type Value = Option<OneWriter>;

    fn shape() -> Shape {
        GaleraKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        let keys = GaleraKeys::read(node, cx)?;
        Ok(keys.enabled.then_some(OneWriter {
            order: keys.writer,
            wait: keys.writer_wait,
            reads: keys.writer_reads,
            donors: keys.donors == Donors::Serve,
            consistency: keys.consistency,
            proxies: keys.proxies,
            read_wait: keys.read_wait,
            read_age: keys.read_age,
            failback: keys.failback,
            conflict_retries: keys.conflict_retries,
        }))
    }

    fn absent() -> Option<Self::Value> {
        Some(None)
    }
}

/// A pool as it stands in a configuration.
#[derive(Debug)]
pub(super) struct PoolForm;

impl Form for PoolForm {
    type Value = Pool;

    fn shape() -> Shape {
        PoolKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Pool, Diagnostic> {
        let PoolKeys {
            source,
            protocol,
            hash,
            timeout,
            connect_timeout,
            eject,
            replicated,
            galera,
            user,
            password_file,
            password_env,
            database,
            dedicated,
            tls,
            plain_logins,
        } = PoolKeys::read(node, cx)?;
        let login = login(user, (password_file, password_env), database, node.at, cx)?;
        let is_redis = protocol == Protocol::REDIS;
        let is_mysql = protocol == Protocol::MYSQL;
        if !is_redis && !is_mysql && (login != Login::default() || dedicated != Dedicated::DEFAULT) {
            let problem =
                "`user`, `password_file`, `password_env`, `database` and `dedicated` are for Redis and MySQL";
            let remedy = "leave them out, or write `protocol: redis` or `protocol: mysql`";
            return Err(cx.refuse(node.at, problem).with_remedy(remedy));
        }
        if is_redis && dedicated.reset != Reset::Needed {
            let remedy = "leave it out, or write `protocol: mysql`";
            return Err(cx
                .refuse(node.at, "`dedicated.reset` is for MySQL")
                .with_remedy(remedy));
        }
        if !is_mysql && galera.is_some() {
            let remedy = "leave it out, or write `protocol: mysql`";
            return Err(cx.refuse(node.at, "`galera` is for MySQL").with_remedy(remedy));
        }
        if !is_mysql && plain_logins != PlainLogins::Rejected {
            let remedy = "leave it out, or write `protocol: mysql`";
            return Err(cx
                .refuse(node.at, "`plain_logins` is for MySQL")
                .with_remedy(remedy));
        }
        if is_mysql && login.user.is_none() {
            let problem = "a pool of MySQL servers needs `user`, with a password";
            let remedy =
                "write `user: NAME` and `password_file: PATH`: an account that may log in, and nothing else";
            return Err(cx.refuse(node.at, problem).with_remedy(remedy));
        }
        if is_mysql && login.database != 0 {
            let problem = "`database` is a number, for Redis";
            let remedy = "leave it out: clients of MySQL name their schema";
            return Err(cx.refuse(node.at, problem).with_remedy(remedy));
        }
        if is_mysql && replicated.is_some() {
            let problem = "a pool of MySQL servers cannot be `replicated`: statements are copied by the servers \
                           themselves";
            return Err(cx.refuse(node.at, problem).with_remedy("leave it out"));
        }
        if is_redis && replicated.is_some() {
            let problem = "a pool of Redis servers cannot be `replicated`: values of many types, and what scripts do, \
                           can be copied only by the replication that Redis has itself, and a server that may hold \
                           data is never flushed";
            let remedy = "leave it out; `all_sync` and `nearest` gather plain values of caches";
            return Err(cx.refuse(node.at, problem).with_remedy(remedy));
        }
        if hash.weights.is_some() || hash.tags.is_some() {
            return Err(cx
                .refuse(
                    node.at,
                    "`weights` and `tags` are for routes; a pool's servers have weights and names",
                )
                .with_remedy("write `{address: …, weight: …, name: …}`"));
        }
        let dedicated = match is_mysql {
            true => dedicated.for_mysql(),
            false => dedicated,
        };
        let behind = tls.as_ref().and_then(|tls| source.behind(tls));
        Ok(Pool {
            protocol,
            source: behind.unwrap_or(source),
            hash,
            timeout,
            connect_timeout,
            eject,
            keep_routing_prefix: false,
            replicated,
            one_writer: galera,
            login,
            dedicated,
            preconnect: false,
            keepalive: is_mysql.then_some(KeepAlive::MYSQL),
            asks_version: true,
            tls,
            plain_logins,
            plain: Vec::new(),
        })
    }
}
