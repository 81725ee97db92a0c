//! Connections that one client has for itself, and what brings them to the state of its session.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    admin::page::{Page, quoted},
    control::{MemberView, View},
    members::Pool,
    metrics::{MemberMetrics, Metrics},
    protocol::Protocol,
};

/// The count of one family, of the counts of a member.
type Counted = fn(&MemberMetrics) -> u64;

/// The families: the name, the type, the meaning, and the count.
const FAMILIES: [(&str, &str, &str, Counted); 6] = [
    (
        "dedicated_lanes",
        "gauge",
        "Connections that a client has for itself.",
        |member| member.dedicated,
    ),
    (
        "dedicated_idle_lanes",
        "gauge",
        "Connections that a client may have for itself, and none has now.",
        |member| member.dedicated_idle,
    ),
    (
        "dedicated_opened",
        "counter",
        "Connections that were opened for one client at a time.",
        |member| member.dedicated_opened,
    ),
    (
        "dedicated_queued",
        "gauge",
        "Requests that wait for such a connection now.",
        |member| member.dedicated_queued,
    ),
    (
        "dedicated_waits",
        "counter",
        "Requests that had to wait for such a connection.",
        |member| member.dedicated_waited,
    ),
    (
        "dedicated_refusals",
        "counter",
        "Requests that got no such connection in time.",
        |member| member.dedicated_refused,
    ),
];

/// A pool, and the protocol that its members speak.
type Pools<'a> = BTreeMap<&'a str, (&'a Arc<Pool>, &'static dyn Protocol)>;

/// Rows of each pool's dedicated connections.
pub(super) fn dedicated(view: &View, metrics: &Metrics, page: &mut Page) {
    let mut sums: BTreeMap<&str, MemberMetrics> = BTreeMap::new();
    let mut pools: Pools<'_> = BTreeMap::new();
    for MemberView { member, .. } in &view.members {
        let sum = sums.entry(&member.pool.name).or_default();
        if let Some(counted) = metrics.members.get(member.id.0 as usize) {
            sum.add(counted);
        }
        pools.insert(&member.pool.name, (&member.pool, member.protocol));
    }
    for (name, kind, about, count) in FAMILIES {
        page.family(name, kind, about);
        let row = match kind {
            "counter" => format!("{name}_total"),
            _ => name.to_owned(),
        };
        for (pool, sum) in &sums {
            page.row(&row, &label(pool), count(sum));
        }
    }
    waits(&pools, metrics, page);
    own(&pools, metrics, page);
}

/// Rows of the time that requests have waited for such a connection.
fn waits(pools: &Pools<'_>, metrics: &Metrics, page: &mut Page) {
    let name = "dedicated_wait_duration_seconds";
    page.family(
        name,
        "summary",
        "How long requests waited for such a connection, until they had one or were answered without.",
    );
    for (pool, (found, _)) in pools {
        if let Some(waited) = metrics.queued.get(found.id.0 as usize) {
            page.summary(name, &label(pool), waited.count(), waited.sum);
        }
    }
}

/// Rows of the requests that no client has made.
fn own(pools: &Pools<'_>, metrics: &Metrics, page: &mut Page) {
    page.family(
        "own_requests",
        "counter",
        "Requests by which the proxy gives a connection the state of a session, or resets it, by command.",
    );
    for (pool, (found, protocol)) in pools {
        let counts = metrics.own.get(found.id.0 as usize);
        for (command, &count) in counts.into_iter().flatten().enumerate() {
            if count > 0 {
                let command = protocol.command_name(command as u16);
                let labels = format!("{},command=\"{command}\"", label(pool));
                page.row("own_requests_total", &labels, count);
            }
        }
    }
}

fn label(pool: &str) -> String {
    format!("pool=\"{}\"", quoted(pool))
}
