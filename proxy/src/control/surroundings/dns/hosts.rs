//! The names of hosts in server addresses. One task asks for all of them in rounds; it runs only while there
//! are names.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Semaphore,
    task::{AbortHandle, JoinSet},
    time::sleep,
};

use super::{
    LookupCounts, LookupFailure, Names, Questions,
    find::{HostAddress, System},
    lookup_status::LookupStatus,
};

use crate::event_log::kind;

/// Time from the end of a round to the next one.
const PAUSE: Duration = Duration::from_secs(1);
/// Time for each name where that is longer: no more than 100 names are asked for in a second.
const PAUSE_FOR_EACH: Duration = Duration::from_millis(10);
/// Names that are asked at the same time.
const AT_ONCE: usize = 64;

/// The look-ups of hosts.
#[derive(Default)]
pub(super) struct Hosts {
    pub(super) known: BTreeMap<String, LookupStatus<HostAddress>>,
    task: Option<AbortHandle>,
}

impl Names {
    pub(super) fn hosts(&self) -> MutexGuard<'_, Hosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for these names from now on, and for no others.
    pub(super) fn follow_hosts(self: &Arc<Self>, wanted: &BTreeSet<String>) {
        let hosts = &mut *self.hosts();
        hosts.known.retain(|name, _| wanted.contains(name));
        let more = hosts.known.len() < wanted.len();
        if (more || wanted.is_empty())
            && let Some(task) = hosts.task.take()
        {
            task.abort();
        }
        if more {
            for name in wanted {
                hosts.known.entry(name.clone()).or_default();
            }
            // A new task begins its first round at once.
            let task = self.runtime.spawn(Arc::clone(self).look_up());
            hosts.task = Some(task.abort_handle());
        }
    }

    /// The addresses of those of these hosts that have one.
    pub(in crate::control) fn addresses(&self, wanted: &Questions) -> BTreeMap<String, IpAddr> {
        let hosts = self.hosts();
        let address = |name: &String| Some((name.clone(), hosts.known.get(name)?.newest.as_ref()?.ip));
        wanted.hosts.iter().filter_map(address).collect()
    }

    /// The counts of look-ups for this host. `None`: nobody asks for it.
    pub(in crate::control) fn host(&self, name: &str) -> Option<LookupCounts> {
        self.hosts().known.get(name).map(|status| status.asked.clone())
    }

    /// Why this host has no address.
    pub(in crate::control) fn why_not(&self, name: &str) -> LookupFailure {
        let failure = self.host(name).and_then(|asked| asked.failure);
        // The first look-up is still under way.
        failure.unwrap_or(LookupFailure::Late)
    }

    async fn look_up(self: Arc<Self>) {
        let mut system = System::default();
        loop {
            let finder = system.read();
            let permits = Arc::new(Semaphore::new(AT_ONCE));
            let mut round = JoinSet::new();
            for (name, status) in &self.hosts().known {
                let (name, before) = (name.clone(), status.newest.clone());
                let (finder, permits) = (finder.clone(), Arc::clone(&permits));
                round.spawn(async move {
                    // The semaphore is never closed.
                    let _permit = permits.acquire().await;
                    let answer = finder.find(&name, before.as_ref()).await;
                    (name, answer)
                });
            }
            let all = round.len();
            while let Some(answered) = round.join_next().await {
                if let Ok((name, answer)) = answered {
                    self.record_host(&name, answer);
                }
            }
            sleep(PAUSE.max(PAUSE_FOR_EACH * all as u32)).await;
        }
    }

    fn record_host(&self, name: &str, answer: Result<HostAddress, LookupFailure>) {
        let mut hosts = self.hosts();
        let Some(status) = hosts.known.get_mut(name) else {
            return;
        };
        let before = status.newest.as_ref().map(|found| found.ip);
        let change = status.record(answer);
        let now = status.newest.as_ref().map(|found| found.ip);
        drop(hosts);
        match (change.fails, now) {
            (Some(failure), None) => {
                tracing::warn!(target: kind::SOURCE, %name, %failure, "the name of a server does not resolve: ejected until it does");
            }
            (Some(failure), Some(address)) => {
                tracing::warn!(target: kind::SOURCE, %name, %failure, %address, "DNS fails; the address that is known stays");
            }
            (None, Some(address)) if change.again || change.new && before.is_some() => {
                tracing::info!(target: kind::SOURCE, %name, %address, before = before.map(tracing::field::display), "DNS answers");
            }
            _ => {}
        }
        if change.new {
            self.changed.notify_one();
        }
        self.asked.notify_waiters();
    }
}
