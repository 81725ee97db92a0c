//! One who watches: the messages that are due to it, bounded.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Context,
};

use axum::body::Body;
use hyper::body::Bytes;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::message;
use crate::{
    admin::{connections::Lasts, pieces::Pieces},
    event_log::EventLog,
};

/// Bytes that may wait for one watcher beside the whole document.
const BACKLOG: usize = 1 << 20;

/// A message, and how many bytes of it count as backlog.
type Message = (Bytes, usize);

/// Where the messages for one watcher go.
pub(super) struct Watcher {
    to: UnboundedSender<Message>,
    /// Bytes of them that it has not taken.
    backlog: Arc<AtomicUsize>,
    answer: Lasts,
    /// The number of the last event that it was told.
    told: u64,
    /// It has the document that changes are told of.
    pub(super) has_document: bool,
    /// It wants samples of requests.
    pub(super) samples: bool,
}

impl Watcher {
    /// A watcher whose answer this is, that knows the events up to this one; with the answer's body.
    pub(super) fn new(told: u64, samples: bool, answer: Lasts) -> (Self, Body) {
        let (to, mut from) = unbounded_channel::<Message>();
        let backlog = Arc::<AtomicUsize>::default();
        let watcher = Self {
            to,
            backlog: Arc::clone(&backlog),
            answer,
            told,
            has_document: false,
            samples,
        };
        let body = Pieces(move |context: &mut Context<'_>| {
            from.poll_recv(context).map(|message| {
                let (message, counted) = message?;
                backlog.fetch_sub(counted, Relaxed);
                Some(message)
            })
        });
        (watcher, Body::new(body))
    }

    /// Sends the whole document. Its length does not count: only the configuration decides on it.
    pub(super) fn begin(&mut self, document: &Bytes) {
        self.has_document = true;
        let _ = self.to.send((document.clone(), 0));
    }

    /// Sends the events that it was not told. Of those that it has missed before it came, it is told the last ones
    /// that half of the backlog has room for. Returns whether it goes on, as [`Watcher::send`] does.
    pub(super) fn tell(&mut self, events: &EventLog) -> bool {
        let mut messages = Vec::new();
        let mut bytes = 0;
        for event in events.since(self.told).into_iter().rev() {
            self.told = self.told.max(event.seq);
            let log = message::log(&event);
            bytes += log.len();
            if bytes > BACKLOG / 2 {
                break;
            }
            messages.push(log);
        }
        messages.iter().rev().all(|log| self.send(log))
    }

    /// Sends a message. Returns whether this watcher goes on: it has not gone, and is not too slow.
    pub(super) fn send(&self, message: &Bytes) -> bool {
        if self.backlog.load(Relaxed) + message.len() > BACKLOG {
            let end = message::end("too slow: more than 1 MiB waits to be taken");
            let _ = self.to.send((end, 0));
            self.answer.end();
            return false;
        }
        self.backlog.fetch_add(message.len(), Relaxed);
        self.to.send((message.clone(), message.len())).is_ok()
    }

    pub(super) fn has_gone(&self) -> bool {
        self.to.is_closed()
    }
}
