//! A worker: one thread, one event loop, its own clients, lanes and tree.
//!
//! ```text
//!  ┌▶ wait ─▶ events ─▶ engine (bytes in, bytes and wishes out) ─▶ timers ─▶ clients again ─▶ wishes ─▶ flush ─┐
//!  └──────────────────────────────────────────── one turn ────────────────────────────────────────────────────┘
//! ```
//!
//! Every connection that got bytes in a turn is flushed once at its end, so that many clients' requests leave in one write.
#![allow(
    clippy::disallowed_methods,
    reason = "the one place where a worker reads the clock, once a turn"
)]

use std::{
    io::{self, Write},
    os::unix::net::UnixStream,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, Sender},
    },
    time::{Duration, Instant},
};

use socket2::{Domain, Socket};
use tokio::sync::mpsc::UnboundedSender;

use crate::{
    config::schema::Limits,
    dialect::Dialect,
    engine::{Engine, News, Peer},
    figures::Figures,
    near::embedded::Connections,
    reactor::{Conn, Event, Expect, Reactor},
    route::Tree,
};

/// What the control thread asks of a worker.
pub enum Order {
    /// Serve new requests by this tree, and these limits. Listeners are opened and closed by number.
    Swap {
        tree: Box<Tree>,
        limits: Limits,
        open: Vec<(u16, Socket)>,
        close: Vec<u16>,
        done: Sender<()>,
    },
    /// Take over this client, accepted by another worker.
    Adopt { listener: u16, socket: Socket },
    /// Hand out a copy of the figures.
    Report(Sender<Figures>),
    /// Take no more clients, close each as soon as nothing is due to it, end when there are none.
    Drain,
    /// End now.
    Stop,
}

/// Where a worker's orders are put; from any thread.
#[derive(Clone)]
pub struct Mailbox {
    pub orders: Sender<Order>,
    /// A byte through it wakes the worker.
    pub bell: Arc<UnixStream>,
}

impl Mailbox {
    /// A worker that has ended hears no orders; its thread's end is reported where it is joined.
    pub fn order(&self, order: Order) {
        let _ = self.orders.send(order);
        self.ring();
    }

    /// Wakes the worker. A full pipe means that it has not yet heard the last ones.
    pub fn ring(&self) {
        let _ = (&*self.bell).write(&[0]);
    }
}

/// What connects a worker with the rest of the process.
pub struct Post {
    /// When the process's clock was 0.
    pub started: Instant,
    pub orders: Receiver<Order>,
    /// Has bytes when there are orders or time-outs to look at.
    pub ear: Socket,
    pub news: UnboundedSender<News>,
    pub dialect: &'static dyn Dialect,
    /// Set while there are time-outs to look at: ring now and then.
    pub beat: Arc<AtomicBool>,
    /// All workers' mailboxes, by number.
    pub colleagues: Vec<Mailbox>,
}

/// Lanes are looked at for time-outs this often while anything waits for a server.
const LANE_CHECK: u64 = 50_000;
/// Clients are looked at for idleness this often.
const CLIENT_CHECK: u64 = 1_000_000;

const CLIENT: u64 = 0;
const LANE: u64 = 1;
const LISTENER: u64 = 2;
const MAILBOX: u64 = 3;

/// One worker.
pub struct Worker<R> {
    reactor: R,
    engine: Engine,
    started: Instant,
    orders: Receiver<Order>,
    news: UnboundedSender<News>,
    listeners: Vec<(u16, Conn)>,
    /// Listeners that all workers accept from.
    shared: Vec<u16>,
    /// All workers, by number.
    colleagues: Vec<Mailbox>,
    dialect: &'static dyn Dialect,
    /// Peers that somebody waits for to take what they were sent.
    watched: Vec<Peer>,
    next_lane_check: u64,
    next_client_check: u64,
    plain: Vec<u8>,
    /// Wake me now and then: there are time-outs to look at.
    beat: Arc<AtomicBool>,
}

impl<R: Reactor> Worker<R> {
    /// A worker at its post.
    ///
    /// # Errors
    /// The reactor refuses a socket.
    pub fn new(mut reactor: R, engine: Engine, post: Post) -> io::Result<Self> {
        let Post {
            started,
            orders,
            ear,
            news,
            dialect,
            beat,
            colleagues,
        } = post;
        reactor.add(MAILBOX << 62, ear, Expect::Small)?;
        Ok(Self {
            reactor,
            engine,
            started,
            orders,
            news,
            listeners: Vec::new(),
            shared: Vec::new(),
            colleagues,
            dialect,
            watched: Vec::new(),
            next_lane_check: 0,
            next_client_check: 0,
            plain: Vec::new(),
            beat,
        })
    }

    /// Works until told to stop.
    ///
    /// # Errors
    /// Waiting for events fails: nothing can be done any more.
    pub fn run(mut self) -> io::Result<()> {
        loop {
            let timeout = self.timeout();
            self.reactor.wait(timeout)?;
            self.engine.now = self.started.elapsed().as_micros() as u64;
            while let Some(event) = self.reactor.next() {
                if !self.event(event) {
                    return Ok(());
                }
            }
            self.engine.run_timers();
            self.check();
            self.settle_watched();
            self.serve_again();
            self.fulfil();
            if self.engine.draining && self.engine.clients.is_empty() {
                return Ok(());
            }
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let engine = &self.engine;
        if !engine.wishes.again.is_empty() || !self.watched.is_empty() {
            return Some(Duration::ZERO);
        }
        // Time-outs are looked at on the control thread's beat: arming a timer for each wait would cost every request.
        let wants_beat = engine.waits() || !engine.clients.is_empty();
        if wants_beat != self.beat.load(Relaxed) {
            self.beat.store(wants_beat, Relaxed);
        }
        engine
            .timers
            .peek()
            .map(|timer| Duration::from_micros(timer.due.saturating_sub(engine.now)))
    }

    /// False: stop.
    fn event(&mut self, event: Event) -> bool {
        match event {
            Event::Data { tag, buffer } => {
                if kind(tag) == MAILBOX {
                    self.reactor.recycle(buffer);
                    return self.take_orders();
                }
                self.data(tag, &buffer);
                self.reactor.recycle(buffer);
            }
            Event::Accepted { tag, socket } => self.accept(number(tag) as u16, socket),
            Event::Connected { tag } => {
                let (index, generation) = (number(tag), generation(tag));
                self.greet(Peer::Lane { index, generation });
                self.engine.lane_connected(index, generation);
            }
            Event::Eof { tag } => match kind(tag) {
                CLIENT => self.engine.client_eof(number(tag), generation(tag)),
                LANE => self.engine.lane_failed(number(tag), generation(tag), None),
                MAILBOX => return false,
                _ => {}
            },
            Event::Failed { tag, error } => match kind(tag) {
                CLIENT => self.engine.client_failed(number(tag), generation(tag)),
                LANE => self
                    .engine
                    .lane_failed(number(tag), generation(tag), Some(&error)),
                _ => {}
            },
            Event::Sent { tag } => {
                let (index, generation) = (number(tag), generation(tag));
                let peer = if kind(tag) == LANE {
                    Peer::Lane { index, generation }
                } else {
                    Peer::Client { index, generation }
                };
                self.drained(peer);
            }
        }
        true
    }

    /// Bytes from a client or server, through its transform where it has one.
    fn data(&mut self, tag: u64, bytes: &[u8]) {
        let (index, generation) = (number(tag), generation(tag));
        let is_lane = kind(tag) == LANE;
        let stream = match is_lane {
            true => self
                .engine
                .lanes
                .get_mut(index as usize)
                .filter(|l| l.generation == generation)
                .map(|l| &mut l.stream),
            false => self
                .engine
                .clients
                .get_mut(index as usize)
                .filter(|c| c.generation == generation)
                .map(|c| &mut c.stream),
        };
        let Some(stream) = stream else { return };
        let Some(transform) = &mut stream.transform else {
            return match is_lane {
                true => self.engine.lane_bytes(index, generation, bytes),
                false => self.engine.client_bytes(index, generation, bytes),
            };
        };
        let mut plain = std::mem::take(&mut self.plain);
        let opened = transform.open(bytes, &mut plain, &mut stream.wire);
        let answers = !stream.wire.is_empty();
        match (opened, is_lane) {
            (Err(error), true) => self.engine.lane_failed(index, generation, Some(&error)),
            (Err(_), false) => self.engine.client_failed(index, generation),
            (Ok(()), true) => self.engine.lane_bytes(index, generation, &plain),
            (Ok(()), false) => self.engine.client_bytes(index, generation, &plain),
        }
        if answers {
            let peer = if is_lane {
                Peer::Lane { index, generation }
            } else {
                Peer::Client { index, generation }
            };
            self.engine.flush_later(peer);
        }
        plain.clear();
        self.plain = plain;
    }

    /// A client has come. On a Unix socket all workers accept, and the first to wake would take them all: it goes to the one
    /// with the fewest.
    fn accept(&mut self, listener: u16, socket: Socket) {
        if self.shared.contains(&listener) {
            let least = self.engine.register.least_busy();
            if least != self.engine.facts.worker
                && let Some(colleague) = self.colleagues.get(least)
            {
                self.engine.register.expect(least);
                return colleague.order(Order::Adopt { listener, socket });
            }
        }
        self.adopt(listener, socket);
    }

    fn adopt(&mut self, listener: u16, socket: Socket) {
        if self.engine.register.current() >= self.engine.limits.clients as u64 {
            self.engine.figures.clients.over_limit += 1;
            let mut line = Vec::new();
            let outcome = proxima_wire::message::Outcome::Overloaded;
            self.dialect
                .error(outcome, "too many open connections", &mut line);
            // One line if its socket takes it; nobody waits for that.
            let _ = (&socket).write(&line);
            return;
        }
        let peer = self.engine.open_client(listener, self.dialect);
        self.register(listener, peer, &socket);
        match self.reactor.add(tag(peer), socket, Expect::Small) {
            Ok(conn) => {
                self.engine.attach(peer, conn);
                self.greet(peer);
            }
            Err(_) => {
                if let Peer::Client { index, generation } = peer {
                    self.engine.client_failed(index, generation);
                }
            }
        }
    }

    fn register(&mut self, listener: u16, peer: Peer, socket: &Socket) {
        let Peer::Client { index, .. } = peer else { return };
        let listed = self.engine.serves_store(listener);
        let address = listed.then(|| {
            let peer = socket.peer_addr().ok().and_then(|address| address.as_socket());
            let own = socket.local_addr().ok().and_then(|address| address.as_socket());
            let text = |address: Option<std::net::SocketAddr>| match address {
                Some(address) if address.is_ipv6() => format!("tcp6:{address}"),
                Some(address) => format!("tcp:{address}"),
                None => "unix:".into(),
            };
            (text(peer), text(own).into())
        });
        if let Some(client) = self.engine.clients.get_mut(index as usize) {
            client.listed = listed;
        }
        self.engine
            .register
            .opened(self.engine.facts.worker, index, address);
    }

    /// A transform that begins the conversation does so now.
    fn greet(&mut self, peer: Peer) {
        if let Some(stream) = self.engine.stream(peer)
            && let Some(transform) = &mut stream.transform
            && transform.seal(&[], &mut stream.wire).is_ok()
            && !stream.wire.is_empty()
        {
            self.engine.flush_later(peer);
        }
    }

    fn take_orders(&mut self) -> bool {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Swap {
                    tree,
                    limits,
                    open,
                    close,
                    done,
                } => {
                    self.engine.tree = Rc::new(*tree);
                    self.engine.limits = limits;
                    self.engine.share_memory();
                    self.engine.retire_lanes();
                    for (number, socket) in open {
                        if socket.domain().is_ok_and(|domain| domain == Domain::UNIX) {
                            self.shared.push(number);
                        }
                        if let Ok(conn) = self.reactor.listen(LISTENER << 62 | u64::from(number), socket) {
                            self.listeners.push((number, conn));
                        }
                    }
                    for number in close {
                        self.close_listener(Some(number));
                    }
                    // The control thread may have gone; that is its own matter.
                    let _ = done.send(());
                }
                Order::Adopt { listener, socket } => {
                    self.engine.register.arrived(self.engine.facts.worker);
                    self.adopt(listener, socket);
                }
                Order::Report(to) => {
                    let mut figures = self.engine.figures.clone();
                    figures.open_clients = self.engine.clients.len() as u64;
                    figures.open_lanes = self.engine.lanes.len() as u64;
                    figures.in_flight = self.engine.in_flight() as u64;
                    let _ = to.send(figures);
                }
                Order::Drain => {
                    self.close_listener(None);
                    self.engine.draining = true;
                    let all: Vec<Peer> = self
                        .engine
                        .clients
                        .iter()
                        .map(|(index, client)| Peer::Client {
                            index: index as u32,
                            generation: client.generation,
                        })
                        .collect();
                    all.into_iter().for_each(|peer| self.engine.flush_later(peer));
                }
                Order::Stop => return false,
            }
        }
        true
    }

    fn close_listener(&mut self, which: Option<u16>) {
        let reactor = &mut self.reactor;
        self.listeners.retain(|&(number, conn)| {
            let keep = which.is_some_and(|which| which != number);
            if !keep {
                reactor.close(conn);
            }
            keep
        });
    }

    fn check(&mut self) {
        let now = self.engine.now;
        if now >= self.next_lane_check {
            self.next_lane_check = now + LANE_CHECK;
            self.engine.check_lanes();
        }
        if now >= self.next_client_check {
            self.next_client_check = now + CLIENT_CHECK;
            let reactor = &self.reactor;
            self.engine.check_clients(&|conn| reactor.backlog(conn));
            self.engine.retire_lanes();
        }
    }

    fn serve_again(&mut self) {
        // Clients that use up their budget again are put on the list for the next turn.
        for (index, generation) in std::mem::take(&mut self.engine.wishes.again) {
            self.engine.serve_again(index, generation);
        }
    }

    /// Has a watched peer taken what it was sent?
    fn settle_watched(&mut self) {
        for peer in std::mem::take(&mut self.watched) {
            let conn = self.engine.stream(peer).and_then(|stream| stream.conn);
            if conn.is_some_and(|conn| self.reactor.backlog(conn) == 0) {
                self.drained(peer);
            }
        }
    }

    fn drained(&mut self, peer: Peer) {
        match peer {
            Peer::Client { index, generation } => {
                self.engine.client_drained(index, generation);
                self.engine.flush_later(peer);
            }
            Peer::Lane { index, generation } => self.engine.lane_drained(index, generation),
        }
    }

    /// Does what the engine has asked for in this turn.
    fn fulfil(&mut self) {
        while !self.engine.wishes.connect.is_empty() {
            for index in std::mem::take(&mut self.engine.wishes.connect) {
                self.connect(index);
            }
        }
        let mut flush = std::mem::take(&mut self.engine.wishes.flush);
        for peer in flush.drain(..) {
            self.flush(peer);
        }
        self.engine.wishes.flush = flush;
        for (conn, pause) in std::mem::take(&mut self.engine.wishes.pause) {
            if pause {
                self.reactor.pause(conn)
            } else {
                self.reactor.resume(conn)
            }
        }
        for (conn, abort) in std::mem::take(&mut self.engine.wishes.close) {
            if abort {
                self.reactor.abort(conn)
            } else {
                self.reactor.close(conn)
            }
        }
        for news in self.engine.wishes.news.drain(..) {
            let _ = self.news.send(news);
        }
    }

    fn connect(&mut self, index: u32) {
        let Some(lane) = self.engine.lanes.get(index as usize) else {
            return;
        };
        if lane.stream.conn.is_some() {
            // Its place was given again in the same turn: it stands on the list twice.
            return;
        }
        let peer = Peer::Lane {
            index,
            generation: lane.generation,
        };
        match self.reactor.connect(tag(peer), &lane.member.socket) {
            Ok(conn) => self.engine.attach(peer, conn),
            Err(error) => self.engine.lane_failed(index, lane.generation, Some(&error)),
        }
    }

    fn flush(&mut self, peer: Peer) {
        let Some(stream) = self.engine.stream(peer) else {
            return;
        };
        stream.dirty = false;
        let Some(conn) = stream.conn else { return };
        if self.engine.is_connecting(peer) {
            // A login comes before the requests that wait.
            return;
        }
        let Some(stream) = self.engine.stream(peer) else {
            return;
        };
        if self.reactor.backlog(conn) > 0 {
            return;
        }
        if let Some(transform) = &mut stream.transform {
            if !stream.out.is_empty()
                && let Err(error) = transform.seal(&stream.out, &mut stream.wire)
            {
                return match peer {
                    Peer::Client { index, generation } => self.engine.client_failed(index, generation),
                    Peer::Lane { index, generation } => {
                        self.engine.lane_failed(index, generation, Some(&error))
                    }
                };
            }
            stream.out.clear();
        }
        let bytes = if stream.transform.is_some() {
            &mut stream.wire
        } else {
            &mut stream.out
        };
        let sent = !bytes.is_empty();
        if sent {
            self.reactor.send(conn, bytes);
        }
        self.after_flush(peer, conn, sent);
    }

    /// Closes a client that is done, and remembers whose progress matters: of those that were sent something, or looking
    /// after them would never end.
    fn after_flush(&mut self, peer: Peer, conn: Conn, sent: bool) {
        let backlog = self.reactor.backlog(conn);
        match peer {
            Peer::Client { index, .. } => {
                let Some(client) = self.engine.clients.get(index as usize) else {
                    return;
                };
                let finished = self.engine.is_finished(client);
                if finished && backlog == 0 {
                    self.engine.close_client(index, false);
                } else if finished || sent && (client.stalled || self.engine.holds_lanes()) {
                    self.watched.push(peer);
                }
            }
            Peer::Lane { index, .. } => {
                if sent
                    && self
                        .engine
                        .lanes
                        .get(index as usize)
                        .is_some_and(|lane| lane.uploading.is_some())
                {
                    self.watched.push(peer);
                }
            }
        }
    }
}

fn tag(peer: Peer) -> u64 {
    match peer {
        Peer::Client { index, generation } => CLIENT << 62 | u64::from(generation) << 32 | u64::from(index),
        Peer::Lane { index, generation } => LANE << 62 | u64::from(generation) << 32 | u64::from(index),
    }
}

fn kind(tag: u64) -> u64 {
    tag >> 62
}

fn number(tag: u64) -> u32 {
    tag as u32
}

fn generation(tag: u64) -> u32 {
    (tag >> 32) as u32 & 0x3fff_ffff
}
