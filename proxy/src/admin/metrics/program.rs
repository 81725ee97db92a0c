//! The program, its configuration, and its DNS look-ups.

use std::collections::BTreeMap;

use crate::{
    admin::page::{Page, quoted},
    control::Proxy,
};

/// Rows of the program.
pub(super) fn build(proxy: &Proxy, page: &mut Page) {
    page.family("build", "info", "The running program.");
    page.row(
        "build_info",
        &format!("version=\"{}\",io=\"{}\"", env!("CARGO_PKG_VERSION"), proxy.io()),
        1,
    );
    page.gauge("uptime_seconds", "Since the start.", proxy.uptime().as_secs());
    page.gauge("workers", "Worker threads.", proxy.workers());
}

/// Rows of the configuration.
pub(super) fn configuration(proxy: &Proxy, page: &mut Page) {
    let (reloads, failures, refused) = proxy.reloads();
    page.family("config", "info", "The running configuration.");
    page.row(
        "config_info",
        &format!("version=\"{}\"", quoted(&proxy.version())),
        1,
    );
    page.counter(
        "config_reloads",
        "Configurations that took effect after the first.",
        reloads,
    );
    page.counter("config_failures", "Configurations that were refused.", failures);
    page.gauge(
        "config_last_reload_successful",
        "Is what the configuration says now what runs?",
        u8::from(refused.is_none()),
    );
}

/// Rows of the names that DNS is asked for.
pub(super) fn dns(proxy: &Proxy, page: &mut Page) {
    let questions = proxy.questions();
    if questions.is_empty() {
        return;
    }
    page.family("dns_up", "gauge", "Did DNS name servers when it was asked last?");
    for (pool, name, status) in &questions {
        page.row(
            "dns_up",
            &format!("pool=\"{}\",name=\"{}\"", quoted(pool), quoted(name)),
            u8::from(status.answers > 0 && status.failure.is_none()),
        );
    }
    // Where servers are written with names, each name is one server, and there may be many of them.
    let mut pools: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (pool, _, status) in &questions {
        let [answers, failures] = pools.entry(quoted(pool)).or_default();
        *answers += status.answers;
        *failures += status.failures;
    }
    for (number, (name, help)) in [
        ("dns_answers", "Answers of DNS that name servers."),
        ("dns_failures", "Questions to DNS without such an answer."),
    ]
    .into_iter()
    .enumerate()
    {
        page.family(name, "counter", help);
        for (pool, counts) in &pools {
            page.row(
                &format!("{name}_total"),
                &format!("pool=\"{pool}\""),
                counts[number],
            );
        }
    }
}
