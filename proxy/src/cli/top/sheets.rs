//! The tables of `proxima top`: servers, listeners, pools, hot keys and events.

use serde_json::Value;

use super::{
    sheet::{Cell, Row, Sheet},
    values::{elements, entries, micros, text, time_of_day},
};
use crate::cli::table::{count, time};

/// All servers.
pub(super) fn servers(document: &Value) -> Sheet {
    let row = |(_, member): (&String, &Value)| {
        let (state, is_bad) = state(member);
        let why = text(&member["why"]);
        let mut detail = format!("{} {}: {state}", text(&member["pool"]), text(&member["name"]));
        if let Some(since) = member["since_ms"].as_u64() {
            let now = document["process"]["now_ms"].as_u64().unwrap_or(since);
            detail += &format!(" for {}", time(now.saturating_sub(since) as f64 / 1e3));
        }
        for (what, value) in [
            ("", &why),
            ("address ", &text(&member["address"])),
            ("its name is now ", &text(&member["resolves_to"])),
            ("on node ", &text(&member["node"])),
            ("zone ", &text(&member["zone"])),
            ("copy ", &text(&member["copy"]["state"])),
            ("", &text(&member["copy"]["why"])),
            ("", &text(&member["role_why"])),
        ] {
            if !value.is_empty() {
                detail += &format!("; {what}{value}");
            }
        }
        let missed = &member["missed_writes"];
        let missed = if missed.is_null() {
            &member["copy"]["missed"]
        } else {
            missed
        };
        Row {
            cells: vec![
                Cell::text(&member["name"]),
                Cell::text(&member["pool"]),
                Cell::ranked(state, f64::from(u8::from(!is_bad))),
                Cell::number(&member["rate"], count),
                Cell::number(&member["errors"], count),
                Cell::number(&member["mean_us"], |us| time(us / 1e6)),
                Cell::number(&member["lanes"], count),
                Cell::number(&member["waiting"], count),
                Cell::text(missed),
                Cell::from(why),
                Cell::text(&member["distance"]),
            ],
            is_bad,
            detail,
        }
    };
    Sheet {
        heads: &[
            "server", "pool", "state", ">req/s", ">err/s", ">mean", ">conns", ">waits", "missed", "why",
            "distance",
        ],
        rows: entries(&document["members"]).map(row).collect(),
        if_empty: "no pool has a server",
    }
}

/// The state of a server in words, and whether it is one to look at.
fn state(member: &Value) -> (String, bool) {
    let mut words = vec![text(&member["state"])];
    let mut is_bad = member["state"] != "up";
    words.extend(member["role"].as_str().map(|role| text(&role.into())));
    if member["drains"] == true {
        words.push("drains".to_owned());
        is_bad = true;
    }
    if member["fail_open"] == true {
        words.push("asked all the same".to_owned());
    }
    let copy = &member["copy"]["state"];
    if copy.as_str().is_some_and(|state| state != "current") {
        words.push(format!("copy {}", text(copy)));
        is_bad = true;
    }
    (words.join(", "), is_bad)
}

fn latency(of: &Value, quantile: &str) -> Cell {
    Cell::number(&of["10s"][quantile], |us| time(us / 1e6))
}

/// The listeners.
pub(super) fn listeners(document: &Value) -> Sheet {
    let row = |(address, listener): (&String, &Value)| Row {
        cells: vec![
            Cell::text(&address.as_str().into()),
            Cell::text(&listener["protocol"]),
            Cell::number(&listener["clients"], count),
            Cell::number(&listener["rate"], count),
            Cell::number(&listener["errors"], count),
            latency(&listener["latency"], "p50_us"),
            latency(&listener["latency"], "p99_us"),
            latency(&listener["latency"], "p999_us"),
        ],
        is_bad: false,
        detail: String::new(),
    };
    Sheet {
        heads: &[
            "listener", "protocol", ">clients", ">req/s", ">err/s", ">p50", ">p99", ">p99.9",
        ],
        rows: entries(&document["listeners"]).map(row).collect(),
        if_empty: "nothing listens",
    }
}

/// The pools, with what their requests wait for.
pub(super) fn pools(document: &Value) -> Sheet {
    let row = |(name, pool): (&String, &Value)| {
        let (up, members) = (pool["up"].as_f64(), pool["members"].as_f64());
        let waits = &pool["waits"];
        let detail = format!(
            "{}: p99.9 {} in 10 s, {} in 1 min; held p99 {}, queued p99 {}",
            text(&name.as_str().into()),
            micros(&pool["latency"]["10s"]["p999_us"]),
            micros(&pool["latency"]["1m"]["p999_us"]),
            micros(&waits["held"]["10s"]["p99_us"]),
            micros(&waits["queued"]["10s"]["p99_us"]),
        );
        Row {
            cells: vec![
                Cell::text(&name.as_str().into()),
                Cell::text(&pool["protocol"]),
                Cell::ranked(
                    format!("{} of {}", text(&pool["up"]), text(&pool["members"])),
                    up.unwrap_or_default(),
                ),
                Cell::number(&pool["rate"], count),
                latency(&pool["latency"], "p50_us"),
                latency(&pool["latency"], "p99_us"),
                latency(&waits["held"], "p99_us"),
                latency(&waits["queued"], "p99_us"),
                Cell::number(&waits["parked"], count),
                Cell::number(&waits["unsent_bytes"], |bytes| {
                    crate::cli::table::size(bytes as u64)
                }),
            ],
            is_bad: up < members,
            detail,
        }
    };
    Sheet {
        heads: &[
            "pool", "protocol", ">up", ">req/s", ">p50", ">p99", ">held", ">queued", ">parked", ">unsent",
        ],
        rows: entries(&document["pools"]).map(row).collect(),
        if_empty: "there is no pool of servers",
    }
}

/// The keys that are asked for most often.
pub(super) fn hot_keys(document: &Value) -> Sheet {
    let row = |pool: &String, key: &Value| Row {
        cells: vec![
            Cell::text(&key["key"]),
            Cell::text(&pool.as_str().into()),
            Cell::number(&key["rate"], count),
            Cell::number(&key["share"], |share| format!("{:.1} %", share * 100.0)),
        ],
        is_bad: false,
        detail: text(&key["key"]),
    };
    let keys = entries(&document["hot_keys"]);
    Sheet {
        heads: &["key", "pool", ">req/s", ">share"],
        rows: keys
            .flat_map(|(pool, keys)| elements(keys).map(move |key| row(pool, key)))
            .collect(),
        if_empty: "no key stands out yet: requests are sampled while somebody watches",
    }
}

/// The events, newest first.
pub(super) fn events<'a>(events: impl DoubleEndedIterator<Item = &'a Value>) -> Sheet {
    let row = |event: &Value| {
        let (before, after) = (text(&event["before"]), text(&event["after"]));
        let change = match (before.is_empty(), after.is_empty()) {
            (false, false) => format!("{before} > {after}"),
            _ => before + &after,
        };
        let mut detail = text(&event["text"]);
        let why = text(&event["why"]);
        if !detail.contains(&why) {
            detail += &format!("; {why}");
        }
        Row {
            cells: vec![
                Cell::ranked(
                    time_of_day(&event["at_ms"]),
                    event["seq"].as_f64().unwrap_or_default(),
                ),
                Cell::text(&event["level"]),
                Cell::text(&event["kind"]),
                Cell::text(&event["subject"]),
                Cell::from(change),
                Cell::from(why),
            ],
            is_bad: event["level"] == "warn" || event["level"] == "error",
            detail,
        }
    };
    Sheet {
        heads: &["UTC", "level", "kind", "subject", "change", "why"],
        rows: events.rev().map(row).collect(),
        if_empty: "nothing has happened yet",
    }
}
