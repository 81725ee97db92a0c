//! DNS look-ups: lists of servers, each asked for by a task of its own, and host names in server addresses,
//! asked for in rounds by one task. The newest good answer is kept; a failure changes only what operators
//! see.
//!
//! ```text
//!  configuration ─▶ questions ─▶ follow ─┬▶ a task for each list ─▶ ask ─▶ answer ─▶ newest ─▶ trees
//!                                        └▶ a task for all hosts ─▶ find ────────────▶ │
//!                                                                differs from before ─▶ changed ─▶ renew
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

/// Time that a configuration waits for the first answers of its names.
const FIRST: Duration = Duration::from_secs(2);
/// Answers that come within this time take effect together, as one change. No copy is then alone for a
/// moment.
const SETTLE: Duration = Duration::from_millis(50);

/// The look-ups of all configurations that run or are tried.
pub(super) struct Names {
    runtime: Handle,
    known: Mutex<BTreeMap<Dns, Known>>,
    hosts: Mutex<Hosts>,
    /// Notified when an answer differs from the one before.
    changed: Notify,
    /// Notified when a question was answered, well or badly.
    asked: Notify,
}

/// The look-up of one list of servers.
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

    /// Waits until each question has been answered once, for [`FIRST`] at most.
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
        // A question that is late shows as such to its reader.
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

    /// Asks the questions of a configuration, waits for the first answers, and returns the servers of its
    /// pools.
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

    /// Waits for answers that come along with the last one.
    pub(super) async fn settled(&self) {
        sleep(SETTLE).await;
    }

    /// Puts the servers that DNS names into `servers`; other lists stay as they are.
    pub(super) fn list(&self, config: &Config, servers: &mut Lists) {
        for (pool, spec) in &config.pools {
            if let Some(question) = spec.source.question()
                && let Some(named) = self.servers(question)
            {
                servers.insert(pool.clone(), named);
            }
        }
    }

    /// A line for each pool that has no servers because DNS has named none, with the reason.
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

    /// The newest good answer. `None`: there has never been one.
    pub(super) fn servers(&self, question: &Dns) -> Option<Vec<Server>> {
        self.known().get(question)?.status.newest.clone()
    }

    /// The counts of this question. `None`: it is not asked.
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

/// Records an answer and logs what operators should know. Returns whether the servers differ.
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
