//! Servers as mcrouter counts them: one destination for each address and time-out, whatever the number of
//! pools that name it.

use std::{collections::BTreeMap, sync::Arc};

use proxima_wire::message::Outcome;

use crate::{
    members::Member,
    metrics::{MemberMetrics, Metrics},
};

/// The names of results in the rows of servers.
const NAMES: [(&str, Outcome); 20] = [
    ("deleted", Outcome::Deleted),
    ("touched", Outcome::Touched),
    ("found", Outcome::Found),
    ("notfound", Outcome::NotFound),
    ("notstored", Outcome::NotStored),
    ("ok", Outcome::Ok),
    ("stored", Outcome::Stored),
    ("exists", Outcome::Exists),
    ("overloaded", Outcome::Overloaded),
    ("timeout", Outcome::Timeout),
    ("connect_timeout", Outcome::ConnectTimeout),
    ("connect_error", Outcome::ConnectError),
    ("busy", Outcome::Busy),
    ("try_again", Outcome::TryAgain),
    ("shutdown", Outcome::Shutdown),
    ("tko", Outcome::Ejected),
    ("deadline_exceeded", Outcome::Deadline),
    ("remote_error", Outcome::RemoteError),
    ("local_error", Outcome::LocalError),
    ("client_error", Outcome::ClientError),
];

/// All destinations, in the order of the pools.
pub(super) struct Destinations<'a> {
    all: Vec<Destination<'a>>,
    workers: u64,
}

struct Destination<'a> {
    member: &'a Member,
    counts: MemberMetrics,
}

/// How many connections that workers have, or may have, to destinations are in which state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct States {
    pub(super) new: u64,
    pub(super) up: u64,
    pub(super) down: u64,
    pub(super) closed: u64,
}

impl States {
    pub(super) fn all(self) -> u64 {
        self.new + self.up + self.down + self.closed
    }
}

impl<'a> Destinations<'a> {
    pub(super) fn of(members: &'a [Arc<Member>], metrics: &Metrics, workers: usize) -> Self {
        let mut numbers: BTreeMap<(&str, u128), usize> = BTreeMap::new();
        let mut all: Vec<Destination<'a>> = Vec::new();
        for member in members {
            let counts = metrics
                .members
                .get(member.id.0 as usize)
                .cloned()
                .unwrap_or_default();
            let number = *numbers
                .entry((&member.address, member.timeout.as_millis()))
                .or_insert(all.len());
            match all.get_mut(number) {
                Some(known) => known.counts.add(&counts),
                None => all.push(Destination { member, counts }),
            }
        }
        Self {
            all,
            workers: workers as u64,
        }
    }

    /// The states of the connections of all workers to all destinations.
    pub(super) fn states(&self) -> States {
        self.all.iter().fold(States::default(), |sum, destination| {
            let states = self.states_of(destination);
            States {
                new: sum.new + states.new,
                up: sum.up + states.up,
                down: sum.down + states.down,
                closed: sum.closed + states.closed,
            }
        })
    }

    /// The number of addresses that have failed lately.
    pub(super) fn suspects(&self) -> u64 {
        self.by_address().len() as u64
    }

    /// A row for each destination.
    pub(super) fn each(&self, row: &mut dyn FnMut(&str, &str)) {
        for destination in &self.all {
            let (member, counts) = (destination.member, &destination.counts);
            let name = format!(
                "{}:ascii:plain:notcompressed-{}",
                member.address,
                member.timeout.as_millis()
            );
            let latency = counts.micros as f64 / counts.outcomes.replies().max(1) as f64;
            let tko = match (member.is_up(), member.health.was_late()) {
                (true, _) => "",
                (false, false) => "hard_tko; ",
                (false, true) => "soft_tko; ",
            };
            let states = self.states_of(destination);
            let states = shown(&[
                ("new", states.new),
                ("up", states.up),
                ("down", states.down),
                ("closed", states.closed),
            ]);
            let results = shown(&NAMES.map(|(name, outcome)| (name, counts.outcomes.of(outcome))));
            let (pending, sent) = (counts.held, counts.waiting.saturating_sub(counts.held));
            let value = format!(
                "avg_latency_us:{latency:.3} pending_reqs:{pending} inflight_reqs:{sent} {tko}{states}; {results}"
            );
            row(&name, value.trim_end());
        }
    }

    /// A row for each address that has failed lately.
    pub(super) fn each_suspect(&self, row: &mut dyn FnMut(&str, &str)) {
        for (address, member) in self.by_address() {
            let status = if member.is_up() { "down" } else { "tko" };
            row(
                address,
                &format!("status:{status} num_failures:{}", failures(member)),
            );
        }
    }

    fn by_address(&self) -> BTreeMap<&str, &Member> {
        let suspects = self.all.iter().map(|destination| destination.member);
        let suspects = suspects.filter(|member| !member.is_up() || member.health.failures() > 0);
        suspects.map(|member| (&*member.address, member)).collect()
    }

    fn states_of(&self, destination: &Destination<'_>) -> States {
        let (workers, counts) = (self.workers, &destination.counts);
        if !destination.member.is_up() {
            return States {
                down: workers,
                ..States::default()
            };
        }
        // Several members may be one destination.
        let up = counts.workers.min(workers);
        let closed = counts.former_workers.min(workers - up);
        States {
            new: workers - up - closed,
            up,
            down: 0,
            closed,
        }
    }
}

/// The counts that are not 0, with their names.
fn shown(counts: &[(&str, u64)]) -> String {
    let named = counts.iter().filter(|(_, count)| *count > 0);
    let named: Vec<String> = named.map(|(name, count)| format!("{name}:{count}")).collect();
    named.join(" ")
}

/// mcrouter counts a lost connection, and the request that was lost with it, as a failure each.
fn failures(member: &Member) -> u32 {
    let by_connection = !member.is_up() && !member.health.was_late();
    member.health.failures() + u32::from(by_connection)
}
