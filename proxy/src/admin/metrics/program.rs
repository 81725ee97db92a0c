//! The program, its configuration, and its questions over the network.

use std::collections::BTreeMap;

use crate::{
    admin::page::{Page, quoted},
    control::{LookupCounts, Proxy, Reloads, View},
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
pub(super) fn configuration(view: &View, page: &mut Page) {
    let Reloads {
        done: reloads,
        failed: failures,
        refused,
    } = &view.reloads;
    page.family("config", "info", "The running configuration.");
    page.row(
        "config_info",
        &format!("version=\"{}\"", quoted(&view.version)),
        1,
    );
    page.counter(
        "config_reloads",
        "Configurations that took effect after the first.",
        *reloads,
    );
    page.counter("config_failures", "Configurations that were refused.", *failures);
    page.gauge(
        "config_last_reload_successful",
        "Is what the configuration says now what runs?",
        u8::from(refused.is_none()),
    );
}

/// Rows of the names that DNS is asked for.
pub(super) fn dns(view: &View, page: &mut Page) {
    let families = Families {
        up: ("dns_up", "Did DNS name servers when it was asked last?"),
        answers: ("dns_answers", "Answers of DNS that name servers."),
        failures: ("dns_failures", "Questions to DNS without such an answer."),
    };
    asked(&view.lookups, &families, page);
}

/// Rows of the configuration endpoints that are asked.
pub(super) fn endpoints(view: &View, page: &mut Page) {
    let endpoints = &view.endpoints;
    let families = Families {
        up: (
            "endpoint_up",
            "Did the endpoint name its nodes when it was asked last?",
        ),
        answers: ("endpoint_answers", "Answers of endpoints that name their nodes."),
        failures: (
            "endpoint_failures",
            "Questions to endpoints without such an answer.",
        ),
    };
    asked(endpoints, &families, page);
    let versions = endpoints
        .iter()
        .filter_map(|(pool, name, status)| Some((pool, name, status.version?)));
    let versions: Vec<_> = versions.collect();
    if versions.is_empty() {
        return;
    }
    page.family(
        "endpoint_version",
        "gauge",
        "The version of the list of nodes in use.",
    );
    for (pool, name, version) in versions {
        page.row(
            "endpoint_version",
            &format!("pool=\"{}\",name=\"{}\"", quoted(pool), quoted(name)),
            version,
        );
    }
}

/// Rows of the Services of Kubernetes that are followed.
pub(super) fn services(view: &View, page: &mut Page) {
    let families = Families {
        up: (
            "service_up",
            "Did the API server of Kubernetes tell the endpoints of the Service when it was asked last?",
        ),
        answers: (
            "service_answers",
            "Answers of the API server with other endpoints than before, or behind a failure.",
        ),
        failures: (
            "service_failures",
            "Questions to the API server, and what it told, without such an answer.",
        ),
    };
    asked(&view.services, &families, page);
}

/// The families of questions over the network, each with its meaning.
struct Families {
    up: (&'static str, &'static str),
    answers: (&'static str, &'static str),
    failures: (&'static str, &'static str),
}

/// Rows of questions over the network.
fn asked(questions: &[(String, String, LookupCounts)], families: &Families, page: &mut Page) {
    if questions.is_empty() {
        return;
    }
    let (up, help) = families.up;
    page.family(up, "gauge", help);
    for (pool, name, status) in questions {
        page.row(
            up,
            &format!("pool=\"{}\",name=\"{}\"", quoted(pool), quoted(name)),
            u8::from(status.answers > 0 && status.failure.is_none()),
        );
    }
    // Where servers are written with names, each name is one server, and there may be many of them.
    let mut pools: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (pool, _, status) in questions {
        let [answers, failures] = pools.entry(quoted(pool)).or_default();
        *answers += status.answers;
        *failures += status.failures;
    }
    for (number, (name, help)) in [families.answers, families.failures].into_iter().enumerate() {
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
