//! One worker on a given back end, without a control thread.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    io::{self, Write},
    net::SocketAddr,
    os::unix::net::UnixStream,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
    time::Instant,
};

use proxima::{
    client::{Register, bind},
    config::{
        self,
        schema::{Permissions, Protocol, SocketOptions},
    },
    copies::KeyLocks,
    embedded::store::{self, Store},
    engine::{Engine, Facts, WorkerEvent},
    members::{Member, OwnLocation, Registry},
    metrics::Metrics,
    micros::Micros,
    protocol::{Control, Ending, Protocols},
    reactor::{Epoll, Reactor, Uring},
    route::{CompileError, Compiler, Tree},
    worker::{Order, Wiring, Worker},
};
use socket2::Socket;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// The service of one listener: a route over a pool of its own.
pub(crate) struct Served<'a> {
    pub(crate) protocol: &'static str,
    pub(crate) pool: &'a str,
    pub(crate) servers: Vec<String>,
    pub(crate) route: &'a str,
    /// Of its pool.
    pub(crate) settings: &'a str,
    /// Of the listener.
    pub(crate) listener: &'a str,
}

/// Settings of a pool whose servers may take any time to answer.
pub(crate) const PATIENT: &str = "timeout: 1m, connect_timeout: 1m, eject: {failures: 0}";

/// The protocol in a configuration that takes these settings.
fn like(settings: &str) -> &'static str {
    match settings.contains("dedicated") {
        true => "protocol: redis, ",
        false => "",
    }
}

/// A running proxy.
pub(crate) struct Proxy {
    /// The address of its first listener, and of all listeners.
    pub(crate) address: SocketAddr,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) members: Vec<Arc<Member>>,
    orders: Sender<Order>,
    bell: UnixStream,
    thread: Option<JoinHandle<()>>,
    made: RefCell<Made>,
}

/// What a tree is made from.
struct Made {
    registry: Registry,
    protocols: Protocols,
    /// The protocol and the pool of each listener.
    names: Vec<(&'static str, String)>,
    addresses: Vec<String>,
    text: String,
}

impl Made {
    fn make(&mut self) -> Result<(Tree, config::schema::Limits), CompileError> {
        let text = &self.text;
        let mut config = config::parse(text, Path::new("contract"))
            .unwrap_or_else(|error| panic!("{error}\n{text}"))
            .config;
        // A configuration file can name only protocols that the program speaks.
        for ((protocol, pool), listener) in self.names.iter().zip(&mut config.listeners) {
            listener.protocol = Protocol(protocol);
            listener.server_version = Some("configured".to_owned());
            config.pools.get_mut(pool).unwrap().protocol = Protocol(protocol);
        }
        let pools = config.pools.iter();
        let listed = pools.map(|(name, pool)| (name.clone(), pool.source.fixed().unwrap().to_vec()));
        let listed: BTreeMap<_, _> = listed.collect();
        let registry = &mut self.registry;
        let mut compiler = Compiler::new(&config, &listed, registry, self.protocols, "contract", 1)?;
        let tree = compiler.tree(registry, &self.addresses)?.tree;
        Ok((tree, config.limits))
    }
}

/// The back ends that work here.
pub(crate) fn back_ends() -> Vec<&'static str> {
    match Uring::probe() {
        Ok(()) => vec!["epoll", "io_uring"],
        Err(error) => {
            eprintln!("io_uring does not work here ({error}): tested on epoll alone");
            vec!["epoll"]
        }
    }
}

impl Proxy {
    /// Serves each of these at a listener of its own.
    ///
    /// # Errors
    /// The routes cannot be compiled.
    pub(crate) fn start(io: &str, protocols: Protocols, served: &[Served<'_>]) -> Result<Self, CompileError> {
        Self::limited(io, protocols, served, "{}")
    }

    /// As [`Self::start`], with these limits.
    pub(crate) fn limited(
        io: &str,
        protocols: Protocols,
        served: &[Served<'_>],
        limits: &str,
    ) -> Result<Self, CompileError> {
        let bound = |_: &Served<'_>| {
            bind(
                "127.0.0.1:0",
                &Permissions::default(),
                &SocketOptions::default(),
                1,
            )
            .unwrap()
        };
        let listeners: Vec<_> = served.iter().map(bound).collect();
        let mut text = format!("limits: {limits}\npools:\n");
        for Served {
            pool,
            servers,
            settings,
            ..
        } in served
        {
            text += &format!(
                "  {pool}: {{servers: {servers:?}, {}{settings}}}\n",
                like(settings)
            );
        }
        text += "listeners:\n";
        for (served, bound) in served.iter().zip(&listeners) {
            let Served {
                route,
                listener,
                settings,
                ..
            } = served;
            let (address, like) = (&bound.address, like(settings));
            text += &format!("  - {{address: \"{address}\", {like}route: {route}, {listener}}}\n");
        }
        let names = served
            .iter()
            .map(|served| (served.protocol, served.pool.to_owned()));
        let registry = Registry::new(OwnLocation::new(&[], None));
        let (bell, waker) = UnixStream::pair().unwrap();
        let woken = bell.try_clone().unwrap();
        // A bell that is full has been heard of.
        registry.wakers().add(move || drop((&woken).write(&[1])));
        let addresses: Vec<_> = listeners
            .iter()
            .map(|listener| listener.address.clone())
            .collect();
        let mut made = Made {
            registry,
            protocols,
            names: names.collect(),
            addresses: addresses.clone(),
            text,
        };
        let (tree, limits) = made.make()?;

        waker.set_nonblocking(true).unwrap();
        // This thread makes a worker check time-outs that wants to, as the control thread does. It ends with
        // the worker.
        let mut ring = bell.try_clone().unwrap();
        let tick = Arc::new(AtomicBool::new(false));
        let wanted = Arc::clone(&tick);
        thread::spawn(move || {
            while Arc::strong_count(&wanted) > 1 {
                if wanted.load(Relaxed) && ring.write_all(&[1]).is_err() {
                    break;
                }
                thread::sleep(Duration::from_millis(20));
            }
        });
        let (orders, inbox) = mpsc::channel();
        let (events, heard) = tokio::sync::mpsc::unbounded_channel();
        let process = Process {
            orders: orders.clone(),
            bell: bell.try_clone().unwrap(),
        };
        thread::spawn(move || process.answer(heard));
        let work = Work {
            tick,
            limits: limits.clone(),
            waker: Socket::from(std::os::fd::OwnedFd::from(waker)),
            inbox,
            events,
        };
        let uring = io == "io_uring";
        let thread = thread::spawn(move || {
            if uring {
                work.run(Uring::new())
            } else {
                work.run(Epoll::new())
            }
        });
        let (done, told) = mpsc::channel();
        let numbered = listeners.into_iter().enumerate();
        let open = numbered.flat_map(|(number, listener)| {
            listener
                .sockets
                .into_iter()
                .map(move |socket| (number as u16, socket))
        });
        let open = open.collect();
        let addresses: Vec<SocketAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let proxy = Self {
            address: addresses[0],
            addresses,
            members: tree.members(),
            orders,
            bell,
            thread: Some(thread),
            made: RefCell::new(made),
        };
        proxy.order(Order::Swap {
            tree: Box::new(tree),
            limits,
            open,
            close: Vec::new(),
            done,
        });
        told.recv().unwrap();
        Ok(proxy)
    }

    /// Serves by a file in which this text has become that one.
    pub(crate) fn reload(&self, from: &str, to: &str) {
        let mut made = self.made.borrow_mut();
        assert!(made.text.contains(from), "{}", made.text);
        made.text = made.text.replace(from, to);
        let (tree, limits) = made.make().unwrap();
        let (done, told) = mpsc::channel();
        self.order(Order::Swap {
            tree: Box::new(tree),
            limits,
            open: Vec::new(),
            close: Vec::new(),
            done,
        });
        told.recv().unwrap();
    }

    pub(crate) fn order(&self, order: Order) {
        self.orders.send(order).unwrap();
        (&self.bell).write_all(&[1]).unwrap();
    }

    /// Waits until the worker has read what clients had sent before. Each report takes another turn of the
    /// worker: a connection is accepted in one and read in the next.
    pub(crate) fn has_read(&self) {
        for _ in 0..4 {
            self.metrics();
        }
    }

    /// The dedicated lanes that clients have now.
    pub(crate) fn owned_lanes(&self) -> u64 {
        let metrics = self.metrics();
        metrics.members.iter().map(|member| member.dedicated).sum()
    }

    pub(crate) fn metrics(&self) -> Metrics {
        let (to, from) = mpsc::channel();
        self.order(Order::Report(to));
        from.recv().unwrap()
    }
}

/// Waits until this is so.
pub(crate) fn becomes(what: &str, is_so: impl Fn() -> bool) {
    let so = (0..2000).any(|_| {
        thread::sleep(Duration::from_millis(5));
        is_so()
    });
    assert!(so, "{what}");
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.order(Order::Stop);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(
            thread::panicking() || matches!(ended, Some(Ok(()))),
            "the worker panicked"
        );
    }
}

struct Work {
    tick: Arc<AtomicBool>,
    limits: config::schema::Limits,
    waker: Socket,
    inbox: mpsc::Receiver<Order>,
    events: UnboundedSender<WorkerEvent>,
}

/// What the control thread does for clients.
struct Process {
    orders: Sender<Order>,
    bell: UnixStream,
}

impl Process {
    fn order(&self, order: Order) {
        // The worker may have ended.
        let _ = self.orders.send(order);
        let _ = (&self.bell).write(&[1]);
    }

    fn answer(self, mut heard: UnboundedReceiver<WorkerEvent>) {
        while let Some(event) = heard.blocking_recv() {
            let WorkerEvent::Question(question) = event else {
                continue;
            };
            let mut answer = Vec::new();
            let asking = Asking(&self, Arc::clone(&question.login), question.listener);
            question
                .protocol
                .consulted(&question.message, &asking, &mut answer);
            let slot = question.slot;
            self.order(Order::Answer {
                slot,
                answer: answer.into(),
            });
        }
    }
}

/// The process for a client with this login, of this listener.
struct Asking<'a>(&'a Process, Arc<[u8]>, u16);

impl Control for Asking<'_> {
    fn cancel(&self, session: u64, ending: Ending) -> bool {
        let (done, told) = mpsc::channel();
        let (by, listener) = (Arc::clone(&self.1), self.2);
        self.0.order(Order::Cancel {
            ending,
            session,
            by,
            listener,
            done,
        });
        told.recv().is_ok_and(|agreed| agreed)
    }
}

impl Work {
    fn run<R: Reactor>(self, reactor: io::Result<R>) {
        let store = Arc::new(Store::new(store::Limits::default(), [1, 2, 3, 4]));
        let facts = Facts {
            pid: std::process::id(),
            start: Micros::ZERO,
            workers: 1,
            worker: 0,
        };
        let register = Arc::new(Register::new(1));
        let locks = Arc::new(KeyLocks::new(1, [1, 2, 3, 4]));
        let engine = Engine::new(self.limits, store, register, locks, facts, 1);
        let wiring = Wiring {
            started: Instant::now(),
            orders: self.inbox,
            waker: self.waker,
            events: self.events,
            tick: self.tick,
            peers: Vec::new(),
        };
        Worker::new(reactor.unwrap(), engine, wiring)
            .unwrap()
            .run()
            .unwrap();
    }
}
