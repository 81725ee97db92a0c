//! What the figures are computed from: the process as it is now.

use std::{
    cell::OnceCell,
    fs,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use proxima_wire::{memcache::Command, message::Outcome};

use super::destinations::{Destinations, States};
use crate::{
    admin::process::Stat,
    control::{Proxy, View},
    frontdoor::mcrouter::Door,
    members::Member,
    metrics::{Metrics, Outcomes},
};

/// The process as it is now.
pub(super) struct Facts<'a> {
    pub(super) proxy: &'a Proxy,
    pub(super) door: &'a Door,
    /// The sum over all workers.
    pub(super) metrics: Metrics,
    pub(super) view: View,
    pub(super) members: Vec<Arc<Member>>,
    /// Seconds since 1970.
    pub(super) now: u64,
    /// What the kernel tells of the process, if it does.
    pub(super) process: Option<Stat>,
    servers: OnceCell<Servers>,
    outcomes: OnceCell<Outcomes>,
}

/// All servers as one.
pub(super) struct Servers {
    pub(super) states: States,
    /// How many have failed lately.
    pub(super) suspects: u64,
}

impl<'a> Facts<'a> {
    /// Gathers the counters of all workers.
    #[allow(clippy::disallowed_methods, reason = "statistics tell the time of day")]
    pub(super) fn gather(proxy: &'a Proxy, door: &'a Door) -> Self {
        let stat = fs::read_to_string("/proc/self/stat").ok();
        let view = proxy.view();
        let members = view.members.iter().map(|found| Arc::clone(&found.member));
        let members = members.collect();
        Self {
            proxy,
            view,
            members,
            door,
            metrics: proxy.metrics(),
            now: seconds(SystemTime::now()),
            process: stat.and_then(|text| Stat::parse(&text)),
            servers: OnceCell::new(),
            outcomes: OnceCell::new(),
        }
    }

    /// The servers as mcrouter counts them.
    pub(super) fn destinations(&self) -> Destinations<'_> {
        Destinations::of(&self.members, &self.metrics, self.proxy.workers())
    }

    /// All servers as one. It takes a look at each, once for all who ask.
    pub(super) fn servers(&self) -> &Servers {
        self.servers.get_or_init(|| {
            let destinations = self.destinations();
            Servers {
                states: destinations.states(),
                suspects: destinations.suspects(),
            }
        })
    }

    /// Requests of clients of this command.
    pub(super) fn asked(&self, command: Command) -> u64 {
        self.metrics.requests.get(command as usize).copied().unwrap_or(0)
    }

    /// Replies to clients with one of these outcomes.
    pub(super) fn ended(&self, outcomes: &[Outcome]) -> u64 {
        outcomes
            .iter()
            .map(|&outcome| self.metrics.replies.with(outcome))
            .sum()
    }

    /// Requests to servers with one of these outcomes.
    pub(super) fn met(&self, outcomes: &[Outcome]) -> u64 {
        let all = self.outcomes.get_or_init(|| {
            let mut all = self.metrics.former.clone();
            self.metrics
                .members
                .iter()
                .for_each(|member| all.add(&member.outcomes));
            all
        });
        all.sum(outcomes)
    }

    /// Requests to servers.
    pub(super) fn sent(&self) -> u64 {
        self.metrics.sent.iter().sum()
    }

    /// Requests to servers with this command.
    pub(super) fn sent_by(&self, command: Command) -> u64 {
        self.metrics.sent.get(command as usize).copied().unwrap_or(0)
    }

    /// When the running configuration took effect, in seconds since 1970.
    pub(super) fn configured(&self) -> u64 {
        seconds(self.view.changed)
    }

    /// When a configuration was last read, in seconds since 1970.
    pub(super) fn attempted(&self) -> u64 {
        seconds(self.view.attempted)
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
