//! The document that watchers follow: all that the metrics and the state of the control thread say, made ready
//! to be looked at. What is not known or not used is missing; a value is never null, because a difference could
//! not say so.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    counts::{Counts, MemberCounts, Minute, Totals, WINDOWS},
    health::Health,
    history::{History, Point},
    latency::{Quantiles, rounded},
};
use crate::{
    admin::{
        members::{Row, rows},
        mysql::MysqlStatus,
        process::Usage,
        since::Clock,
    },
    control::{Proxy, View},
    members::PoolId,
    metrics::{Latency, Metrics},
};

/// The form of the document.
pub(super) const VERSION: u32 = 1;

/// Makes one document after the other.
#[derive(Default)]
pub(super) struct Recorder {
    minute: Minute,
    history: History,
}

/// A row of `/members` with what the last seconds have counted.
#[derive(Serialize)]
struct Member {
    #[serde(flatten)]
    row: Row,
    /// Replies a second.
    rate: Option<f64>,
    /// Error replies a second.
    errors: Option<f64>,
    /// Connections that broke or were late, since the start.
    failures: u64,
    /// The mean time of its replies in the last ten seconds.
    mean_us: Option<f64>,
}

impl Recorder {
    /// The document of now.
    #[allow(
        clippy::disallowed_methods,
        reason = "beside the control thread, which owns the clock"
    )]
    pub(super) fn document(&mut self, proxy: &Proxy) -> Value {
        let (metrics, view, usage) = (proxy.metrics(), proxy.view(), Usage::now());
        let now = (Instant::now(), SystemTime::now());
        // A pause of some seconds: nothing before it tells about the last second.
        if self
            .minute
            .last()
            .is_some_and(|(last, _)| now.0 - last.at > Duration::from_secs(5))
        {
            self.minute.clear();
        }
        let totals = totals(proxy, &metrics, usage.as_ref());
        self.minute.add(Counts::of(&metrics, totals, now.0));
        let rates = self.rates();
        let point = Point {
            p99_us: self.worst_p99(),
            ..point(&rates, &metrics, usage.as_ref())
        };
        let mut document = json!({
            "version": VERSION,
            "process": self.process(proxy, usage, now.1),
            "health": Health::of(proxy, &view, now),
            "configuration": configuration(&view),
            "rates": rates,
            "clients": {
                "open": metrics.open_clients,
                "most": proxy.most_clients(),
                "slow_readers": metrics.slow_readers.clients,
                "unread_bytes": metrics.slow_readers.bytes,
                "unread_us": metrics.slow_readers.longest.0,
            },
            "latency": self.latency(&metrics.latency),
            "listeners": self.listeners(&view, &metrics),
            "pools": self.pools(&view, &metrics),
            "members": self.members(proxy, &view, &metrics, now.0),
            "embedded": proxy.store().map(|(limit, totals)| json!({
                "items": totals.items, "bytes": totals.bytes, "limit_bytes": limit,
            })),
            "fleet": proxy.fleet().map(|fleet| fleet.status()),
            "slow": proxy.slow_terms().map(|terms| json!({
                "over_us": terms.over.as_micros() as u64, "count": proxy.slow_requests().counts().0,
            })),
            "near": proxy.near_status_by(&metrics).ok(),
            "mysql": Some(mysql(&view, &metrics, now.0)).filter(|status| !status.pools.is_empty()),
            "agent": view.agent.as_ref().map(|agent| json!({
                "is_up": agent.is_up,
                "containers": view.localities().map_or(0, |localities| localities.counts().0),
                "located": {
                    "numa_node": metrics.located[0], "socket": metrics.located[1], "host": metrics.located[2],
                },
                "machine": agent.machine.as_deref(),
            })),
        });
        self.history.add(unix_ms(now.1), point);
        document["history"] = json!(self.history.lines());
        without_nulls(&mut document);
        document
    }

    fn process(&self, proxy: &Proxy, usage: Option<Usage>, now: SystemTime) -> Value {
        json!({
            "id": proxy.process(),
            "program": env!("CARGO_PKG_VERSION"),
            "host": proxy.host_name(),
            "started_ms": proxy.start().1.as_millis() as u64,
            "now_ms": unix_ms(now),
            "io": proxy.io().to_string(),
            "workers": proxy.workers(),
            "cores": self.rate(|totals| totals.cpu).map(|cores| (cores * 1000.0).round() / 1000.0),
            "rss_bytes": usage.as_ref().map(|usage| usage.resident_bytes),
            "descriptors": {
                "open": usage.as_ref().and_then(|usage| usage.descriptors),
                "most": usage.as_ref().and_then(|usage| usage.most_descriptors),
            },
        })
    }

    /// How much more there is than a second ago. `None`: this is the first look.
    fn rate(&self, of: impl Fn(&Totals) -> f64) -> Option<f64> {
        let (last, before) = self.minute.last()?;
        let before = before?;
        let seconds = (last.at - before.at).as_secs_f64().max(1e-3);
        Some((of(&last.totals) - of(&before.totals)).max(0.0) / seconds)
    }

    fn rates(&self) -> BTreeMap<&'static str, f64> {
        type Of = fn(&Totals) -> u64;
        let all: [(&'static str, Of); 8] = [
            ("requests", |totals| totals.requests),
            ("hits", |totals| totals.hits),
            ("misses", |totals| totals.misses),
            ("errors", |totals| totals.errors),
            ("client_bytes_in", |totals| totals.received),
            ("client_bytes_out", |totals| totals.sent),
            ("server_requests", |totals| totals.asked),
            ("accepted", |totals| totals.accepted),
        ];
        let rates = all.into_iter().filter_map(|(name, of)| {
            let rate = self.rate(|totals| of(totals) as f64)?;
            Some((name, rounded(rate)))
        });
        rates.collect()
    }

    /// Quantiles in each window of the sum of histograms.
    fn latency(&self, now: &[Latency]) -> Value {
        let sum = |all: &[Latency]| {
            let mut sum = Latency::default();
            all.iter().for_each(|latency| sum.add(latency));
            sum
        };
        self.windows(|before| {
            let before = before.map(|before| sum(&before.listeners));
            Quantiles::between(before.as_ref(), &sum(now))
        })
    }

    /// For each window that has begun: what has come since.
    fn windows(&self, of: impl Fn(Option<&Counts>) -> Option<Quantiles>) -> Value {
        let window = |(name, window): (&str, Duration)| {
            let begin = self.minute.begin(window)?;
            Some((name.to_owned(), json!(of(Some(begin))?)))
        };
        Value::Object(WINDOWS.into_iter().filter_map(window).collect())
    }

    /// The highest of all listeners in the shortest window.
    fn worst_p99(&self) -> Option<f64> {
        let (last, _) = self.minute.last()?;
        let [(_, window), ..] = WINDOWS;
        let begin = self.minute.begin(window)?;
        let mut worst: Option<f64> = None;
        for (number, now) in last.listeners.iter().enumerate() {
            let found = Quantiles::between(begin.listeners.get(number), now);
            if let Some(found) = found {
                worst = Some(worst.unwrap_or(0.0).max(found.p99_us()));
            }
        }
        worst
    }

    fn listeners(&self, view: &View, metrics: &Metrics) -> Value {
        let mut all = Map::new();
        for (number, address) in view.listeners.iter().enumerate() {
            let Some(address) = address else { continue };
            let latency = metrics.latency.get(number);
            let counted = metrics.listeners.get(number);
            let listener = json!({
                "number": number,
                "protocol": view.protocols.get(number),
                "clients": counted.map_or(0, |counted| counted.clients),
                "rate": self.since_last(|counts| counts.listeners.get(number).map_or(0, Latency::count)),
                "errors": self.since_last(|counts| counts.failed.get(number).copied().unwrap_or(0)),
                "latency": latency.map(|now| self.windows(|before| {
                    Quantiles::between(before.and_then(|before| before.listeners.get(number)), now)
                })),
            });
            all.insert(address.clone(), listener);
        }
        Value::Object(all)
    }

    /// How much more a count is than a second ago, a second.
    fn since_last(&self, of: impl Fn(&Counts) -> u64) -> Option<f64> {
        let (last, before) = self.minute.last()?;
        let before = before?;
        let seconds = (last.at - before.at).as_secs_f64().max(1e-3);
        Some(rounded(of(last).saturating_sub(of(before)) as f64 / seconds))
    }

    fn pools(&self, view: &View, metrics: &Metrics) -> Value {
        let mut all = Map::new();
        for state in &view.pools {
            let mut members = view.members.iter().map(|found| &found.member);
            let member = members.find(|member| *member.pool.name == *state.name);
            let id = member.map(|member| member.pool.id);
            all.insert(
                state.name.clone(),
                json!({
                    "protocol": member.map(|member| member.protocol.name()),
                    "up": state.up,
                    "members": state.members,
                    "rate": id.and_then(|id| self.since_last(|counts| count_of(&counts.pools[0], id))),
                    "latency": id.map(|id| self.at_pool(&metrics.pools, 0, id)),
                    "waits": id.map(|id| json!({
                        "held": self.at_pool(&metrics.held, 1, id),
                        "queued": self.at_pool(&metrics.queued, 2, id),
                        "parked": metrics.parked.get(id.0 as usize).copied().unwrap_or(0),
                        "unsent_bytes": unsent(view, metrics, &state.name),
                    })),
                }),
            );
        }
        Value::Object(all)
    }

    fn at_pool(&self, now: &[Latency], which: usize, id: PoolId) -> Value {
        let number = id.0 as usize;
        let Some(now) = now.get(number) else {
            return Value::Object(Map::new());
        };
        self.windows(|before| {
            Quantiles::between(before.and_then(|before| before.pools[which].get(number)), now)
        })
    }

    fn members(&self, proxy: &Proxy, view: &View, metrics: &Metrics, now: Instant) -> Value {
        let mut all = Map::new();
        let clock = Clock::unix(proxy);
        let [(_, window), ..] = WINDOWS;
        let begin = self.minute.begin(window);
        for (found, row) in view.members.iter().zip(rows(view, metrics, None, now, clock)) {
            let member = &found.member;
            let number = member.id.0 as usize;
            let of = |counts: &Counts| counts.members.get(number).copied().unwrap_or_default();
            let mean = || {
                let (newest, _) = self.minute.last()?;
                let (now, before) = (of(newest), of(begin?));
                let replies = now
                    .replies
                    .checked_sub(before.replies)
                    .filter(|&replies| replies > 0)?;
                Some(rounded(
                    now.micros.saturating_sub(before.micros) as f64 / replies as f64,
                ))
            };
            let rate = |count: fn(&MemberCounts) -> u64| self.since_last(|counts| count(&of(counts)));
            let shown = Member {
                row,
                rate: rate(|member| member.replies),
                errors: rate(|member| member.errors),
                failures: metrics.members.get(number).map_or(0, |counted| counted.failures),
                mean_us: mean(),
            };
            all.insert(format!("{}/{}", member.pool.name, member.name), json!(shown));
        }
        Value::Object(all)
    }
}

/// The pools of MySQL. There may be very many sessions: they have a page of their own.
fn mysql(view: &View, metrics: &Metrics, now: Instant) -> MysqlStatus {
    MysqlStatus::of(view, metrics, now, |_| BTreeMap::new())
}

/// The count of a histogram of this pool.
fn count_of(all: &[Latency], id: PoolId) -> u64 {
    all.get(id.0 as usize).map_or(0, Latency::count)
}

/// Bytes of requests that the sockets of a pool's members have not taken.
fn unsent(view: &View, metrics: &Metrics, pool: &str) -> u64 {
    let members = view
        .members
        .iter()
        .filter(|found| *found.member.pool.name == *pool);
    let counted = members.filter_map(|found| metrics.members.get(found.member.id.0 as usize));
    counted.map(|counted| counted.unsent_bytes).sum()
}

fn configuration(view: &View) -> Value {
    json!({
        "version": view.version,
        "changed_ms": unix_ms(view.changed),
        "attempted_ms": unix_ms(view.attempted),
        "refused": view.reloads.refused,
        "reloads": view.reloads.done,
        "failures": view.reloads.failed,
    })
}

fn totals(proxy: &Proxy, metrics: &Metrics, usage: Option<&Usage>) -> Totals {
    let mut totals = Totals {
        requests: metrics.requests.iter().sum(),
        errors: metrics.replies.errors(),
        received: metrics.client_traffic.received,
        sent: metrics.client_traffic.sent,
        asked: metrics.sent.iter().sum(),
        accepted: metrics.clients.accepted,
        cpu: usage.map_or(0.0, |usage| usage.cpu_seconds),
        ..Totals::default()
    };
    for (number, (protocol, command)) in proxy.protocols().commands().enumerate() {
        if protocol.looks_up(command) {
            let [hits, misses] = metrics.replies.lookups(number);
            totals.hits += hits;
            totals.misses += misses;
        }
    }
    totals
}

/// A point of all lines but that of the latency.
fn point(rates: &BTreeMap<&'static str, f64>, metrics: &Metrics, usage: Option<&Usage>) -> Point {
    let rate = |name| rates.get(name).copied().unwrap_or(0.0);
    let (hits, all) = (rate("hits"), rate("hits") + rate("misses"));
    Point {
        requests: rate("requests"),
        hit_ratio: (all > 0.0).then(|| hits / all),
        p99_us: None,
        errors: rate("errors"),
        clients: metrics.open_clients as f64,
        rss_bytes: usage.map(|usage| usage.resident_bytes),
        descriptors: usage.and_then(|usage| usage.descriptors),
    }
}

fn unix_ms(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// Leaves out what is null, but in lists, whose elements have their place.
fn without_nulls(value: &mut Value) {
    if let Value::Object(object) = value {
        object.retain(|_, value| !value.is_null());
        object.values_mut().for_each(without_nulls);
    } else if let Value::Array(elements) = value {
        elements.iter_mut().for_each(without_nulls);
    }
}
