//! The values of mcrouter's figures. What has no counterpart here is 0.

use proxima_wire::{
    memcache::Command,
    message::Outcome::{LocalError, RemoteError},
};

use super::{
    VERSION,
    facts::Facts,
    groups::{COMMANDS, Group},
    rates::{Counters, Rates},
    results::{self, ERRORS},
};
use crate::{metrics::Latency, spool::Count};

/// The value of a figure.
enum Value {
    Text(String),
    Whole(u64),
    Fraction(f64),
    /// How much this counter grows in a second.
    Rate(u64),
}

use Value::{Fraction, Rate, Text, Whole};

/// The value of a figure. `None`: it has no counterpart here, and is 0.
fn value(name: &str, facts: &Facts<'_>) -> Option<Value> {
    Some(match name {
        "version" => Text(VERSION.to_owned()),
        "commandargs" => Text(facts.door.arguments.clone()),
        "pid" => Whole(std::process::id().into()),
        "parent_pid" => Whole(std::os::unix::process::parent_id().into()),
        "time" => Whole(facts.now),
        "uptime" => Whole(facts.proxy.uptime().as_secs()),
        "rusage_system" | "ps_system_time_sec" => {
            Fraction(facts.process.as_ref().map_or(0.0, |stat| ticks(stat.system)))
        }
        "rusage_user" | "ps_user_time_sec" => {
            Fraction(facts.process.as_ref().map_or(0.0, |stat| ticks(stat.user)))
        }
        "ps_vsize" => Whole(facts.process.as_ref().map_or(0, |stat| stat.virtual_bytes)),
        "ps_rss" => Whole(
            facts
                .process
                .as_ref()
                .map_or(0, |stat| stat.resident_pages * rustix::param::page_size() as u64),
        ),
        "num_client_connections" => Whole(facts.metrics.open_clients),
        "num_servers" => Whole(facts.servers().states.all()),
        "num_servers_new" => Whole(facts.servers().states.new),
        "num_servers_up" => Whole(facts.servers().states.up),
        "num_servers_down" => Whole(facts.servers().states.down),
        "num_servers_closed" => Whole(facts.servers().states.closed),
        "num_suspect_servers" => Whole(facts.servers().suspects),
        "num_connections_opened" => Whole(facts.metrics.lanes_opened),
        "num_connections_closed" => Whole(
            facts
                .metrics
                .lanes_opened
                .saturating_sub(facts.metrics.open_lanes),
        ),
        "num_soft_tko_count" => Whole(facts.proxy.ejected().late as u64),
        "num_hard_tko_count" => Whole(facts.proxy.ejected().lost as u64),
        "num_proxies" => Whole(facts.proxy.workers() as u64),
        "asynclog_requests" => Whole(spooled(facts)),
        "asynclog_requests_rate" | "asynclog_spool_success_rate" => Rate(spooled(facts)),
        "proxy_reqs_processing" | "proxy_request_num_outstanding" | "destination_inflight_reqs" => {
            Whole(facts.metrics.in_flight)
        }
        "destination_pending_reqs" => Whole(facts.metrics.members.iter().map(|member| member.held).sum()),
        "duration_us" => Fraction(average(&facts.metrics.latency)),
        "request_sent_count" | "destination_reqs_total_sum" => Whole(facts.sent()),
        "request_sent" => Rate(facts.sent()),
        "request_success_count" => Whole(facts.metrics.replies.all().saturating_sub(facts.ended(ERRORS))),
        "request_success" => Rate(facts.metrics.replies.all().saturating_sub(facts.ended(ERRORS))),
        "request_replied_count" => Whole(facts.metrics.replies.all()),
        "request_replied" => Rate(facts.metrics.replies.all()),
        "failover_all" => Rate(facts.metrics.failovers),
        "failover_all_failed" => Rate(facts.metrics.failover.all_failed),
        "failover_all_failed_count" => Whole(facts.metrics.failover.all_failed),
        "failover_rate_limited" => Rate(facts.metrics.failover.limited),
        "failover_policy_result_error" => Whole(facts.metrics.failover.errors),
        "failover_policy_tko_error" => Whole(facts.metrics.failover.ejected),
        "failover_num_collisions" => Whole(facts.metrics.failover.collisions),
        "failover_num_failed_domain_collisions" => Whole(facts.metrics.failover.domain_collisions),
        "request_error_count" => Whole(facts.ended(ERRORS)),
        "request_error" | "final_result_error" => Rate(facts.ended(ERRORS)),
        "dev_null_requests" => Whole(facts.metrics.discarded),
        "config_age" => Whole(facts.now.saturating_sub(facts.configured())),
        "config_last_attempt" => Whole(facts.attempted()),
        "config_last_success" => Whole(facts.configured()),
        "config_failures" => Whole(facts.view.reloads.failed),
        "config_full_attempt" => Whole(1 + facts.view.reloads.done + facts.view.reloads.failed),
        _ => return None,
    })
}

/// How requests ended. `None`: the figure is about something else.
fn result(name: &str, facts: &Facts<'_>) -> Option<Value> {
    let (counter, is_rate) = results::counter(name, facts)?;
    Some(match is_rate {
        true => Rate(counter),
        false => Whole(counter),
    })
}

fn ticks(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

fn spooled(facts: &Facts<'_>) -> u64 {
    let spool = facts.view.spool.as_ref();
    spool.map_or(0, |spool| spool.counts().of(Count::Kept))
}

/// The average of all latencies, in µs.
pub(super) fn average(latencies: &[Latency]) -> f64 {
    let sum: u64 = latencies.iter().map(|latency| latency.sum).sum();
    let count: u64 = latencies.iter().map(Latency::count).sum();
    sum as f64 / count.max(1) as f64
}

/// Gives every figure of a group to `row`, as text.
pub(super) fn each(group: Group, facts: &Facts<'_>, rates: &Rates, row: &mut dyn FnMut(&str, &str)) {
    for name in group.figures() {
        match value(name, facts).or_else(|| result(name, facts)) {
            None => row(name, "0"),
            Some(Text(text)) => row(name, &text),
            Some(Whole(number)) => row(name, &number.to_string()),
            Some(Fraction(number)) => row(name, &shown(number)),
            Some(Rate(counter)) => row(name, &shown(rates.of(name, counter))),
        }
    }
    for (name, command) in COMMANDS {
        let Counts { asked, sent, errors } = Counts::of(command, facts);
        if group.meets(Group::COMMAND_COUNTS) {
            row(&format!("cmd_{name}_count"), &asked.to_string());
        }
        if group.meets(Group::COMMAND_RATES) {
            row(&format!("cmd_{name}"), &shown(rates.of(name, asked)));
            let sent = shown(rates.of(&sent_name(name), sent));
            row(&format!("cmd_{name}_out"), &sent);
            row(&format!("cmd_{name}_out_all"), &sent);
        }
        if group.meets(Group::COMMAND_ERRORS) {
            for (kind, count) in ["local_error", "remote_error"].into_iter().zip(errors) {
                row(&format!("cmd_{name}_{kind}_count"), &count.to_string());
            }
        }
    }
}

/// The counters whose rates are told, by the names of the figures and commands.
pub(super) fn counters(facts: &Facts<'_>) -> Counters {
    let figures =
        Group::ALL
            .figures()
            .filter_map(|name| match value(name, facts).or_else(|| result(name, facts)) {
                Some(Rate(counter)) => Some((name.to_owned(), counter)),
                _ => None,
            });
    let commands = COMMANDS.into_iter().flat_map(|(name, command)| {
        let Counts { asked, sent, .. } = Counts::of(command, facts);
        [(name.to_owned(), asked), (sent_name(name), sent)]
    });
    figures.chain(commands).collect()
}

fn sent_name(command: &str) -> String {
    format!("{command}_out")
}

/// Requests of a command.
struct Counts {
    /// Latencies of clients.
    asked: u64,
    /// To servers.
    sent: u64,
    /// How many ended with a local and a remote error.
    errors: [u64; 2],
}

impl Counts {
    fn of(command: Command, facts: &Facts<'_>) -> Self {
        let ended = |outcome| facts.metrics.replies.of(command as usize, outcome);
        Self {
            asked: facts.asked(command),
            sent: facts.sent_by(command),
            errors: [ended(LocalError), ended(RemoteError)],
        }
    }
}

fn shown(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The names that have a value: those of the arms.
    fn names_with_value() -> BTreeSet<&'static str> {
        let source = include_str!("figures.rs");
        let arms = source.split_once("Some(match name {").expect("the table").1;
        let arms = arms.split_once("_ => return None").expect("its end").0;
        let sides = arms.lines().filter_map(|line| line.split_once(" => "));
        let names = sides.flat_map(|(names, _)| names.split('"').skip(1).step_by(2));
        let results = Group::ALL.figures().filter(|name| name.starts_with("result_"));
        names.chain(results).collect()
    }

    #[test]
    fn each_figure_is_in_one_row_of_the_groups() {
        let all: Vec<&str> = Group::ALL.figures().collect();
        let known: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(known.len(), all.len(), "a name stands twice");
        assert!(names_with_value().len() > 80);
        let unknown: Vec<_> = names_with_value().difference(&known).copied().collect();
        assert_eq!(unknown, [""; 0], "a value that nobody is told");
    }

    #[test]
    fn the_page_about_migrating_names_every_figure_that_is_always_0() {
        let page = include_str!("../../../../docs/migrating-from-mcrouter.md");
        let list = page.split_once("**Always 0**").expect("the list").1;
        let list = list.split_once("\n## ").expect("its end").0;
        let valued = names_with_value();
        let wrong: Vec<&str> = Group::ALL
            .figures()
            .filter(|name| list.contains(&format!("`{name}`")) == valued.contains(name))
            .collect();
        assert_eq!(wrong, [""; 0]);
    }

    #[test]
    fn numbers_have_no_more_digits_than_they_need() {
        assert_eq!(
            [0.0, 2.0, 0.5, 10.25, 100.0].map(shown),
            ["0", "2", "0.5", "10.25", "100"]
        );
    }
}
