//! The report of a run, for machines and for people.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;

use super::{attack::Done, noise::WorstStalls, options::Options, score::Outcome};
use crate::output::{as_optional_seconds, as_seconds};

/// A new client must be served so soon after the attacks.
const NEWCOMER: Duration = Duration::from_secs(3);

/// The time-outs of a proxy are looked at by a clock that ticks; and noise is measured in steps.
pub(super) const ALLOWED: Duration = Duration::from_millis(100);

/// Failures of each kind that are printed at most.
const PRINTED: usize = 20;

const MIB: f64 = 1024.0 * 1024.0;

/// The report of a whole run, with what was asked for.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    options: &'a Options,
    #[serde(rename = "seconds", serialize_with = "as_seconds")]
    took: Duration,
    /// Why the run has failed. Empty: it has not.
    failures: Vec<String>,
    rounds: Vec<Round>,
}

/// One round.
#[derive(Serialize)]
pub(super) struct Round {
    attacks: Vec<Done>,
    clients: Vec<Outcome>,
    #[serde(rename = "seconds", serialize_with = "as_seconds")]
    took: Duration,
    longest_stalls: WorstStalls,
    #[serde(rename = "stalled_seconds", serialize_with = "as_seconds")]
    stalled: Duration,
    /// The longest wait of a well-behaved client, less the machine's noise.
    #[serde(rename = "wait_seconds", serialize_with = "as_seconds")]
    wait: Duration,
    /// The difference to the wait in the quiet round.
    #[serde(rename = "delay_seconds", serialize_with = "as_optional_seconds")]
    delay: Option<Duration>,
    newcomer_served_after_seconds: Option<f64>,
    peak_rss_bytes: Option<u64>,
    failures: Vec<String>,
}

impl Round {
    /// `peak` is `None` where nothing was measured, and `Some(None)` where the process has ended.
    pub(super) fn new(
        options: &Options,
        attacks: Vec<Done>,
        clients: Vec<Outcome>,
        took: Duration,
        (longest_stalls, stalled): (WorstStalls, Duration),
        newcomer: Option<Duration>,
        peak: Option<Option<u64>>,
    ) -> Self {
        let mut round = Self {
            wait: clients.iter().map(|client| client.wait).max().unwrap_or_default(),
            delay: None,
            attacks,
            clients,
            took,
            longest_stalls,
            stalled,
            newcomer_served_after_seconds: newcomer.map(|time| time.as_secs_f64()),
            peak_rss_bytes: peak.flatten(),
            failures: Vec::new(),
        };
        round.failures = round.judge(options, newcomer, peak);
        round
    }

    /// Compares its longest wait with that of the quiet round.
    pub(super) fn compare(&mut self, quiet: &Self, most: Duration) {
        let delay = self.wait.saturating_sub(quiet.wait);
        if delay > most {
            let words = format!("others waited {delay:.1?} longer than in the quiet round");
            self.failures.push(words);
        }
        self.delay = Some(delay);
    }

    fn judge(&self, options: &Options, newcomer: Option<Duration>, peak: Option<Option<u64>>) -> Vec<String> {
        let sum = |number: fn(&Outcome) -> u64| self.clients.iter().map(number).sum::<u64>();
        let mut failures = Vec::new();
        let mut judge = |number: u64, what: &str| {
            if number > 0 {
                failures.push(format!("{number} {what}"));
            }
        };
        judge(sum(|client| client.wrong), "wrong replies");
        judge(sum(|client| client.late), "late replies");
        judge(sum(|client| client.refused), "requests refused");
        judge(sum(|client| client.lost), "connections lost");
        if options.no_misses {
            judge(sum(|client| client.misses), "values gone");
        }
        match newcomer {
            None => failures.push("no new client was served after the attacks".to_owned()),
            Some(time) if time > NEWCOMER => {
                failures.push(format!(
                    "a new client was served only {time:.1?} after the attacks"
                ));
            }
            Some(_) => {}
        }
        match (peak, options.rss_limit) {
            (Some(None), _) => failures.push("the attacked process has ended".to_owned()),
            (Some(Some(bytes)), Some(limit)) if bytes > limit << 20 => failures.push(format!(
                "{:.0} MiB of resident memory, above the {limit} MiB allowed",
                bytes as f64 / MIB
            )),
            _ => {}
        }
        failures
    }

    fn names(&self) -> String {
        match &self.attacks[..] {
            [] => "quiet".to_owned(),
            [one] => one.attack.name(),
            all => format!("{} attacks at once", all.len()),
        }
    }

    /// One line.
    pub(super) fn summary(&self) -> String {
        let verdict = match self.failures.is_empty() {
            true => "nobody else noticed".to_owned(),
            false => self.failures.join(", "),
        };
        format!("{}: {verdict}", self.names())
    }

    fn print(&self, options: &Options) {
        println!("{}", self.summary());
        for done in &self.attacks {
            print!(
                "  {:<17} {} connections, {} not made, {} closed by the other side; {} requests, {:.1} MB sent, {:.1} MB taken",
                done.attack.name(),
                done.connections,
                done.not_connected,
                done.closed_by_peer,
                done.requests,
                done.bytes_sent as f64 / 1e6,
                done.bytes_received as f64 / 1e6,
            );
            match done.unanswered {
                0 => println!(),
                some => println!("; {some} greetings without an answer or an end"),
            }
        }
        let noise = &self.longest_stalls;
        println!(
            "  the machine stood still for {:.1?} of {:.1?}; at most {:.1?} for a sleeper, {:.1?} for the attacked \
             process, {:.1?} for a control client",
            self.stalled, self.took, noise.sleeper, noise.processor, noise.control
        );
        match self.newcomer_served_after_seconds {
            Some(seconds) => println!("  a new client was served {} after the attacks", time(seconds)),
            None => println!("  no new client was served after the attacks"),
        }
        if let Some(bytes) = self.peak_rss_bytes {
            println!("  resident memory: at most {:.0} MiB", bytes as f64 / MIB);
        }
        println!("  client  replies    hits  misses    worst  late  refused  lost  wrong");
        for client in &self.clients {
            println!(
                "  {:>6} {:>8} {:>7} {:>7} {:>8} {:>5} {:>8} {:>5} {:>6}",
                client.client,
                client.replies,
                client.hits,
                client.misses,
                time(client.worst.as_secs_f64()),
                client.late,
                client.refused,
                client.lost,
                client.wrong
            );
        }
        self.print_failures(options);
    }

    fn print_failures(&self, options: &Options) {
        let mut words: BTreeMap<&str, u64> = BTreeMap::new();
        for client in &self.clients {
            for (said, count) in client.refusals.iter().chain(&client.losses) {
                *words.entry(said).or_default() += count;
            }
        }
        for (said, count) in words {
            println!("  {count} times: {said}");
        }
        let worst = self
            .clients
            .iter()
            .filter_map(|client| Some((client.client, client.worst_late.as_ref()?)))
            .max_by_key(|(_, late)| late.took - late.noise);
        if let Some((client, late)) = worst {
            println!(
                "  the latest reply: client {client}, {}: {} after {:.1?} ({:.1?} of it noise; {:?} and {ALLOWED:?} allowed)",
                late.request,
                if late.answered { "answered" } else { "given up" },
                late.took,
                late.noise,
                options.timeout,
            );
        }
        self.print_first("wrong reply", |client| &client.wrong_replies);
        if options.no_misses {
            self.print_first("gone", |client| &client.first_misses);
        }
    }

    /// The first of what clients have met, in turn; all that was kept is in the JSON.
    fn print_first(&self, what: &str, list: impl Fn(&Outcome) -> &Vec<String>) {
        let rows = (0..PRINTED).flat_map(|place| {
            let list = &list;
            self.clients
                .iter()
                .filter_map(move |client| Some((client.client, list(client).get(place)?)))
        });
        for (client, words) in rows.take(PRINTED) {
            println!("  {what}: client {client}, {words}");
        }
    }
}

impl<'a> Report<'a> {
    pub(super) fn new(options: &'a Options, took: Duration, rounds: Vec<Round>) -> Self {
        let of = |round: &Round| {
            let name = round.names();
            let words = round
                .failures
                .iter()
                .map(move |failure| format!("{name}: {failure}"));
            words.collect::<Vec<_>>()
        };
        Self {
            options,
            took,
            failures: rounds.iter().flat_map(of).collect(),
            rounds,
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        !self.failures.is_empty()
    }

    /// Whether well-behaved clients got replies, so that the run shows something.
    pub(super) fn has_shown_something(&self) -> bool {
        let enough = |round: &Round| round.clients.iter().all(|client| client.hits > 0);
        !self.rounds.is_empty() && self.rounds.iter().all(enough)
    }

    /// Prints the report for people.
    pub(super) fn print(&self) {
        for round in &self.rounds {
            round.print(self.options);
        }
        let Some(most) = self.options.most_delay else {
            return;
        };
        println!(
            "the longest wait of a well-behaved client, and how much longer it is than in the quiet round"
        );
        println!("({most:?} allowed); what the machine stood still is taken off:");
        for round in &self.rounds {
            let wait = format!("{:.1?}", round.wait);
            let delay = round.delay.map_or(String::new(), |delay| format!("{delay:.1?}"));
            println!("  {:<18} {wait:>9} {delay:>9}", round.names());
        }
    }
}

/// A time in the unit that suits it.
fn time(seconds: f64) -> String {
    format!("{:.1?}", Duration::from_secs_f64(seconds))
}
