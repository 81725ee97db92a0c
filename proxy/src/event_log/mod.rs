//! The event log: the last changes of state. They are lines of the log whose target is one of [`kind`], so that the
//! log and this list say the same, and one call tells both.
//!
//! * `kind`: the kinds of changes
//! * `line`: what a line of the log says in which field
//! * `layer`: takes such lines from the log
#![allow(
    clippy::disallowed_types,
    reason = "all threads log, and none does so for a request"
)]

pub mod kind;
mod layer;
mod line;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use serde::Serialize;
use tokio::sync::watch;

pub use self::{layer::EventLayer, line::write_field};

/// The number of events that are kept.
pub const KEPT: usize = 1000;

/// A change of state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Its number; the first one has 1.
    pub seq: u64,
    /// When it was told, in milliseconds since 1970.
    pub at_ms: u64,
    /// `info`, `warn` or `error`.
    pub level: &'static str,
    /// The word of one of [`kind::ALL`].
    pub kind: &'static str,
    /// What has changed, as `POOL/MEMBER`; empty: the proxy.
    pub subject: String,
    /// The state before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The state since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The line of the log, without time and level.
    pub text: String,
}

/// The last [`KEPT`] changes of state.
#[derive(Debug)]
pub struct EventLog {
    #[allow(
        clippy::disallowed_types,
        reason = "all threads log, and none does so for a request"
    )]
    events: Mutex<VecDeque<Arc<Event>>>,
    /// The number of the newest.
    newest: watch::Sender<u64>,
}

impl Default for EventLog {
    fn default() -> Self {
        Self {
            events: Default::default(),
            newest: watch::Sender::new(0),
        }
    }
}

impl EventLog {
    /// Takes this event, and gives it a number.
    fn record(&self, mut event: Event) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        event.seq = events.back().map_or(1, |last| last.seq + 1);
        let seq = event.seq;
        if events.len() == KEPT {
            events.pop_front();
        }
        events.push_back(Arc::new(event));
        self.newest.send_replace(seq);
    }

    /// Those behind the one with this number, as far as they are kept, the oldest first.
    pub fn since(&self, seq: u64) -> Vec<Arc<Event>> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let first = events.partition_point(|event| event.seq <= seq);
        events.range(first..).cloned().collect()
    }

    /// The number of the newest event; it changes with each.
    pub fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tracing_subscriber::{Layer as _, filter::LevelFilter, layer::SubscriberExt as _};

    use super::{EventLayer, EventLog, KEPT, kind};

    fn with_log(told: impl FnOnce()) -> Arc<EventLog> {
        let log = Arc::<EventLog>::default();
        // The log's own level is below that of the lines.
        let quiet = tracing_subscriber::fmt::layer().with_filter(LevelFilter::ERROR);
        let subscriber = tracing_subscriber::registry()
            .with(quiet)
            .with(EventLayer::new(&log));
        tracing::subscriber::with_default(subscriber, told);
        log
    }

    #[test]
    fn a_line_of_a_kind_is_an_event_whatever_the_level_of_the_log() {
        let log = with_log(|| {
            tracing::info!("no change of state");
            tracing::warn!(target: kind::EJECTED, pool = "cache", member = "a b", reason = "no answer", "ejected");
            tracing::info!(target: kind::VIEW, before = 3, view = 4, "fleet: view");
        });
        let events = log.since(0);
        let [ejected, view] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!((ejected.seq, ejected.level, ejected.kind), (1, "warn", "ejected"));
        assert_eq!(ejected.subject, "cache/a b");
        assert_eq!(
            ejected.text,
            "ejected pool=\"cache\" member=\"a b\" reason=\"no answer\""
        );
        assert_eq!(ejected.before.as_deref(), Some("up"));
        assert_eq!(ejected.why.as_deref(), Some("no answer"));
        assert_eq!(
            (view.before.as_deref(), view.after.as_deref()),
            (Some("3"), Some("4"))
        );
        assert_eq!(log.since(1), &events[1..]);
        assert_eq!(*log.newest().borrow(), 2);
    }

    #[test]
    fn only_the_last_events_are_kept() {
        let log = with_log(|| {
            for number in 0..KEPT + 5 {
                tracing::info!(target: kind::ORDER, number, "ordered");
            }
        });
        let events = log.since(0);
        assert_eq!((events.len(), events[0].seq), (KEPT, 6));
        assert_eq!(log.since(KEPT as u64 + 4).len(), 1);
        assert!(log.since(u64::MAX).is_empty());
    }
}
