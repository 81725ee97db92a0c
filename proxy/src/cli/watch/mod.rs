//! What a running proxy tells of itself, second by second: a document of its state, changes of it, and
//! events. A stream that breaks is taken up again behind the last event.

mod merge;
mod messages;

use std::{ops::ControlFlow, time::Duration};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use self::{
    merge::Document,
    messages::{Messages, TooLong},
};
use super::admin::{Admin, AskError, LongAnswer, page};

/// A stream that is silent for this long is lost: a proxy tells something every second.
const SILENCE: Duration = Duration::from_secs(10);
/// Time until the stream is asked for again.
const PAUSE: Duration = Duration::from_secs(1);

/// Why a proxy cannot be watched.
#[derive(Debug, thiserror::Error)]
pub(super) enum WatchError {
    #[error("{0}")]
    Unanswered(#[from] AskError),
    #[error("the proxy has told nothing for {} s", SILENCE.as_secs())]
    Silent,
    #[error("the proxy has ended the stream: {0}")]
    Ended(String),
    #[error("the answer cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the answer cannot be read: {0}")]
    TooLong(#[from] TooLong),
    #[error("the answer cannot be read: it begins with a change")]
    NoState,
    #[error("another process of the proxy answers")]
    Another,
}

/// What is told.
#[derive(Debug)]
pub(super) enum News<'a> {
    /// The state, after each change of it.
    State(&'a Value),
    /// An event, oldest first.
    Event(Value),
    /// The stream is lost for this reason. It is asked for again.
    Lost(WatchError),
}

/// The answer of `/events`.
#[derive(Deserialize)]
struct Events {
    process: String,
    next: u64,
    events: Vec<Value>,
}

/// A proxy that is watched.
pub(super) struct Watch {
    admin: Admin,
    /// Whether samples of requests are asked for as well.
    has_samples: bool,
    /// The process whose events are counted; empty: none has answered yet.
    process: String,
    /// The last event that was told.
    after: u64,
    /// Only events of this kind are told.
    kind: Option<String>,
    /// The stream has told something.
    has_begun: bool,
}

impl Watch {
    pub(super) fn new(admin: Admin, has_samples: bool) -> Self {
        Self {
            admin,
            has_samples,
            process: String::new(),
            after: 0,
            kind: None,
            has_begun: false,
        }
    }

    /// Tells only events behind this one, and of this kind.
    pub(super) fn of_events(self, after: u64, kind: Option<String>) -> Self {
        Self { after, kind, ..self }
    }

    /// Tells the events that are kept.
    ///
    /// # Errors
    /// The proxy cannot be asked.
    pub(super) async fn events<T>(&mut self, tell: &mut T) -> Result<ControlFlow<()>, WatchError>
    where
        T: FnMut(News<'_>) -> ControlFlow<()>,
    {
        let mut events = self.events_after(self.after).await?;
        if events.process != self.process && !self.process.is_empty() {
            events = self.events_after(0).await?;
        }
        self.process = events.process;
        self.after = events.next;
        Ok(events
            .events
            .into_iter()
            .try_for_each(|event| tell(News::Event(event))))
    }

    async fn events_after(&self, after: u64) -> Result<Events, WatchError> {
        let mut path = format!("/events?after={after}");
        if let Some(kind) = &self.kind {
            // The proxy knows its kinds, and refuses others in words.
            path += &format!("&kind={}", utf8_percent_encode(kind, NON_ALPHANUMERIC));
        }
        Ok(serde_json::from_str(&page(&self.admin, &path).await?)?)
    }

    /// Tells the events that are kept, and from then on what comes, until `tell` breaks.
    ///
    /// # Errors
    /// The proxy has never answered, or it sends what is too long.
    pub(super) async fn follow<T>(mut self, mut tell: T) -> Result<(), WatchError>
    where
        T: FnMut(News<'_>) -> ControlFlow<()>,
    {
        loop {
            let error = match self.follow_once(&mut tell).await {
                Ok(()) => return Ok(()),
                Err(error @ WatchError::TooLong(_)) => return Err(error),
                Err(error) if !self.has_begun => return Err(error),
                Err(error) => error,
            };
            if tell(News::Lost(error)).is_break() {
                return Ok(());
            }
            sleep(PAUSE).await;
        }
    }

    async fn follow_once<T>(&mut self, tell: &mut T) -> Result<(), WatchError>
    where
        T: FnMut(News<'_>) -> ControlFlow<()>,
    {
        if self.events(tell).await?.is_break() {
            return Ok(());
        }
        let path = if self.has_samples {
            "/watch?with=samples"
        } else {
            "/watch"
        };
        let mut answer = LongAnswer::of(&self.admin, path, Some(self.after)).await?;
        let (mut messages, mut state) = (Messages::default(), None);
        loop {
            let bytes = timeout(SILENCE, answer.next()).await;
            let Some(bytes) = bytes.map_err(|_| WatchError::Silent)?? else {
                return Err(WatchError::Ended("the connection is closed".to_owned()));
            };
            for message in messages.push(&bytes)? {
                let data: Value = serde_json::from_str(&message.data)?;
                let told = match &*message.kind {
                    "state" => {
                        self.check(&data)?;
                        self.has_begun = true;
                        let document = state.insert(Document::new(data, message.data.len()));
                        tell(News::State(&document.value))
                    }
                    "change" => {
                        let document = state.as_mut().ok_or(WatchError::NoState)?;
                        document.change(data, message.data.len())?;
                        tell(News::State(&document.value))
                    }
                    "log" => {
                        self.has_begun = true;
                        self.after = data["seq"].as_u64().unwrap_or(self.after);
                        match self.kind.as_ref().is_none_or(|kind| data["kind"] == **kind) {
                            true => tell(News::Event(data)),
                            false => ControlFlow::Continue(()),
                        }
                    }
                    "end" => {
                        let why = data["why"].as_str().unwrap_or_default();
                        return Err(WatchError::Ended(why.to_owned()));
                    }
                    // A newer proxy may tell more.
                    _ => ControlFlow::Continue(()),
                };
                if told.is_break() {
                    return Ok(());
                }
            }
        }
    }

    /// Checks that the events are those of the same process. If not, they are asked for anew.
    fn check(&self, state: &Value) -> Result<(), WatchError> {
        let process = state["process"]["id"].as_str();
        match process.is_none_or(|process| process == self.process) {
            true => Ok(()),
            false => Err(WatchError::Another),
        }
    }
}
