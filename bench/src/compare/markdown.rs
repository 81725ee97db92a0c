//! The results as a page for people.

use super::{
    balanced::BalancedPoint,
    free::{Figure, FreeFinding},
    lockstep::{EntryFinding, Finding, Verdict},
    reference,
    results::Results,
    rows::Section,
    sweep::Point,
    table::{cells, line, megabytes, middle, spread, table},
    witness::Witness,
};
use crate::{contender::Contender, figures::Spread, protocol::Protocol};

/// The whole page.
pub(super) fn render(results: &Results) -> String {
    let mut page = heading(results);
    costs(
        &mut page,
        results,
        Section::Proxies,
        "CPU µs per request in lockstep, four servers",
    );
    costs(
        &mut page,
        results,
        Section::Servers,
        "The embedded store and a server: CPU µs per request in lockstep",
    );
    beyond(&mut page, results);
    promises(&mut page, results);
    idle(&mut page, results);
    details(&mut page, results);
    let peer = reference(results.protocol);
    for finding in &results.free {
        free(&mut page, finding, peer);
    }
    results.witness.iter().for_each(|heard| witness(&mut page, heard));
    results.sweep.iter().for_each(|point| sweep(&mut page, point));
    balanced(&mut page, &results.balanced);
    failures(&mut page, results);
    page
}

fn heading(results: &Results) -> String {
    let machine = &results.machine;
    let protocol = results.protocol.name();
    let mut page = format!("# Side by side, {protocol}, {}\n\n", machine.date);
    if results.quick {
        page.push_str("**Made with `--quick`: to see whether everything runs, not to compare.**\n\n");
    }
    line(
        &mut page,
        &format!(
            "* {}, {} CPUs, Linux {}",
            machine.cpu, machine.cpus, machine.kernel
        ),
    );
    if let Some(revision) = &machine.revision {
        line(&mut page, &format!("* revision {revision}"));
    }
    for (name, version) in &machine.versions {
        line(&mut page, &format!("* {name}: {version}"));
    }
    for (name, reason) in &machine.absent {
        line(&mut page, &format!("* not measured: {name} ({reason})"));
    }
    let rounds = results.rounds;
    line(
        &mut page,
        &format!("* figures are medians of {rounds} interleaved rounds, with least and greatest"),
    );
    page
}

/// One table of costs: a line for each row, a column for each contender.
fn costs(page: &mut String, results: &Results, section: Section, title: &str) {
    let findings: Vec<&Finding> = results
        .lockstep
        .iter()
        .filter(|finding| finding.section == section)
        .collect();
    let mut labels: Vec<&str> = Vec::new();
    for entry in findings.iter().flat_map(|finding| &finding.entries) {
        if entry.cost().is_some() && !labels.contains(&entry.label.as_str()) {
            labels.push(&entry.label);
        }
    }
    if labels.is_empty() {
        return;
    }
    let reference = match (section, results.protocol) {
        (Section::Servers, Protocol::Memcached) => Contender::Memcached,
        (Section::Servers, Protocol::Redis) => Contender::Redis,
        (_, protocol) => reference(protocol),
    };
    let shown = if labels.contains(&reference.name()) {
        reference.name()
    } else {
        "–"
    };
    table(
        page,
        &format!("{title}; in multiples of {shown}"),
        &[&["clients × pipeline, value"], &labels[..]].concat(),
    );
    for finding in findings {
        let of = |label: &str| finding.entries.iter().find(|entry| entry.label == label);
        let cell = |label: &&str| {
            let ratio = of(label).and_then(|entry| entry.ratio_to(of(reference.name())?));
            let ratio = ratio.map_or_else(String::new, |ratio| format!(", {:.2} ×", ratio.median));
            format!("{}{ratio}", spread(of(label).and_then(EntryFinding::cost), 2))
        };
        cells(
            page,
            &[
                std::slice::from_ref(&finding.title),
                &labels.iter().map(cell).collect::<Vec<_>>()[..],
            ]
            .concat(),
        );
    }
}

/// The table of rows with contenders of their own.
fn beyond(page: &mut String, results: &Results) {
    let findings = results
        .lockstep
        .iter()
        .filter(|finding| finding.section == Section::Beyond);
    let entries = findings.flat_map(|finding| finding.entries.iter().map(move |entry| (finding, entry)));
    let mut entries = entries.filter(|(_, entry)| entry.cost().is_some()).peekable();
    if entries.peek().is_none() {
        return;
    }
    let title = "Beyond four servers and a hundred clients: CPU µs per request in lockstep";
    table(page, title, &["row", "who", "CPU µs per request"]);
    for (finding, entry) in entries {
        cells(page, &[&finding.title, &entry.label, &spread(entry.cost(), 2)]);
    }
}

fn promises(page: &mut String, results: &Results) {
    let verdicts = results
        .lockstep
        .iter()
        .flat_map(|finding| finding.verdicts.iter().map(move |v| (finding, v)));
    let mut verdicts = verdicts.peekable();
    if verdicts.peek().is_none() {
        return;
    }
    table(
        page,
        "Promises",
        &[
            "row",
            "who",
            "against",
            "ratio of 10 % quantiles",
            "ratio of neighbouring bursts",
            "at most",
            "",
        ],
    );
    for (finding, verdict) in verdicts {
        let Verdict {
            who,
            against,
            ratio,
            paired,
            at_most,
            ..
        } = verdict;
        let ratios = [spread(*ratio, 3), spread(*paired, 3)];
        cells(
            page,
            &[
                &finding.title,
                who,
                against,
                &ratios[0],
                &ratios[1],
                &format!("{at_most:.2}"),
                &word(verdict),
            ],
        );
    }
}

fn word(verdict: &Verdict) -> String {
    match verdict.ratio {
        None => "**not measured**".into(),
        Some(_) if verdict.holds => "holds".into(),
        Some(ratio) => format!(
            "**missed by {:.0} %**",
            (ratio.median / verdict.at_most - 1.0) * 100.0
        ),
    }
}

fn idle(page: &mut String, results: &Results) {
    for finding in results
        .lockstep
        .iter()
        .filter(|finding| finding.section == Section::Idle)
    {
        let title = format!("Resident memory, {}", finding.title);
        table(
            page,
            &title,
            &[
                "who",
                "before, MB",
                "connected, MB",
                "after a request each, MB",
                "growth ≤ 40 MB",
            ],
        );
        for entry in &finding.entries {
            let Some(idle) = entry.good().find_map(|figures| figures.idle.as_ref()) else {
                continue;
            };
            let growth = entry.idle_growth().map_or_else(String::new, |(growth, holds)| {
                format!(
                    "{} MB: {}",
                    megabytes(growth),
                    if holds { "holds" } else { "**missed**" }
                )
            });
            let sizes = [idle.before_bytes, idle.connected_bytes, idle.used_bytes].map(megabytes);
            cells(page, &[&entry.label, &sizes[0], &sizes[1], &sizes[2], &growth]);
        }
    }
}

fn details(page: &mut String, results: &Results) {
    let findings = results
        .lockstep
        .iter()
        .filter(|finding| finding.section != Section::Idle);
    let entries = findings.flat_map(|finding| finding.entries.iter().map(move |entry| (finding, entry)));
    let mut entries = entries
        .filter(|(_, entry)| entry.good().next().is_some())
        .peekable();
    if entries.peek().is_none() {
        return;
    }
    table(
        page,
        "Details of lockstep",
        &[
            "row",
            "who",
            "median burst, µs",
            "system calls per request",
            "wake-ups per round",
            "preempted per round",
            "RSS, MB",
        ],
    );
    for (finding, entry) in entries {
        let of = |figure: &dyn Fn(&crate::lockstep::Figures) -> f64| Spread::of(entry.good().map(figure));
        let calls = entry.good().find_map(|figures| figures.syscalls_per_request);
        cells(
            page,
            &[
                &finding.title,
                &entry.label,
                &spread(of(&|figures| figures.cpu_us.median), 2),
                &calls.map_or_else(|| "not counted".into(), |calls| format!("{calls:.3}")),
                &middle(of(&|figures| figures.wakeups_a_round), 2),
                &middle(of(&|figures| figures.preemptions_a_round), 2),
                &middle(of(&|figures| figures.resident_bytes as f64 / 1e6), 1),
            ],
        );
    }
}

fn free(page: &mut String, finding: &FreeFinding, peer: Contender) {
    let how = finding.rate.map_or_else(
        || "closed loop, 100 connections".to_owned(),
        |rate| format!("open loop at {rate:.0}/s, latency from when a request was due"),
    );
    table(
        page,
        &format!("Free-running, {}: {how}", finding.placement),
        &[
            "who",
            "replies/s",
            "p50 µs",
            "p99 µs",
            "p99.9 µs",
            "proxy's CPU µs per reply",
            "RSS, MB",
            "misses, errors",
        ],
    );
    for entry in finding.entries.iter().filter(|entry| !entry.runs.is_empty()) {
        let of = |figure: Figure, digits| spread(entry.spread(figure), digits);
        let bad: u64 = entry
            .runs
            .iter()
            .map(|run| run.report.misses + run.report.refused + run.report.lost)
            .sum();
        cells(
            page,
            &[
                &entry.label,
                &of(|run| Some(run.report.ops_per_second), 0),
                &of(|run| Some(run.report.latency_us.all.p50), 0),
                &of(|run| Some(run.report.latency_us.all.p99), 0),
                &of(|run| Some(run.report.latency_us.all.p999), 0),
                &of(|run| run.cpu_us, 2),
                &middle(entry.spread(|run| Some(run.resident_bytes? as f64 / 1e6)), 1),
                &bad.to_string(),
            ],
        );
    }
    equal_rate(page, finding, peer);
}

/// The results of the outside witness.
fn witness(page: &mut String, heard: &Witness) {
    let title = format!("{}, 50 connections, {}", heard.program, heard.requests);
    table(
        page,
        &title,
        &["who", "writes/s", "reads/s", "p99 of reads, ms", ""],
    );
    for entry in &heard.entries {
        cells(
            page,
            &[
                &entry.label,
                &spread(entry.spread(|said| said.per_second[0]), 0),
                &spread(entry.spread(|said| said.per_second[1]), 0),
                &spread(entry.spread(|said| said.p99_ms[1]), 2),
                entry.failure.as_ref().unwrap_or(&String::new()),
            ],
        );
    }
}

/// One point of a sweep.
fn sweep(page: &mut String, point: &Point) {
    let title = format!(
        "Free-running with stand-in servers, {} {}",
        point.at,
        point.axis.name()
    );
    table(
        page,
        &title,
        &["who", "replies/s", "proxy's CPU µs per reply", "p99 µs", ""],
    );
    for entry in &point.entries {
        let of = |figure: Figure, digits| spread(entry.spread(figure), digits);
        cells(
            page,
            &[
                &entry.label,
                &of(|run| Some(run.report.ops_per_second), 0),
                &of(|run| run.cpu_us, 2),
                &of(|run| Some(run.report.latency_us.all.p99), 0),
                entry.failure.as_ref().unwrap_or(&String::new()),
            ],
        );
    }
}

/// Two tables of the set-up with a balancer: replies per second, and the proxies' processor time.
fn balanced(page: &mut String, points: &[BalancedPoint]) {
    let Some(first) = points.first() else { return };
    let figures: [(&str, usize, Figure); 2] = [
        ("replies per second", 0, |run| Some(run.report.ops_per_second)),
        ("the proxies' CPU µs per reply", 2, |run| run.cpu_us),
    ];
    for (title, digits, figure) in figures {
        let labels = first.entries.iter().map(|entry| entry.label.as_str());
        let header: Vec<&str> = ["requests", "servers"].into_iter().chain(labels).collect();
        table(
            page,
            &format!("Directly, through a proxy, through a balancer and two: {title}"),
            &header,
        );
        for point in points {
            let mut row = vec![point.asked.to_string(), point.servers.to_string()];
            row.extend(
                point
                    .entries
                    .iter()
                    .map(|entry| spread(entry.spread(figure), digits)),
            );
            cells(page, &row);
        }
    }
    for entry in points.iter().flat_map(|point| &point.entries) {
        let lost: u64 = entry
            .runs
            .iter()
            .map(|run| run.report.lost + run.report.refused)
            .sum();
        if lost > 0 {
            line(
                page,
                &format!("\n{}: {lost} requests were refused or lost.", entry.label),
            );
        }
    }
}

/// The promise at an equal rate: Proxima's latencies are not worse than its peer's beyond the spread of the
/// runs.
fn equal_rate(page: &mut String, finding: &FreeFinding, peer: Contender) {
    let of = |contender: Contender| {
        finding
            .entries
            .iter()
            .find(|entry| entry.label == contender.name())
    };
    let Some(peer) = of(peer).filter(|_| finding.rate.is_some()) else {
        return;
    };
    let figures: [(&str, Figure); 2] = [
        ("p50", |run| Some(run.report.latency_us.all.p50)),
        ("p99", |run| Some(run.report.latency_us.all.p99)),
    ];
    line(page, "");
    for entry in [of(Contender::ProximaIoUring), of(Contender::ProximaEpoll)]
        .into_iter()
        .flatten()
    {
        for (name, figure) in figures {
            let (Some(own), Some(other)) = (entry.spread(figure), peer.spread(figure)) else {
                continue;
            };
            let word = if own.median <= other.max {
                "not worse than"
            } else {
                "**worse than**"
            };
            line(
                page,
                &format!(
                    "* {}: {name} {word} {}'s beyond the spread",
                    entry.label, peer.label
                ),
            );
        }
    }
}

fn failures(page: &mut String, results: &Results) {
    let lockstep = results.lockstep.iter().flat_map(|finding| {
        finding
            .entries
            .iter()
            .filter_map(move |entry| Some((&finding.title, &entry.label, entry.failure.as_ref()?)))
    });
    let free = results.free.iter().flat_map(|finding| {
        finding
            .entries
            .iter()
            .filter_map(move |entry| Some((&finding.placement, &entry.label, entry.failure.as_ref()?)))
    });
    let absent: Vec<&String> = results.machine.absent.iter().map(|(name, _)| name).collect();
    let mut failures = lockstep
        .chain(free)
        .filter(|(_, label, _)| !absent.contains(label))
        .peekable();
    if failures.peek().is_none() {
        return;
    }
    table(page, "Failures", &["row", "who", "what"]);
    for (row, label, failure) in failures {
        cells(page, &[row, label, failure]);
    }
}
