//! The options of the command line on which the tree depends.

use std::time::Duration;

use proxima_wire::message::Outcome;

use super::{
    constants::constants,
    error::OptionError,
    flags::{Flags, Validates},
    prefix::{region_and_cluster, routing_prefix},
    preprocess::Constants,
    tls::with_servers,
};
use crate::config::schema::{ClientTls, Eject, EjectBy, ErrorReply, KeepAlive, Queue, Replicated};

/// A time that never comes, but may be added to a clock.
pub(super) const NEVER: Duration = Duration::from_secs(1_000 * 86_400);

/// Time-outs for replies, by the distance of the pool.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeouts {
    pub(super) server: Duration,
    /// The region and cluster of this proxy.
    pub(super) region: String,
    pub(super) cluster: String,
    /// For pools in other regions and clusters; zero: not used.
    pub(super) cross_region: Duration,
    pub(super) cross_cluster: Duration,
    pub(super) within_cluster: Duration,
}

impl Timeouts {
    /// The time-out of a pool with this setting of its own.
    pub(super) fn of(&self, pool: Option<Duration>, region: Option<&str>, cluster: Option<&str>) -> Duration {
        let by_distance = match (region, cluster) {
            (Some(region), Some(_)) if region != self.region => self.cross_region,
            (Some(_), Some(cluster)) if cluster != self.cluster => self.cross_cluster,
            (Some(_), Some(_)) => self.within_cluster,
            _ => Duration::ZERO,
        };
        if by_distance.is_zero() {
            pool.unwrap_or(self.server)
        } else {
            by_distance
        }
    }
}

/// How values are split, whatever their route.
#[derive(Clone, Copy, Debug)]
pub(super) struct BigValues {
    pub(super) threshold: usize,
    pub(super) batch: u32,
    pub(super) hides_flag: bool,
}

/// The settings.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) timeouts: Timeouts,
    pub(super) eject: Eject,
    /// How the kernel looks after silent servers.
    pub(super) keepalive: Option<KeepAlive>,
    /// The prefix `/region/cluster/` of keys without one.
    pub(super) default_route: String,
    /// Whether keys that lead to no route go to the default one.
    pub(super) takes_unknown: bool,
    /// How values that are too large are split. `None` if values are never split.
    pub(super) big_values: Option<BigValues>,
    /// Whether only reads are sent, and all other requests get the default reply.
    pub(super) only_gets: bool,
    /// Whether deletes are kept that servers have not taken.
    pub(super) keeps_deletes: bool,
    /// Whether `shard_splits` count.
    pub(super) splits_shards: bool,
    /// The most copies of requests that are under way to a shadow, for each worker.
    pub(super) most_shadowed: usize,
    /// The most requests that are under way to a server, and of all clients, for each worker. `None`: there is
    /// no limit.
    pub(super) most_in_flight: Option<usize>,
    pub(super) most_in_all: Option<usize>,
    /// How many further ones wait.
    pub(super) queue: Option<Queue>,
    pub(super) queue_in_all: Option<Queue>,
    /// Whether a configuration is refused for what is otherwise left out of it.
    pub(super) is_strict: bool,
    /// TLS with servers that are asked by it.
    pub(super) tls: ClientTls,
    /// Whether every request is logged.
    pub(super) log_requests: bool,
    /// The rules for pools that are written as a whole. `None` if they are no pools of copies.
    pub(super) keep_writing: Option<Replicated>,
    /// The values of `%name%` without a definition.
    pub(super) constants: Constants,
}

impl Settings {
    /// Takes the settings from the options.
    pub(super) fn of(flags: &Flags) -> Result<Self, OptionError> {
        let millis = |name: &str| Duration::from_millis(flags.number(name)).min(NEVER);
        let limit = |name: &str| match flags.number(name) {
            0 => None,
            most => Some(usize::try_from(most).unwrap_or(usize::MAX)),
        };
        let queue = |name, outcome, text: &str| {
            let text = text.to_owned();
            limit(name).map(|most| Queue {
                most,
                full: ErrorReply { outcome, text },
            })
        };
        let written = flags.text("route-prefix");
        let default_route = routing_prefix(&written).ok_or(OptionError::BadValue {
            option: "route-prefix",
            takes: "`/region/cluster/`",
            found: written,
        })?;
        let (region, cluster) = region_and_cluster(&default_route).unwrap_or_default();
        let (region, cluster) = (region.to_owned(), cluster.to_owned());
        let server = millis("server-timeout");
        if server.is_zero() {
            return Err(OptionError::NoTimeout);
        }
        let initial = if flags.is_given("retry-timeout") {
            "retry-timeout"
        } else {
            "probe-timeout-initial"
        };
        let failures = u32::try_from(flags.number("timeouts-until-tko")).unwrap_or(u32::MAX);
        let eject = Eject {
            by: EjectBy::Suspicion,
            failures: if flags.flag("disable-tko-tracking") {
                0
            } else {
                failures
            },
            probe_initial: millis(initial).max(Duration::from_millis(1)),
            probe_max: millis("probe-timeout-max")
                .max(millis(initial))
                .max(Duration::from_millis(1)),
            fail_open_above: 1.0,
            flush_on_return: false,
        };
        let constants = constants(flags, &default_route, &region, &cluster)?;
        let timeouts = Timeouts {
            server,
            region,
            cluster,
            cross_region: millis("cross-region-timeout-ms"),
            cross_cluster: millis("cross-cluster-timeout-ms"),
            within_cluster: millis("within-cluster-timeout-ms"),
        };
        Ok(Self {
            timeouts,
            eject,
            keepalive: keepalive(flags),
            default_route,
            takes_unknown: flags.flag("send-invalid-route-to-default"),
            big_values: big_values(flags),
            only_gets: flags.flag("allow-only-gets"),
            keeps_deletes: !flags.flag("asynclog-disable"),
            splits_shards: !flags.flag("disable-shard-split-route"),
            most_shadowed: limit("target-max-shadow-requests").unwrap_or(usize::MAX),
            most_in_flight: limit("target-max-inflight-requests"),
            most_in_all: limit("proxy-max-inflight-requests"),
            queue: queue("target-max-pending-requests", Outcome::LocalError, "local error"),
            queue_in_all: queue("proxy-max-throttled-requests", Outcome::Busy, "307 busy"),
            is_strict: flags.validates != Validates::No,
            tls: with_servers(flags),
            log_requests: flags.flag("enable-logging-route"),
            keep_writing: keep_writing(flags),
            constants,
        })
    }
}

fn big_values(flags: &Flags) -> Option<BigValues> {
    let number = |name: &str| usize::try_from(flags.number(name)).unwrap_or(usize::MAX);
    let threshold = number("big-value-split-threshold");
    (threshold > 0).then(|| BigValues {
        threshold,
        batch: u32::try_from(number("big-value-batch-size")).unwrap_or(u32::MAX),
        hides_flag: flags.flag("big-value-hide-reply-flag"),
    })
}

fn keepalive(flags: &Flags) -> Option<KeepAlive> {
    let seconds = |name: &str| Some(flags.number(name)).filter(|seconds| *seconds > 0);
    let probes = u32::try_from(flags.number("keepalive-count")).unwrap_or(u32::MAX);
    (probes > 0).then(|| KeepAlive {
        idle: seconds("keepalive-idle").map(Duration::from_secs),
        interval: seconds("keepalive-interval").map(Duration::from_secs),
        probes: Some(probes),
    })
}

fn keep_writing(flags: &Flags) -> Option<Replicated> {
    let asked = flags.text("keep-writing");
    (asked != "false").then(|| Replicated {
        min_acks: asked.parse().ok(),
        // As in mcrouter, each server computes for itself.
        decide_at_home: false,
        ..Replicated::DEFAULT
    })
}
