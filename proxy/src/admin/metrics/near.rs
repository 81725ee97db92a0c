//! The near cache.

use crate::{
    admin::page::{Page, quoted},
    control::{Proxy, passed, refused},
    metrics::{Metrics, NearRuleCounts},
    near::RemovalReason,
};

type Count = fn(&NearRuleCounts) -> u64;

/// What is counted by rule.
const COUNTS: [(&str, &str, Count); 8] = [
    (
        "near_hits",
        "Requests that were answered from kept replies.",
        |of| of.hits,
    ),
    (
        "near_stale_hits",
        "Those of the hits that got a reply whose time was over.",
        |of| of.stale,
    ),
    (
        "near_negative_hits",
        "Those of the hits that were told that there is nothing.",
        |of| of.negative,
    ),
    (
        "near_misses",
        "Requests that were the first to ask for what was not kept.",
        |of| of.misses,
    ),
    (
        "near_joined",
        "Requests that waited for a reply that was under way for another one.",
        |of| of.joined,
    ),
    ("near_fills", "Requests that were sent to fetch a reply.", |of| {
        of.fills
    }),
    ("near_stored", "Replies that were fetched and kept.", |of| of.kept),
    (
        "near_stale_for_errors",
        "Requests that got an old reply in place of an error.",
        |of| of.stood_for_errors,
    ),
];

/// Rows of the near cache, where a route keeps replies.
pub(super) fn near(proxy: &Proxy, metrics: &Metrics, page: &mut Page) {
    let Some((near, rules)) = proxy.near_rules() else {
        return;
    };
    let usage = near.store.usage();
    page.gauge(
        "near_limit_bytes",
        "The most bytes of kept replies.",
        near.store.memory(),
    );
    page.gauge(
        "near_bytes",
        "Bytes of kept replies and what finds them.",
        usage.bytes,
    );
    page.gauge("near_keys", "Keys with kept replies.", usage.keys);
    let rows: Vec<_> = rules
        .all()
        .map(|rule| {
            let labels = format!("rule=\"{}\"", quoted(&rule.name));
            (
                labels,
                metrics.near.get(rule.slot),
                near.store.usage_of(rule),
                rule,
            )
        })
        .collect();
    page.family("near_rule_on", "gauge", "Is anything kept by this rule?");
    for (labels, .., rule) in &rows {
        page.row("near_rule_on", labels, u8::from(rule.is_on()));
    }
    page.family("near_rule_ttl_seconds", "gauge", "The `ttl` in force.");
    for (labels, .., rule) in &rows {
        let ttl = rule.settings().ttl.0 as f64 / 1e6;
        page.row("near_rule_ttl_seconds", labels, ttl);
    }
    page.family("near_rule_entries", "gauge", "Kept replies.");
    for (labels, _, usage, _) in &rows {
        page.row("near_rule_entries", labels, usage.entries);
    }
    page.family("near_rule_bytes", "gauge", "Bytes of kept replies.");
    for (labels, _, usage, _) in &rows {
        page.row("near_rule_bytes", labels, usage.bytes);
    }
    for (name, help, count) in COUNTS {
        page.family(name, "counter", help);
        for (labels, counts, ..) in &rows {
            page.row(&format!("{name}_total"), labels, count(counts));
        }
    }
    let name = "near_refused_fills";
    page.family(
        name,
        "counter",
        "Replies that were fetched and not kept, by reason.",
    );
    for (labels, counts, ..) in &rows {
        for (why, count) in refused(counts) {
            page.row(
                &format!("{name}_total"),
                &format!("{labels},reason=\"{why}\""),
                count,
            );
        }
    }
    let name = "near_passed";
    page.family(
        name,
        "counter",
        "Requests that went to a server although their rule is on, by reason.",
    );
    for (labels, counts, ..) in &rows {
        for (why, count) in passed(counts) {
            page.row(
                &format!("{name}_total"),
                &format!("{labels},reason=\"{why}\""),
                count,
            );
        }
    }
    let name = "near_dropped";
    page.family(name, "counter", "Kept replies that went, by reason.");
    for (labels, _, usage, _) in &rows {
        for why in RemovalReason::ALL {
            let labels = format!("{labels},reason=\"{}\"", why.name());
            page.row(&format!("{name}_total"), &labels, usage.gone(why));
        }
    }
    let seconds = |micros: u64| micros as f64 / 1e6;
    let name = "near_hit_age_seconds";
    page.family(
        name,
        "counter",
        "The age of the replies at hits, of all hits together.",
    );
    for (labels, counts, ..) in &rows {
        page.row(&format!("{name}_total"), labels, seconds(counts.age));
    }
    // The mean may fall, so that this is no counter.
    let name = "near_saved_seconds";
    page.family(
        name,
        "gauge",
        "The time that hits have saved, each of them the mean time in which replies were fetched.",
    );
    for (labels, counts, ..) in &rows {
        page.row(name, labels, seconds(counts.saved()));
    }
}
