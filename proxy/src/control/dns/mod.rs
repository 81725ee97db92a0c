//! Names: lists of servers, each asked again and again by a task of its own, and hosts that servers are on, asked in rounds by
//! one. The newest good answer is kept; a failure changes nothing but what is told about it.
//!
//! ```text
//!  configuration ─▶ questions ─▶ follow ─┬▶ a task for each list ─▶ ask ─▶ answer ─▶ newest ─▶ trees
//!                                        └▶ a task for all hosts ─▶ find ────────────▶ │
//!                                                                 other than before ─▶ changed ─▶ renew
//! ```

mod answer;
mod ask;
mod failure;
mod find;
mod hosts;
mod lookup_status;
mod questions;
mod resolver;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::Notify,
    task::AbortHandle,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

pub(super) use self::questions::{Questions, hosts};
use self::{ask::Asker, hosts::Hosts, lookup_status::LookupStatus};
pub use self::{failure::LookupFailure, lookup_status::Asked};
use crate::config::{
    ConfigError,
    schema::{Config, Dns, Server},
    source::{self, Lists},
};

/// A configuration whose names have not answered after so long has to do without.
const FIRST: Duration = Duration::from_secs(2);
/// Answers that come within this time take effect together: one change, and no copy is first alone.
const SETTLE: Duration = Duration::from_millis(50);

/// What DNS says to every question of the configurations.
pub(super) struct Names {
    runtime: Handle,
    known: Mutex<BTreeMap<Dns, Known>>,
    hosts: Mutex<Hosts>,
    /// An answer differs from the one before.
    changed: Notify,
    /// A question was answered, well or badly.
    asked: Notify,
}

/// What is known about one list.
struct Known {
    status: LookupStatus<Vec<Server>>,
    task: AbortHandle,
}

impl Names {
    pub(super) fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            known: Mutex::default(),
            hosts: Mutex::default(),
            changed: Notify::new(),
            asked: Notify::new(),
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Dns, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks these questions from now on, and no others.
    pub(super) fn follow(self: &Arc<Self>, questions: &Questions) {
        self.follow_hosts(&questions.hosts);
        let mut known = self.known();
        known.retain(|question, known| {
            let wanted = questions.lists.contains(question);
            if !wanted {
                known.task.abort();
            }
            wanted
        });
        for question in &questions.lists {
            known.entry(question.clone()).or_insert_with(|| Known {
                status: LookupStatus::default(),
                task: self
                    .runtime
                    .spawn(Arc::clone(self).ask(question.clone()))
                    .abort_handle(),
            });
        }
    }

    /// Waits until each has been asked once, if that does not take too long.
    pub(super) async fn first(&self) {
        let all = async {
            loop {
                let mut asked = std::pin::pin!(self.asked.notified());
                asked.as_mut().enable();
                let lists = self.known().values().all(|known| known.status.is_asked());
                if lists && self.hosts().known.values().all(LookupStatus::is_asked) {
                    return;
                }
                asked.await;
            }
        };
        // Whether it was too long is seen by whoever looks for an answer.
        let _ = timeout(FIRST, all).await;
    }

    /// The same, for a thread that may wait. It returns early when the process ends.
    pub(super) fn wait_for_first(self: &Arc<Self>) {
        let (done, all) = mpsc::channel::<()>();
        let names = Arc::clone(self);
        self.runtime.spawn(async move {
            names.first().await;
            drop(done);
        });
        let _ = all.recv();
    }

    /// Asks what a configuration asks, waits for the first answers, and returns the lists of its servers.
    pub(super) async fn begin(self: &Arc<Self>, config: &Config) -> Result<Lists, ConfigError> {
        let mut servers = source::lists(config)?;
        self.follow(&Questions::of(config, &servers));
        self.first().await;
        self.list(config, &mut servers);
        Ok(servers)
    }

    /// Returns when an answer differs from the one before.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Waits for those that come along with it.
    pub(super) async fn settled(&self) {
        sleep(SETTLE).await;
    }

    /// The lists that DNS has named; others stay as they are.
    pub(super) fn list(&self, config: &Config, servers: &mut Lists) {
        for (pool, spec) in &config.pools {
            if let Some(question) = spec.source.question()
                && let Some(named) = self.servers(question)
            {
                servers.insert(pool.clone(), named);
            }
        }
    }

    /// Which pools have no servers, as DNS has named none: a line for each, with what it says.
    pub(super) fn explain(&self, config: &Config, servers: &Lists) -> String {
        let waits = config.pools.iter().filter_map(|(pool, spec)| {
            let question = spec.source.question()?;
            if !servers.get(pool).is_none_or(Vec::is_empty) {
                return None;
            }
            let failure = self.status(question).and_then(|asked| asked.failure);
            let failure = failure.unwrap_or(LookupFailure::Late);
            let name = &question.name;
            Some(format!(
                "pool {pool} has no servers: DNS has named none for {name} ({failure})\n"
            ))
        });
        waits.collect()
    }

    /// The newest good answer; none: there never was one.
    pub(super) fn servers(&self, question: &Dns) -> Option<Vec<Server>> {
        self.known().get(question)?.status.newest.clone()
    }

    /// How a question stands; none: nobody asks it.
    pub(super) fn status(&self, question: &Dns) -> Option<Asked> {
        self.known().get(question).map(|known| known.status.asked.clone())
    }

    async fn ask(self: Arc<Self>, question: Dns) {
        let mut asker = Asker::new(question.clone());
        let mut next = interval(question.interval);
        next.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            next.tick().await;
            let answer = asker.ask().await;
            let new = match self.known().get_mut(&question) {
                Some(known) => record(&question, &mut known.status, answer),
                None => return,
            };
            if new {
                self.changed.notify_one();
            }
            self.asked.notify_waiters();
        }
    }
}

/// Takes an answer to the record. Returns whether there are other servers now.
fn record(
    question: &Dns,
    status: &mut LookupStatus<Vec<Server>>,
    answer: Result<Vec<Server>, LookupFailure>,
) -> bool {
    let name = &question.name;
    let change = status.record(answer);
    let servers = status.newest.as_ref().map_or(0, Vec::len);
    if let Some(failure) = change.fails {
        tracing::warn!(%name, %failure, servers, "DNS fails; the servers that are known stay");
    }
    if change.again {
        tracing::info!(%name, servers, "DNS answers again");
    }
    change.new
}
