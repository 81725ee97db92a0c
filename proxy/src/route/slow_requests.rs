//! The last slow requests of the process, with the times of their steps.
#![allow(
    clippy::disallowed_types,
    reason = "workers only try to put what is slow; whoever looks alone waits for the lock"
)]

use std::{
    collections::VecDeque,
    fmt::{self, Display, Formatter},
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError, TryLockError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use proxima_wire::message::{Class, Outcome};

use crate::micros::Micros;

/// Lines in the log in one second. Further slow requests are kept and counted, and the next line says how many.
const LINES: u32 = 10;

/// A request that was slow.
#[derive(Clone, Debug)]
pub struct SlowRequest {
    /// Its number: the first one of the process has 1. It has none, 0, before it is kept.
    pub number: u64,
    /// When it was answered, since 1970.
    pub at: Micros,
    /// The number of its listener.
    pub listener: u16,
    /// The client's address; `None`: it is not known, or not there any more.
    pub client: Option<IpAddr>,
    /// The name of its command.
    pub command: &'static str,
    /// What it does to the data.
    pub class: Class,
    /// Its key, as the configuration has keys told; `None`: it has none, or it is hidden.
    pub key: Option<String>,
    /// Its statement, without values; `None`: its protocol has no statements, or it cannot be read.
    pub statement: Option<String>,
    /// How it has ended.
    pub outcome: Outcome,
    /// The time from its way into the routes to its answer.
    pub took: Micros,
    /// The number of requests that it stands for, as not all were looked at.
    pub weight: u32,
    /// What it has waited for, in the order in which that ended. Times may overlap.
    pub steps: Vec<StepTime>,
    /// There were more steps than are kept.
    pub has_more_steps: bool,
}

/// What a request has waited for, and for how long.
#[derive(Clone, Debug)]
pub struct StepTime {
    /// What it was.
    pub what: WaitedFor,
    /// When it has begun, from the beginning of the request on.
    pub begun: Micros,
    /// How long it has lasted.
    pub took: Micros,
}

/// What a request waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitedFor {
    /// A connection of its own to a server.
    Connection,
    /// The state of its pool: a writer, or a reader that is fresh enough.
    Pool,
    /// A route that holds requests back, of this name.
    Route(&'static str),
    /// An answer.
    Answer {
        /// The pool and the address of the server that was asked; `None`: it is not known which.
        server: Option<(String, String)>,
        /// How that has ended.
        outcome: Outcome,
        /// Why there was no reply; `None`: there was one.
        why: Option<String>,
    },
}

impl Display for StepTime {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.what {
            WaitedFor::Connection => write!(f, "a connection")?,
            WaitedFor::Pool => write!(f, "its pool")?,
            WaitedFor::Route(name) => write!(f, "{name}")?,
            WaitedFor::Answer { server, outcome, why } => {
                match server {
                    Some((pool, address)) if !pool.is_empty() => write!(f, "{pool}/{address}")?,
                    Some((_, address)) => write!(f, "{address}")?,
                    None => write!(f, "an answer")?,
                }
                match why {
                    Some(why) => write!(f, " ({why})")?,
                    None => write!(f, " ({outcome:?})")?,
                }
            }
        }
        write!(f, " {} ms", self.took.0 as f64 / 1000.0)
    }
}

/// Where slow requests are kept.
#[derive(Debug, Default)]
pub struct SlowRequests {
    kept: Mutex<Kept>,
    /// Those that could not be kept, as somebody looked or put one at that moment.
    missed: AtomicU64,
}

#[derive(Debug, Default)]
struct Kept {
    last: VecDeque<Arc<SlowRequest>>,
    count: u64,
    /// The second of the last line in the log, lines in it, and requests since that have none.
    second: u64,
    lines: u32,
    unlogged: u64,
}

impl SlowRequests {
    /// Keeps a request, and no more than `keep` in all. Where somebody else is at them, it is only counted: a worker
    /// waits for nobody.
    pub(in crate::route) fn put(&self, mut request: SlowRequest, keep: usize) {
        let mut kept = match self.kept.try_lock() {
            Ok(kept) => kept,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.missed.fetch_add(1, Relaxed);
                return;
            }
        };
        kept.count += 1;
        request.number = kept.count;
        let request = Arc::new(request);
        let room = keep.saturating_sub(1);
        let surplus = kept.last.len().saturating_sub(room);
        kept.last.drain(..surplus);
        kept.last.push_back(Arc::clone(&request));
        let unlogged = kept.logs(request.at.as_secs());
        drop(kept);
        if let Some(unlogged) = unlogged {
            log(&request, unlogged);
        }
    }

    /// The last ones, the newest first.
    pub fn last(&self) -> Vec<Arc<SlowRequest>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.last.iter().rev().cloned().collect()
    }

    /// How many there were since the start, and how many of them could not be kept.
    pub fn counts(&self) -> (u64, u64) {
        let missed = self.missed.load(Relaxed);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        (kept.count + missed, missed)
    }
}

impl Kept {
    /// Does a request in this second get a line in the log? Then it returns how many before it have none.
    fn logs(&mut self, second: u64) -> Option<u64> {
        if self.second != second {
            (self.second, self.lines) = (second, 0);
        }
        if self.lines >= LINES {
            self.unlogged += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.unlogged))
    }
}

fn log(request: &SlowRequest, unlogged: u64) {
    let steps: Vec<String> = request.steps.iter().map(StepTime::to_string).collect();
    tracing::info!(
        command = request.command,
        key = request.key,
        statement = request.statement,
        client = request.client.map(tracing::field::display),
        outcome = ?request.outcome,
        ms = request.took.0 as f64 / 1000.0,
        waited = steps.join(", "),
        unlogged = (unlogged > 0).then_some(unlogged),
        "a request was slow"
    );
}

#[cfg(test)]
mod tests {
    use proxima_wire::message::{Class, Outcome};

    use super::{LINES, SlowRequest, SlowRequests, StepTime, WaitedFor};
    use crate::micros::Micros;

    fn slow(second: u64) -> SlowRequest {
        SlowRequest {
            number: 0,
            at: Micros::secs(second),
            listener: 0,
            client: None,
            command: "get",
            class: Class::Read,
            key: None,
            statement: None,
            outcome: Outcome::Found,
            took: Micros(60_000),
            weight: 1,
            steps: Vec::new(),
            has_more_steps: false,
        }
    }

    #[test]
    fn the_last_ones_are_kept_the_newest_first_and_all_are_counted() {
        let all = SlowRequests::default();
        (0..5).for_each(|second| all.put(slow(second), 3));
        let numbers = |all: &SlowRequests| all.last().iter().map(|kept| kept.number).collect::<Vec<_>>();
        assert_eq!((numbers(&all), all.counts()), (vec![5, 4, 3], (5, 0)));
        // A configuration that keeps fewer takes effect with the next one.
        all.put(slow(6), 1);
        assert_eq!(numbers(&all), [6]);
    }

    #[test]
    fn a_worker_waits_for_nobody_who_looks() {
        let all = SlowRequests::default();
        let looks = all.kept.lock().unwrap();
        all.put(slow(1), 3);
        drop(looks);
        assert_eq!((all.last().len(), all.counts()), (0, (1, 1)));
    }

    #[test]
    fn a_flood_of_slow_requests_is_no_flood_in_the_log() {
        let all = SlowRequests::default();
        (0..100).for_each(|_| all.put(slow(1), 3));
        let mut kept = all.kept.lock().unwrap();
        assert_eq!((kept.lines, kept.unlogged), (LINES, 100 - u64::from(LINES)));
        assert_eq!(
            kept.logs(2),
            Some(100 - u64::from(LINES)),
            "the next line says it"
        );
        assert_eq!(kept.logs(2), Some(0));
    }

    #[test]
    fn steps_are_told_in_words() {
        let step = |what| {
            let (begun, took) = (Micros(5), Micros(1_500));
            StepTime { what, begun, took }.to_string()
        };
        let asked = |why: Option<&str>, outcome| WaitedFor::Answer {
            server: Some(("cache".into(), "10.0.0.1:11211".into())),
            outcome,
            why: why.map(str::to_owned),
        };
        assert_eq!(
            step(asked(Some("no answer"), Outcome::Timeout)),
            "cache/10.0.0.1:11211 (no answer) 1.5 ms"
        );
        assert_eq!(
            step(asked(None, Outcome::Found)),
            "cache/10.0.0.1:11211 (Found) 1.5 ms"
        );
        assert_eq!(step(WaitedFor::Route("rate_limit")), "rate_limit 1.5 ms");
    }
}
