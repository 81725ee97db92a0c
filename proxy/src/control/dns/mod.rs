//! Members by DNS: each question is asked again and again by a task of its own, and the newest good answer is kept. A failure
//! changes nothing but what is told about it.
//!
//! ```text
//!  configuration ─▶ follow ─▶ a task for each question ─▶ ask ─▶ answer ─▶ newest ─▶ trees
//!                                                                   └─ other than before ─▶ changed ─▶ renew
//! ```

mod answer;
mod ask;
mod resolver;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::Notify,
    task::AbortHandle,
    time::{MissedTickBehavior, interval, timeout},
};

use self::ask::Asker;
pub use self::ask::Failure;
use crate::config::schema::{Config, Dns, Server, Source};

/// A configuration whose names have not answered after so long has to do without.
const FIRST: Duration = Duration::from_secs(2);

/// What DNS says to every question of the configurations.
pub(super) struct Names {
    runtime: Handle,
    known: Mutex<BTreeMap<Dns, Known>>,
    /// An answer differs from the one before.
    changed: Notify,
    /// A question was answered, well or badly.
    asked: Notify,
}

/// What is known about one question.
struct Known {
    standing: Asked,
    task: AbortHandle,
}

/// How a question stands.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The newest good answer; none: there never was one.
    servers: Option<Vec<Server>>,
    /// Why the newest answer was none.
    pub failure: Option<Failure>,
    pub answers: u64,
    pub failures: u64,
}

impl Asked {
    fn is_asked(&self) -> bool {
        self.answers + self.failures > 0
    }
}

/// The questions that a configuration asks.
pub(super) fn questions(config: &Config) -> BTreeSet<Dns> {
    config
        .pools
        .values()
        .filter_map(|pool| match &pool.source {
            Source::Dns(question) => Some(question.clone()),
            _ => None,
        })
        .collect()
}

impl Names {
    pub(super) fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            known: Mutex::default(),
            changed: Notify::new(),
            asked: Notify::new(),
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Dns, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks these questions from now on, and no others.
    pub(super) fn follow(self: &Arc<Self>, questions: &BTreeSet<Dns>) {
        let mut known = self.known();
        known.retain(|question, known| {
            let wanted = questions.contains(question);
            if !wanted {
                known.task.abort();
            }
            wanted
        });
        for question in questions {
            known.entry(question.clone()).or_insert_with(|| Known {
                standing: Asked::default(),
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
                if self.known().values().all(|known| known.standing.is_asked()) {
                    return;
                }
                asked.await;
            }
        };
        // Whether it was too long is seen by whoever looks for an answer.
        let _ = timeout(FIRST, all).await;
    }

    /// The same, for a thread that may wait.
    pub(super) fn wait_for_first(&self) {
        self.runtime.block_on(self.first());
    }

    /// Returns when an answer differs from the one before.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The newest good answer; none: there never was one.
    pub(super) fn servers(&self, question: &Dns) -> Option<Vec<Server>> {
        self.known().get(question)?.standing.servers.clone()
    }

    /// How a question stands; none: nobody asks it.
    pub(super) fn standing(&self, question: &Dns) -> Option<Asked> {
        self.known().get(question).map(|known| known.standing.clone())
    }

    async fn ask(self: Arc<Self>, question: Dns) {
        let mut asker = Asker::new(question.clone());
        let mut next = interval(question.interval);
        next.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            next.tick().await;
            let answer = asker.ask().await;
            let new = match self.known().get_mut(&question) {
                Some(known) => note(&question, &mut known.standing, answer),
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
fn note(question: &Dns, standing: &mut Asked, answer: Result<Vec<Server>, Failure>) -> bool {
    let name = &question.name;
    match answer {
        Ok(servers) => {
            standing.answers += 1;
            if standing.failure.take().is_some() {
                tracing::info!(%name, servers = servers.len(), "DNS answers again");
            }
            let new = standing.servers.as_ref() != Some(&servers);
            standing.servers = Some(servers);
            new
        }
        Err(failure) => {
            standing.failures += 1;
            let told = standing
                .failure
                .as_ref()
                .is_some_and(|before| before.is_like(&failure));
            if !told {
                let servers = standing.servers.as_ref().map_or(0, Vec::len);
                tracing::warn!(%name, %failure, servers, "DNS fails; the servers that are known stay");
            }
            standing.failure = Some(failure);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::Record;

    fn server(address: &str) -> Server {
        Server {
            address: address.into(),
            name: None,
            weight: 1.0,
            zone: None,
        }
    }

    #[test]
    fn a_failure_leaves_what_is_known() {
        let question = Dns {
            name: "a".into(),
            record: Record::A(1),
            interval: Dns::INTERVAL,
            server: None,
        };
        let (one, two) = (vec![server("10.0.0.1:1")], vec![server("10.0.0.2:1")]);
        let mut standing = Asked::default();
        // What comes, whether the servers differ after it, and which they are.
        for (answer, changes, known) in [
            (Err(Failure::NoName), false, None),
            (Ok(one.clone()), true, Some(&one)),
            (Ok(one.clone()), false, Some(&one)),
            (Err(Failure::Late), false, Some(&one)),
            (Err(Failure::NoRecords), false, Some(&one)),
            (Ok(one.clone()), false, Some(&one)),
            (Ok(two.clone()), true, Some(&two)),
        ] {
            let failed = answer.is_err();
            assert_eq!(note(&question, &mut standing, answer), changes);
            assert_eq!(standing.servers.as_ref(), known);
            assert_eq!(standing.failure.is_some(), failed);
        }
        assert_eq!((standing.answers, standing.failures), (4, 3));
    }
}
