//! Routes from one set of servers to another, and those that fill a cold one.

use std::time::Duration;

use super::{
    Route, Spec,
    form::RouteForm,
    spec::{Handle, handle},
};
use crate::config::{
    form::{Count, Optional, Seconds, Share, Time},
    section::section,
};

/// From one route to another, as mcrouter migrates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Migrate {
    /// Seconds since 1970.
    pub start: u64,
    /// The time until the first key moves, and again until the last one has.
    pub interval: Duration,
}

impl Spec for Migrate {
    const NAME: &'static str = "migrate";
}

pub(super) const MIGRATE: Handle = handle! {
    /// Moves from one route to another, key by key, in four phases. Before `start` everything goes to `from`.
    /// Then deletes go to both. One `interval` later the first keys move, and by the end of the second
    /// `interval` all have. From then on everything goes to `to`.
    Migrate::NAME, MigrateKeys => |keys: MigrateKeys| {
        let MigrateKeys { from, to, start, interval } = keys;
        Route::pair(Migrate { start: start.into(), interval }, from, to)
    }
};

section! {
    /// A move from one route to another.
    struct MigrateKeys {
        /// The route until the move.
        from: RouteForm,
        /// The route after the move.
        to: RouteForm,
        /// Seconds since 1970 at which the move begins.
        start: Count,
        /// The time until the first key moves, and again until the last one has.
        interval: Time = Duration::from_secs(3600),
    }
}

/// A cold route that is filled from a warm one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmUp {
    /// Seconds that added values live; `None`: as long as in the warm route.
    pub ttl: Option<i64>,
}

impl Spec for WarmUp {
    const NAME: &'static str = "warm_up";
}

pub(super) const WARM_UP: Handle = handle! {
    /// Fills a cold route from a warm one: `get`, `gets`, `gat`, `gats` and `lease-get` of what the cold one
    /// has not are answered from the warm one, whose value is added to the cold one. Everything else goes to
    /// the cold one. For memcached alone, as all routes that serve a request in several steps.
    WarmUp::NAME, WarmUpKeys => |keys: WarmUpKeys| {
        Route::pair(WarmUp { ttl: keys.ttl }, keys.cold, keys.warm)
    }
};

section! {
    /// A cold route and a warm one.
    struct WarmUpKeys {
        /// The route that is filled.
        cold: RouteForm,
        /// The route that has the values.
        warm: RouteForm,
        /// Seconds that added values live, or a duration; 0: for ever. Without it they live as long as in the
        /// warm route, whose servers must know meta commands then.
        ttl: Optional<Seconds>,
    }
}

/// When a server is cold, and what it gets then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowWarmUp {
    /// A warm server becomes cold when it finds a smaller share of keys than this.
    pub enable_threshold: f64,
    /// A cold server becomes warm when it finds this share of keys.
    pub disable_threshold: f64,
    /// The share of reads that a cold server gets which finds nothing.
    pub start: f64,
    /// What is added to that, times the share of keys that it finds.
    pub step: f64,
    /// The least requests before a server can be cold.
    pub min_requests: u64,
}

impl Default for SlowWarmUp {
    fn default() -> Self {
        Self {
            enable_threshold: 0.7,
            disable_threshold: 0.9,
            start: 0.1,
            step: 1.0,
            min_requests: 100,
        }
    }
}

impl Spec for SlowWarmUp {
    const NAME: &'static str = "slow_warm_up";
}

pub(super) const SLOW_WARM_UP: Handle = handle! {
    /// Spares a server that finds few keys, as it is fresh: a part of its reads goes to another route.
    SlowWarmUp::NAME, SlowWarmUpKeys => |keys: SlowWarmUpKeys| {
        let settings = SlowWarmUp {
            enable_threshold: keys.enable_threshold,
            disable_threshold: keys.disable_threshold,
            start: keys.start,
            step: keys.step,
            min_requests: keys.min_requests.into(),
        };
        Route::pair(settings, keys.child, keys.failover)
    }
};

section! {
    /// A server that may be fresh.
    struct SlowWarmUpKeys {
        /// The server.
        child: RouteForm,
        /// The route for the reads that the server is spared.
        failover: RouteForm,
        /// The server is spared as soon as it finds a smaller share of keys than this.
        enable_threshold: Share = 0.7,
        /// The server is spared until it finds this share of keys.
        disable_threshold: Share = 0.9,
        /// Share of reads that a spared server gets if it finds nothing.
        start: Share = 0.1,
        /// What is added to that, times the share of keys that it finds.
        step: Share = 1.0,
        /// Requests before the share of keys counts.
        min_requests: Count = 100,
    }
}

/// A route that answers, and another one that is kept alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Staging;

impl Spec for Staging {
    const NAME: &'static str = "staging";
}

pub(super) const STAGING: Handle = handle! {
    /// A route that answers, and another one that is filled from it and kept alike in the background: what is
    /// read is added there where it is missing, and what was stored is set. Deletes go to both.
    Staging::NAME, StagingKeys => |keys: StagingKeys| Route::pair(Staging, keys.warm, keys.staging)
};

section! {
    /// A route that answers, and one that is prepared.
    struct StagingKeys {
        /// The route that answers.
        warm: RouteForm,
        /// The route that is prepared.
        staging: RouteForm,
    }
}
