//! The near cache as a table for operators.

use std::{collections::BTreeMap, fmt::Write};

use super::table::{Table, size, time};
use crate::control::{NearStatus, NearTop, RuleStatus};

/// The near cache. `only`: nothing but this rule.
pub(super) fn status(near: &NearStatus, only: Option<&str>) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        "{} of {} in use, {} keys{}\n",
        size(near.bytes),
        size(near.memory),
        near.keys,
        match &near.memory_configured {
            Some(configured) => {
                format!(
                    "; the configuration says {configured} ({})",
                    lasts(near.memory_kept)
                )
            }
            None => String::new(),
        }
    );
    let rules: Vec<&RuleStatus> = near
        .rules
        .iter()
        .filter(|rule| only.is_none_or(|only| rule.name == only))
        .collect();
    let mut table = Table::new(&[
        "rule", "for", "ttl", "stale", "negative", ">entries", ">bytes", ">hits", ">of all", ">age", ">saved",
    ]);
    for rule in &rules {
        table.row(row(rule));
    }
    out.push_str(&table.text());
    for rule in &rules {
        notes(rule, &mut out);
    }
    out
}

fn row(rule: &RuleStatus) -> Vec<String> {
    let setting = |name: &str| match rule.settings.get(name) {
        Some(value) if value == "0s" => "-".to_owned(),
        Some(value) => value.clone(),
        None => String::new(),
    };
    let asked = rule.hits + rule.misses + rule.joined;
    let share = match asked {
        0 => "-".to_owned(),
        _ => format!("{:.1} %", rule.hits as f64 * 100.0 / asked as f64),
    };
    let age = match rule.hits {
        0 => "-".to_owned(),
        _ => time(rule.age_at_hit),
    };
    let keys = match rule.commands.is_empty() {
        true => rule.keys.clone(),
        false => format!("{} ({})", rule.keys, rule.commands.join(", ")),
    };
    vec![
        rule.name.clone(),
        keys,
        if rule.on { setting("ttl") } else { "off".to_owned() },
        setting("stale"),
        setting("negative"),
        rule.entries.to_string(),
        size(rule.bytes),
        rule.hits.to_string(),
        share,
        age,
        time(rule.saved),
    ]
}

/// Notes on a rule: deviations from its configuration, and failures.
fn notes(rule: &RuleStatus, out: &mut String) {
    let name = &rule.name;
    let mut lines = Vec::new();
    for (setting, configured) in &rule.configured {
        let running = rule.settings.get(setting).map_or("?", String::as_str);
        let lasts = lasts(rule.kept.contains(setting));
        lines.push(format!(
            "{setting} is {running}; the configuration says {configured} ({lasts})"
        ));
    }
    let kept = rule
        .kept
        .iter()
        .filter(|kept| !rule.configured.contains_key(*kept));
    for setting in kept {
        lines.push(format!(
            "{setting} has another value in the file of settings, which the next start takes"
        ));
    }
    let counted = |counts: &BTreeMap<String, u64>| -> String {
        let counts = counts.iter().filter(|(_, count)| **count > 0);
        let counts: Vec<String> = counts
            .map(|(why, count)| format!("{count} {}", why.replace('_', " ")))
            .collect();
        counts.join(", ")
    };
    for (what, counts) in [
        ("fetched and not kept", counted(&rule.refused)),
        ("passed on", counted(&rule.passed)),
        ("gone", counted(&rule.dropped)),
    ] {
        if !counts.is_empty() {
            lines.push(format!("{what}: {counts}"));
        }
    }
    if rule.hits > 0 && (rule.stale_hits > 0 || rule.negative_hits > 0) {
        let (stale, negative) = (rule.stale_hits, rule.negative_hits);
        lines.push(format!(
            "of the hits {stale} were stale and {negative} said that there is nothing"
        ));
    }
    if rule.stood_for_errors > 0 {
        lines.push(format!("{} old replies stood for errors", rule.stood_for_errors));
    }
    if !lines.is_empty() {
        let _ = writeln!(out, "\n{name}");
    }
    for line in lines {
        let _ = writeln!(out, "  {line}");
    }
}

fn lasts(is_kept: bool) -> &'static str {
    match is_kept {
        true => "kept",
        false => "until the next start",
    }
}

/// The keys that were answered most often.
pub(super) fn top(keys: &[NearTop]) -> String {
    let mut table = Table::new(&[">hits", ">bytes", ">age", "rule", "key"]);
    for key in keys {
        table.row(vec![
            key.hits.to_string(),
            size(key.bytes as u64),
            time(key.age),
            key.rule.clone(),
            key.key.clone(),
        ]);
    }
    table.text()
}

/// How many replies went.
pub(super) fn dropped(answer: &serde_json::Value, rule: &str) -> String {
    let count = answer.get("dropped").and_then(serde_json::Value::as_u64);
    match count.unwrap_or_default() {
        0 => format!("nothing of it was kept by rule {rule}\n"),
        1 => "1 kept reply dropped\n".to_owned(),
        count => format!("{count} kept replies dropped\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_the_configuration_is_said_with_how_long_it_lasts() {
        let texts = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let pairs = pairs
                .iter()
                .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
            pairs.collect()
        };
        let rule = RuleStatus {
            name: "maps".into(),
            keys: "prefix map:".into(),
            on: true,
            settings: texts(&[("ttl", "10s"), ("stale", "5s"), ("negative", "0s")]),
            configured: texts(&[("ttl", "30s"), ("stale", "0s")]),
            kept: vec!["ttl".into()],
            entries: 12,
            bytes: 3 << 20,
            hits: 75,
            misses: 25,
            age_at_hit: 0.5,
            saved: 7300.0,
            ..RuleStatus::default()
        };
        let near = NearStatus {
            memory: 64 << 20,
            rules: vec![rule],
            ..NearStatus::default()
        };
        assert_eq!(
            status(&near, None),
            "\
0 B of 64.0 MiB in use, 0 keys

rule  for          ttl  stale  negative  entries    bytes  hits  of all       age  saved
maps  prefix map:  10s  5s     -              12  3.0 MiB    75  75.0 %  500.0 ms  2.0 h

maps
  stale is 5s; the configuration says 0s (until the next start)
  ttl is 10s; the configuration says 30s (kept)
"
        );
    }
}
