//! The overview: what the process does, and whether all is well.

use serde_json::Value;

use super::values::{bytes, counted, elements, micros, number, of_most, text, time_of_day};
use crate::cli::table::{size, time};

/// One line: what it is about, and what is the case.
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) text: String,
    pub(super) is_bad: bool,
}

/// The facts, the most important first. What the process does not use is not among them.
pub(super) fn facts(document: &Value) -> Vec<Fact> {
    let fact = |name, text| Fact {
        name,
        text,
        is_bad: false,
    };
    let process = &document["process"];
    let rates = &document["rates"];
    let (hits, misses) = (rates["hits"].as_f64(), rates["misses"].as_f64());
    let ratio = match (hits, misses) {
        (Some(hits), Some(misses)) if hits + misses > 0.0 => {
            format!("{:.1} % hits", hits * 100.0 / (hits + misses))
        }
        _ => "no reads".to_owned(),
    };
    let per_second = |value: &Value| number(value, |rate| format!("{}/s", size(rate as u64)));
    let mut facts = vec![
        health(&document["health"]),
        Fact {
            name: "requests",
            text: format!(
                "{}/s, {ratio}, {} errors/s",
                counted(&rates["requests"]),
                counted(&rates["errors"])
            ),
            is_bad: rates["errors"].as_f64() > Some(0.0),
        },
        fact(
            "traffic",
            format!(
                "{} from and {} to clients, {} requests/s to servers",
                per_second(&rates["client_bytes_in"]),
                per_second(&rates["client_bytes_out"]),
                counted(&rates["server_requests"])
            ),
        ),
        fact("latency 10 s", latency(&document["latency"]["10s"])),
        fact("latency 1 min", latency(&document["latency"]["1m"])),
        fact(
            "clients",
            format!(
                "{}, {} accepted/s",
                of_most(
                    &document["clients"]["open"],
                    &document["clients"]["most"],
                    counted
                ),
                counted(&rates["accepted"])
            ),
        ),
        fact("memory", memory(process, &document["embedded"])),
        fact(
            "descriptors",
            of_most(
                &process["descriptors"]["open"],
                &process["descriptors"]["most"],
                counted,
            ),
        ),
        fact(
            "processors",
            format!(
                "{} in use, {} workers, {}",
                number(&process["cores"], |cores| format!("{cores:.2}")),
                counted(&process["workers"]),
                text(&process["io"])
            ),
        ),
        configuration(&document["configuration"]),
    ];
    facts.extend(fleet(&document["fleet"]));
    let near = &document["near"];
    if !near.is_null() {
        let keys = counted(&near["keys"]);
        let in_use = of_most(&near["bytes"], &near["memory"], bytes);
        facts.push(fact("near cache", format!("{keys} keys, {in_use}")));
    }
    facts.extend(elements(&document["mysql"]["pools"]).filter_map(writer));
    if let Some(is_up) = document["agent"]["is_up"].as_bool() {
        facts.push(Fact {
            name: "node agent",
            text: if is_up { "answers" } else { "does not answer" }.to_owned(),
            is_bad: !is_up,
        });
    }
    facts
}

fn health(health: &Value) -> Fact {
    Fact {
        name: "health",
        text: text(&health["sentence"]),
        is_bad: health["state"] != "serving",
    }
}

fn latency(quantiles: &Value) -> String {
    format!(
        "p50 {}, p99 {}, p99.9 {}, mean {}",
        micros(&quantiles["p50_us"]),
        micros(&quantiles["p99_us"]),
        micros(&quantiles["p999_us"]),
        micros(&quantiles["mean_us"])
    )
}

fn memory(process: &Value, embedded: &Value) -> String {
    let mut memory = bytes(&process["rss_bytes"]);
    let buffers = &process["buffers"];
    if !buffers.is_null() {
        memory += &format!(
            ", buffers {}",
            of_most(&buffers["bytes"], &buffers["most"], bytes)
        );
    }
    if !embedded.is_null() {
        let in_use = of_most(&embedded["bytes"], &embedded["limit_bytes"], bytes);
        memory += &format!(", store {in_use} with {} items", counted(&embedded["items"]));
    }
    memory
}

fn configuration(configuration: &Value) -> Fact {
    let mut words = format!(
        "version {} since {} UTC, {} reloads",
        text(&configuration["version"]),
        time_of_day(&configuration["changed_ms"]),
        counted(&configuration["reloads"])
    );
    let refused = text(&configuration["refused"]);
    if !refused.is_empty() {
        words = format!(
            "REFUSED at {} UTC: {refused}; version {} runs on",
            time_of_day(&configuration["attempted_ms"]),
            text(&configuration["version"])
        );
    }
    Fact {
        name: "configuration",
        text: words,
        is_bad: !refused.is_empty(),
    }
}

fn fleet(fleet: &Value) -> Option<Fact> {
    let peers = fleet["peers"].as_array()?.len();
    let leader = text(&fleet["leader"]);
    Some(Fact {
        name: "fleet",
        text: format!(
            "view {}, {peers} peers, {}",
            text(&fleet["view"]),
            match leader.is_empty() {
                true => "NO LEADER".to_owned(),
                false => format!("leader {leader}"),
            }
        ),
        is_bad: leader.is_empty() || elements(&fleet["alerts"]).next().is_some(),
    })
}

/// The writer of a pool whose servers have roles.
fn writer(pool: &Value) -> Option<Fact> {
    let has_roles = pool["has_roles"].as_bool()?;
    let writer = text(&pool["writer"]);
    has_roles.then(|| Fact {
        name: "writes",
        text: match writer.is_empty() {
            true => format!("pool {}: NO WRITER", text(&pool["name"])),
            false => format!("pool {}: {writer} takes them", text(&pool["name"])),
        },
        is_bad: writer.is_empty(),
    })
}

/// Which process this is, and for how long it has been running.
pub(super) fn title(document: &Value, address: &str) -> String {
    let process = &document["process"];
    let since = process["started_ms"].as_u64().zip(process["now_ms"].as_u64());
    let up = since.map(|(started, now)| format!(", up {}", time(now.saturating_sub(started) as f64 / 1e3)));
    let node = [&process["node"], &process["host"]].map(text);
    let node = node.iter().find(|node| !node.is_empty());
    format!(
        "proxima {} at {}{}{}",
        text(&process["program"]),
        text(&address.into()),
        node.map(|node| format!(" on {node}")).unwrap_or_default(),
        up.unwrap_or_default()
    )
}
