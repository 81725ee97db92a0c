//! Pools: which servers there are, and how they are treated.

use std::time::Duration;

use super::{Algorithm, Hash, Protocol, Server, Source};

/// A named set of servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// What its servers speak.
    pub protocol: Protocol,
    /// Where the list of servers comes from.
    pub source: Source,
    /// How a key chooses a server where a route does not say otherwise.
    pub hash: Hash,
    /// Time for a reply, from the moment the request was handed to the connection.
    pub timeout: Duration,
    /// Time for a connection to be made.
    pub connect_timeout: Duration,
    /// When a server is left out.
    pub eject: Eject,
    /// mcrouter: `/region/cluster/` is sent to the server with the key.
    pub keep_routing_prefix: bool,
    /// Every server holds a copy of everything; none: each holds a share of the keys.
    pub replicated: Option<Replicated>,
}

impl Pool {
    /// These servers and the defaults.
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
        }
    }

    /// Default of `timeout`.
    pub const TIMEOUT: Duration = Duration::from_secs(1);
    /// Default of `connect_timeout`.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
}

/// How a pool of copies is kept in agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicated {
    /// Copies that must have taken a write; none = a majority of the pool.
    pub min_acks: Option<u32>,
    /// What becomes of a copy that missed writes.
    pub rejoin: Rejoin,
    /// A copy that is named no more and returns within this time is the same copy; zero = it is a new one.
    pub grace: Duration,
    /// Values that a command computes (add, cas, incr, append, touch, …) are decided at one copy and passed on to the others.
    pub decide_at_home: bool,
}

impl Replicated {
    /// A majority, repair, a minute, one place that decides.
    pub const DEFAULT: Self = Self {
        min_acks: None,
        rejoin: Rejoin::Repair,
        grace: Duration::from_secs(60),
        decide_at_home: true,
    };

    /// What a pool has whose majority is all of it, in words that go on with how to ask for less.
    pub const TWO: &str = "two copies, and a majority of two is two: while one is down, writes are refused, and after the \
                           first refused one reads fail, too, until it is back, and the copy that stayed is emptied";

    /// Copies of `pool` that must have taken a write.
    pub fn acks_of(&self, pool: usize) -> usize {
        self.min_acks.map_or(pool / 2 + 1, |acks| acks as usize).max(1)
    }
}

/// What becomes of a copy that missed writes, before it is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejoin {
    /// The keys that it missed are deleted there; all of it is flushed when they are not all known.
    Repair,
    /// It is flushed.
    Flush,
    /// Nothing: it is trusted to hold what it should.
    Trust,
    /// It is not read before it has been restarted.
    Wait,
}

/// When a server is left out, and when it is asked again.
#[derive(Clone, Debug, PartialEq)]
pub struct Eject {
    /// Failures in a row, counted for the process; 0 = never. A refused connection ejects at once, whatever this says.
    pub failures: u32,
    /// First probe after the ejection; doubled after each failed one.
    pub probe_initial: Duration,
    /// Longest time between probes.
    pub probe_max: Duration,
    /// When more than this share of the pool is ejected, those that are only suspected are asked again (fail-open); 1 = never.
    pub fail_open_above: f64,
}

impl Eject {
    /// Three failures, probes from 1 s to 30 s apart, no fail-open.
    pub const DEFAULT: Self = Self {
        failures: 3,
        probe_initial: Duration::from_secs(1),
        probe_max: Duration::from_secs(30),
        fail_open_above: 1.0,
    };
}
