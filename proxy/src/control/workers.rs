//! The worker threads, and how orders reach them.

use std::{
    os::{fd::OwnedFd, unix::net::UnixStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
    time::Instant,
};

use socket2::Socket;
use tokio::sync::mpsc::UnboundedSender;

use crate::{
    client::{SessionPage, SessionQuery},
    engine::{Engine, WorkerEvent},
    event_log::kind,
    metrics::Metrics,
    protocol::Wakers,
    reactor::{Epoll, Io, Reactor, Uring},
    worker::{Mailbox, Order, Wiring, Worker},
};

/// Makes an engine. It is called on the worker's thread, as an engine cannot move to another one.
pub(super) type MakeEngine = Box<dyn FnOnce() -> Engine + Send>;

/// All workers.
pub(super) struct Workers {
    handles: Vec<WorkerHandle>,
}

struct WorkerHandle {
    mailbox: Mailbox,
    /// Set while the worker has time-outs to look at.
    tick: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Workers {
    /// Starts a thread for each engine.
    pub(super) fn start(
        engines: Vec<MakeEngine>,
        io: Io,
        started: Instant,
        events: &UnboundedSender<WorkerEvent>,
    ) -> std::io::Result<Self> {
        let mut mailboxes = Vec::new();
        let mut ends = Vec::new();
        for _ in &engines {
            let (orders, inbox) = mpsc::channel();
            let (bell, waker) = UnixStream::pair()?;
            bell.set_nonblocking(true)?;
            waker.set_nonblocking(true)?;
            mailboxes.push(Mailbox {
                orders,
                bell: Arc::new(bell),
            });
            ends.push((inbox, Socket::from(OwnedFd::from(waker))));
        }
        let mut handles = Vec::new();
        for ((number, engine), (inbox, waker)) in engines.into_iter().enumerate().zip(ends) {
            let tick = Arc::new(AtomicBool::new(false));
            let wiring = Wiring {
                started,
                orders: inbox,
                waker,
                events: events.clone(),
                tick: Arc::clone(&tick),
                peers: mailboxes.clone(),
            };
            let thread = Mutex::new(Some(spawn(number, io, engine, wiring)?));
            handles.push(WorkerHandle {
                mailbox: mailboxes[number].clone(),
                tick,
                thread,
            });
        }
        Ok(Self { handles })
    }

    pub(super) fn len(&self) -> usize {
        self.handles.len()
    }

    /// Registers the mailbox of each worker with these wakers.
    pub(super) fn wake_by(&self, wakers: &Wakers) {
        for handle in &self.handles {
            let mailbox = handle.mailbox.clone();
            wakers.add(move || mailbox.ring());
        }
    }

    /// Gives each worker its own order.
    pub(super) fn order(&self, mut make: impl FnMut(usize) -> Order) {
        for (number, handle) in self.handles.iter().enumerate() {
            handle.mailbox.order(make(number));
        }
    }

    /// Gives one worker an order.
    pub(super) fn order_one(&self, number: usize, order: Order) {
        if let Some(handle) = self.handles.get(number) {
            handle.mailbox.order(order);
        }
    }

    /// Wakes the workers that have time-outs to look at.
    pub(super) fn tick(&self) {
        for handle in self.handles.iter().filter(|handle| handle.tick.load(Relaxed)) {
            handle.mailbox.ring();
        }
    }

    pub(super) fn metrics(&self) -> Metrics {
        let mut sum = Metrics::default();
        self.metrics_of_each().iter().for_each(|metrics| sum.add(metrics));
        sum
    }

    /// The metrics of each worker, by its number; those of one that has ended are empty.
    pub(super) fn metrics_of_each(&self) -> Vec<Metrics> {
        let ask = |worker| {
            let (to, from) = mpsc::channel();
            self.order_one(worker, Order::Report(to));
            from
        };
        let asked: Vec<Receiver<Metrics>> = (0..self.len()).map(ask).collect();
        asked.iter().map(|from| from.recv().unwrap_or_default()).collect()
    }

    /// Facts about the sessions that one worker has in these places and behind them. A worker that has ended
    /// has none.
    pub(super) fn list_sessions(&self, worker: usize, query: &Arc<SessionQuery>, from: usize) -> SessionPage {
        let (to, page) = mpsc::channel();
        let query = Arc::clone(query);
        self.order_one(worker, Order::ListSessions { query, from, to });
        page.recv().unwrap_or_default()
    }

    /// Whether any worker thread has ended.
    pub(super) fn any_ended(&self) -> bool {
        self.handles.iter().any(WorkerHandle::has_ended)
    }

    pub(super) fn join(&self) {
        for handle in &self.handles {
            let thread = handle
                .thread
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            // A panic was reported by its hook when it happened.
            let _ = thread.map(JoinHandle::join);
        }
    }
}

/// Waits until every worker has acknowledged an order, or has ended. No lock may be held meanwhile: a worker
/// acknowledges between two turns, in which it serves clients.
pub(super) fn wait(acknowledged: &Receiver<()>) {
    acknowledged.iter().for_each(drop);
}

impl WorkerHandle {
    fn has_ended(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

/// Starts a worker's thread. A ring must be made by the thread that uses it, so this returns only when the
/// thread has told whether that worked.
fn spawn(number: usize, io: Io, engine: MakeEngine, wiring: Wiring) -> std::io::Result<JoinHandle<()>> {
    let (ready, told) = mpsc::channel();
    let thread = thread::Builder::new()
        .name(format!("worker-{number}"))
        .spawn(move || {
            let result = match io {
                Io::Uring => work(Uring::new(), engine(), wiring, &ready),
                _ => work(Epoll::new(), engine(), wiring, &ready),
            };
            if let Err(error) = result {
                tracing::error!(target: kind::DEFECT, worker = number, %error, "worker ended");
            }
        })?;
    let lost = || {
        Err(std::io::Error::other(
            "the worker ended while it was being started",
        ))
    };
    told.recv().unwrap_or_else(|_| lost())?;
    Ok(thread)
}

fn work<R: Reactor>(
    reactor: std::io::Result<R>,
    engine: Engine,
    wiring: Wiring,
    ready: &Sender<std::io::Result<()>>,
) -> std::io::Result<()> {
    match reactor.and_then(|reactor| Worker::new(reactor, engine, wiring)) {
        Ok(worker) => {
            let _ = ready.send(Ok(()));
            worker.run()
        }
        Err(error) => {
            let _ = ready.send(Err(error));
            Ok(())
        }
    }
}
