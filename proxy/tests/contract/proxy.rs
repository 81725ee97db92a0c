//! One worker on a back end of choice, without a control thread.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    net::SocketAddr,
    os::unix::net::UnixStream,
    path::Path,
    sync::{
        Arc,
        atomic::AtomicBool,
        mpsc::{self, Sender},
    },
    thread::{self, JoinHandle},
    time::Instant,
};

use proxima::{
    client::{Register, bind},
    config::{
        self,
        schema::{Permissions, Source},
    },
    dialect::Dialect,
    engine::{Engine, Facts},
    figures::Figures,
    members::{Here, Member, Registry, copies::Claims},
    near::store::{self, Store},
    reactor::{Epoll, Reactor, Uring},
    route::Compiler,
    worker::{Order, Post, Worker},
};
use socket2::Socket;

/// A running proxy.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    pub(crate) members: Vec<Arc<Member>>,
    orders: Sender<Order>,
    bell: UnixStream,
    thread: Option<JoinHandle<()>>,
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
    /// Serves `route` over the pool `p` of these servers.
    pub(crate) fn start(
        io: &str,
        servers: &[SocketAddr],
        route: &str,
        dialect: &'static dyn Dialect,
    ) -> Self {
        let servers: Vec<String> = servers.iter().map(|address| format!("\"{address}\"")).collect();
        let listener = bind("127.0.0.1:0", &Permissions::default(), 1).unwrap();
        let text = format!(
            "pools: {{p: {{servers: [{}], timeout: 1m, connect_timeout: 1m, eject: {{failures: 0}}}}}}\nroutes: {{main: {route}}}\nlisteners: [{{address: \"{}\", route: main}}]\n",
            servers.join(", "),
            listener.address,
        );
        let config = config::parse(&text, Path::new("contract"))
            .unwrap_or_else(|error| panic!("{error}\n{text}"))
            .config;
        let Source::Static(listed) = config.pools["p"].source.clone() else {
            unreachable!()
        };
        let listed = BTreeMap::from([("p".to_owned(), listed)]);
        let mut registry = Registry::new(Here::new(&[], None));
        let mut compiler = Compiler::new(&config, &listed, &mut registry, dialect, "contract", 1).unwrap();
        let tree = compiler
            .tree(&mut registry, std::slice::from_ref(&listener.address))
            .unwrap()
            .tree;

        let (bell, ear) = UnixStream::pair().unwrap();
        ear.set_nonblocking(true).unwrap();
        let (orders, inbox) = mpsc::channel();
        let limits = config.limits.clone();
        let work = Work {
            dialect,
            limits: limits.clone(),
            ear: Socket::from(std::os::fd::OwnedFd::from(ear)),
            inbox,
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
        let open = listener.sockets.into_iter().map(|socket| (0, socket)).collect();
        let proxy = Self {
            address: listener.address.parse().unwrap(),
            members: tree.members(),
            orders,
            bell,
            thread: Some(thread),
        };
        proxy.order(Order::Swap {
            tree: Box::new(tree),
            limits,
            open,
            close: Vec::new(),
            done,
        });
        told.recv().unwrap();
        proxy
    }

    fn order(&self, order: Order) {
        self.orders.send(order).unwrap();
        (&self.bell).write_all(&[1]).unwrap();
    }

    pub(crate) fn figures(&self) -> Figures {
        let (to, from) = mpsc::channel();
        self.order(Order::Report(to));
        from.recv().unwrap()
    }
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
    dialect: &'static dyn Dialect,
    limits: config::schema::Limits,
    ear: Socket,
    inbox: mpsc::Receiver<Order>,
}

impl Work {
    fn run<R: Reactor>(self, reactor: io::Result<R>) {
        let store = Arc::new(Store::new(store::Limits::default(), [1, 2, 3, 4]));
        let facts = Facts {
            pid: std::process::id(),
            epoch: 0,
            workers: 1,
            worker: 0,
        };
        let register = Arc::new(Register::new(1));
        let claims = Arc::new(Claims::new(1, [1, 2, 3, 4]));
        let engine = Engine::new(self.dialect, self.limits, store, register, claims, facts, 1);
        let (news, _heard) = tokio::sync::mpsc::unbounded_channel();
        let beat = Arc::new(AtomicBool::new(false));
        let post = Post {
            started: Instant::now(),
            orders: self.inbox,
            ear: self.ear,
            news,
            dialect: self.dialect,
            beat,
            colleagues: Vec::new(),
        };
        Worker::new(reactor.unwrap(), engine, post)
            .unwrap()
            .run()
            .unwrap();
    }
}
