//! The worker threads, and how orders reach them.

use std::{
    io::Write,
    os::unix::net::UnixStream,
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
    dialect::Dialect,
    engine::{Engine, News},
    figures::Figures,
    reactor::{Epoll, Io, Reactor, Uring},
    worker::{Order, Worker},
};

/// Makes an engine; called on its worker's thread, as what it makes cannot leave it.
pub(super) type Make = Box<dyn FnOnce() -> Engine + Send>;

/// All workers.
pub(super) struct Workers {
    handles: Vec<Handle>,
}

struct Handle {
    orders: Mutex<Sender<Order>>,
    /// A byte through it wakes the worker.
    bell: UnixStream,
    /// It has time-outs to look at.
    beat: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Workers {
    /// Starts a thread for each engine.
    pub(super) fn start(
        engines: Vec<Make>,
        io: Io,
        started: Instant,
        news: &UnboundedSender<News>,
        dialect: &'static dyn Dialect,
    ) -> std::io::Result<Self> {
        let handles = engines
            .into_iter()
            .enumerate()
            .map(|(number, engine)| Handle::start(number, engine, io, started, news.clone(), dialect))
            .collect::<Result<_, _>>()?;
        Ok(Self { handles })
    }

    pub(super) fn len(&self) -> usize {
        self.handles.len()
    }

    /// Gives each worker its own order.
    pub(super) fn order(&self, mut make: impl FnMut(usize) -> Order) {
        for (number, handle) in self.handles.iter().enumerate() {
            let orders = handle.orders.lock().unwrap_or_else(PoisonError::into_inner);
            // A worker that has ended hears no orders; its thread's end is reported where it is joined.
            let _ = orders.send(make(number));
            let _ = (&handle.bell).write(&[1]);
        }
    }

    /// Wakes the workers that have time-outs to look at.
    pub(super) fn beat(&self) {
        for handle in self.handles.iter().filter(|handle| handle.beat.load(Relaxed)) {
            // A full pipe means that it has not yet heard the last ones.
            let _ = (&handle.bell).write(&[0]);
        }
    }

    pub(super) fn figures(&self) -> Figures {
        let (to, from): (_, Receiver<Figures>) = mpsc::channel();
        self.order(|_| Order::Report(to.clone()));
        drop(to);
        let mut sum = Figures::default();
        from.iter().for_each(|figures| sum.add(&figures));
        sum
    }

    /// Has a thread ended that should not have?
    pub(super) fn any_ended(&self) -> bool {
        self.handles.iter().any(Handle::has_ended)
    }

    /// Have all threads ended?
    pub(super) fn ended(&self) -> bool {
        self.handles.iter().all(Handle::has_ended)
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

impl Handle {
    fn has_ended(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn start(
        number: usize,
        engine: Make,
        io: Io,
        started: Instant,
        news: UnboundedSender<News>,
        dialect: &'static dyn Dialect,
    ) -> std::io::Result<Self> {
        let (orders, inbox) = mpsc::channel();
        let (bell, ear) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ear.set_nonblocking(true)?;
        let ear = Socket::from(std::os::fd::OwnedFd::from(ear));
        // A ring must be made by the thread that uses it; whether that worked is told before the start goes on.
        let (ready, told) = mpsc::channel();
        let beat = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&beat);
        let thread = thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(move || {
                let post = Post {
                    engine: engine(),
                    started,
                    inbox,
                    ear,
                    news,
                    dialect,
                    ready,
                    beat: heard,
                };
                let result = match io {
                    Io::Uring => post.work(Uring::new()),
                    _ => post.work(Epoll::new()),
                };
                if let Err(error) = result {
                    tracing::error!(worker = number, %error, "worker ended");
                }
            })?;
        told.recv().unwrap_or_else(|_| {
            Err(std::io::Error::other(
                "the worker ended while it was being started",
            ))
        })?;
        Ok(Self {
            orders: Mutex::new(orders),
            bell,
            beat,
            thread: Mutex::new(Some(thread)),
        })
    }
}

struct Post {
    engine: Engine,
    started: Instant,
    inbox: Receiver<Order>,
    ear: Socket,
    news: UnboundedSender<News>,
    dialect: &'static dyn Dialect,
    ready: Sender<std::io::Result<()>>,
    beat: Arc<AtomicBool>,
}

impl Post {
    fn work<R: Reactor>(self, reactor: std::io::Result<R>) -> std::io::Result<()> {
        let worker = reactor.and_then(|reactor| {
            Worker::new(
                reactor,
                self.engine,
                self.started,
                self.inbox,
                self.ear,
                self.news,
                self.dialect,
                self.beat,
            )
        });
        match worker {
            Ok(worker) => {
                let _ = self.ready.send(Ok(()));
                worker.run()
            }
            Err(error) => {
                let _ = self.ready.send(Err(error));
                Ok(())
            }
        }
    }
}
