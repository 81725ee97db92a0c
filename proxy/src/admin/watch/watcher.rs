//! One who watches: the messages that are due to it, bounded, and the body of the answer that brings them.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use hyper::body::{Body, Bytes, Frame};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::admin::connections::Lasts;

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
    /// It has the document that changes are told of.
    pub(super) has_document: bool,
    /// It wants samples of requests.
    pub(super) samples: bool,
}

/// The messages as the body of an answer.
pub(super) struct Messages {
    from: UnboundedReceiver<Message>,
    backlog: Arc<AtomicUsize>,
}

impl Watcher {
    /// A watcher whose answer this is.
    pub(super) fn new(samples: bool, answer: Lasts) -> (Self, Messages) {
        let (to, from) = unbounded_channel();
        let backlog = Arc::<AtomicUsize>::default();
        let watcher = Self {
            to,
            backlog: Arc::clone(&backlog),
            has_document: false,
            samples,
            answer,
        };
        (watcher, Messages { from, backlog })
    }

    /// Sends the whole document. Its length does not count: only the configuration decides on it.
    pub(super) fn begin(&mut self, document: &Bytes) {
        self.has_document = true;
        let _ = self.to.send((document.clone(), 0));
    }

    /// Sends a message. Returns whether this watcher goes on: it has not gone, and is not too slow.
    pub(super) fn send(&self, message: &Bytes) -> bool {
        if self.backlog.load(Relaxed) + message.len() > BACKLOG {
            let why = "event: end\ndata: {\"why\":\"too slow: more than 1 MiB waits to be taken\"}\n\n";
            let _ = self.to.send((Bytes::from_static(why.as_bytes()), 0));
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

impl Body for Messages {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.from.poll_recv(context).map(|message| {
            let (message, counted) = message?;
            self.backlog.fetch_sub(counted, Relaxed);
            Some(Ok(Frame::data(message)))
        })
    }
}
