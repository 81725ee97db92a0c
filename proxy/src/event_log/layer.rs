//! Takes changes of state from the log.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::{
    Layer,
    filter::{FilterFn, Filtered, filter_fn},
    layer::Context,
    registry::LookupSpan,
};

use super::{Event, EventLog, kind, line::Line};

/// The part of the log that keeps changes of state, whatever level is written.
pub struct EventLayer(Arc<EventLog>);

impl EventLayer {
    /// The layer that tells this log.
    pub fn new<S>(log: &Arc<EventLog>) -> Filtered<Self, FilterFn, S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let is_change: fn(&Metadata<'_>) -> bool = |metadata| kind::of(metadata.target()).is_some();
        Self(Arc::clone(log)).with_filter(filter_fn(is_change))
    }
}

impl<S: Subscriber> Layer<S> for EventLayer {
    #[allow(clippy::disallowed_methods, reason = "a line of the log has the time of day")]
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let Some(kind) = kind::of(event.metadata().target()) else {
            return;
        };
        let mut line = Line::default();
        event.record(&mut line);
        let [before, after] =
            kind::states(kind).map_or([None, None], |states| states.map(|it| Some(it.to_owned())));
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.0.record(Event {
            seq: 0,
            at_ms: since.as_millis() as u64,
            level: level(*event.metadata().level()),
            kind,
            subject: line.names.join("/"),
            before: line.before.or(before),
            after: line.after.or(after),
            why: line.why,
            text: line.text,
        });
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        _ => "info",
    }
}
