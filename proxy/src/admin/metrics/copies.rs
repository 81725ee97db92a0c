//! Copies of replicated pools.

use std::collections::BTreeMap;

use super::labels;
use crate::{
    admin::page::{Page, quoted},
    control::{CopyCounters, CopyView, View},
    members::Member,
    metrics::Metrics,
};

/// Rows of copies, where a pool has any.
pub(super) fn copies(view: &View, metrics: &Metrics, page: &mut Page) {
    let copies: Vec<(&Member, &CopyView)> = view.copies().collect();
    if copies.is_empty() {
        return;
    }
    page.family(
        "copies",
        "gauge",
        "Copies of replicated pools, by what they may be used for.",
    );
    for (pool, states) in view.copy_states() {
        for (state, count) in states {
            let labels = format!("pool=\"{}\",state=\"{state}\"", quoted(pool));
            page.row("copies", &labels, count);
        }
    }
    let mut counter = |name: &str, help: &str, of: &dyn Fn(&Member, CopyCounters) -> u64| {
        page.family(name, "counter", help);
        for (member, copy) in &copies {
            page.row(
                &format!("{name}_total"),
                &labels(member),
                of(member, copy.counters),
            );
        }
    };
    counter(
        "copy_stale",
        "Times that this copy missed a write and was taken out of reads.",
        &|_, counts| counts.stale,
    );
    counter(
        "copy_repairs",
        "Repairs of this copy that deleted keys.",
        &|_, counts| counts.repairs,
    );
    counter(
        "copy_flushes",
        "Repairs of this copy that flushed it.",
        &|_, counts| counts.flushes,
    );
    counter(
        "skipped_writes",
        "Writes that went on without this copy.",
        &|member, _| {
            metrics
                .members
                .get(member.id.0 as usize)
                .map_or(0, |counted| counted.skipped)
        },
    );
    let mut setbacks: BTreeMap<&str, u64> = BTreeMap::new();
    for (member, copy) in &copies {
        *setbacks.entry(&member.pool.name).or_default() += copy.counters.setbacks;
    }
    page.family(
        "copy_setbacks",
        "counter",
        "Repairs of copies of a pool that failed.",
    );
    for (pool, count) in setbacks {
        page.row(
            "copy_setbacks_total",
            &format!("pool=\"{}\"", quoted(pool)),
            count,
        );
    }
    page.counter(
        "state_file_failures",
        "Times that the state file could not be written.",
        view.state_file_failures,
    );
}
