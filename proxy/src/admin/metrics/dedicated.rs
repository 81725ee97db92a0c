//! Connections that one client has for itself.

use std::collections::BTreeMap;

use crate::{
    admin::page::{Page, quoted},
    control::{MemberView, View},
    metrics::Metrics,
};

/// Rows of each pool's dedicated connections.
pub(super) fn dedicated(view: &View, metrics: &Metrics, page: &mut Page) {
    let mut pools: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for MemberView { member, .. } in &view.members {
        let sums = pools.entry(member.pool.name.to_string()).or_default();
        if let Some(counted) = metrics.members.get(member.id.0 as usize) {
            let counts = [
                counted.dedicated,
                counted.dedicated_waited,
                counted.dedicated_refused,
            ];
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
    let families = [
        (
            "dedicated_lanes",
            "gauge",
            "Connections that a client has for itself.",
        ),
        (
            "dedicated_waits",
            "counter",
            "Requests that had to wait for such a connection.",
        ),
        (
            "dedicated_refusals",
            "counter",
            "Requests that got no such connection in time.",
        ),
    ];
    for (place, (name, kind, about)) in families.into_iter().enumerate() {
        page.family(name, kind, about);
        let row = if kind == "counter" {
            format!("{name}_total")
        } else {
            name.to_owned()
        };
        for (pool, sums) in &pools {
            page.row(&row, &format!("pool=\"{}\"", quoted(pool)), sums[place]);
        }
    }
}
