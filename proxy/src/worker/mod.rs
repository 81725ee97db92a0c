//! A worker: one thread, one event loop, its own clients, lanes and tree.
//!
//! ```text
//!  ┌▶ wait ─▶ events ─▶ engine (bytes in, actions out) ─▶ timers ─▶ clients again ─▶ actions ─▶ flush ─┐
//!  └──────────────────────────────────────── one turn ────────────────────────────────────────────────┘
//! ```
//!
//! Every connection that was given bytes in a turn is flushed once at the end of the turn, so that the
//! requests of many clients leave in one write.
#![allow(
    clippy::disallowed_methods,
    reason = "the one place where a worker reads the clock, once a turn"
)]

mod accept;
mod fleet;
mod flush;
mod handshake_limits;
mod idle;
mod orders;
mod process;

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::Receiver,
    },
    time::{Duration, Instant},
};

use socket2::{Socket, TcpKeepalive};
use tokio::sync::mpsc::UnboundedSender;

pub use self::{
    fleet::{FleetOrder, boot_time},
    orders::{Mailbox, Order},
};
use self::{
    handshake_limits::Handshakes,
    idle::{Idle, Work},
};
use crate::{
    config::schema::KeepAlive,
    engine::{Endpoint, Engine, LaneId, WorkerEvent},
    micros::Micros,
    protocol::Handshake,
    reactor::{Conn, Event, Expect, Reactor, give_back},
    table::Id,
    tls::Failure,
};

/// The ends of the queues between a worker and the rest of the process.
pub struct Wiring {
    /// The instant at which the clock of the process was 0.
    pub started: Instant,
    /// Orders to this worker.
    pub orders: Receiver<Order>,
    /// The waker: it has bytes when there are orders or time-outs to look at.
    pub waker: Socket,
    /// Events for the control thread.
    pub events: UnboundedSender<WorkerEvent>,
    /// The worker sets it while there are time-outs to look at: the control thread then wakes it at each
    /// tick.
    pub tick: Arc<AtomicBool>,
    /// The mailboxes of all workers, by number.
    pub peers: Vec<Mailbox>,
}

/// Lanes are checked for time-outs this often while anything waits for a server.
const LANE_CHECK: Micros = Micros::millis(50);
/// The prefetch runs at most this many events before the event that is served.
const LOOKAHEAD: usize = 4;
/// Clients are checked for idleness this often.
const CLIENT_CHECK: Micros = Micros::secs(1);

const CLIENT: u64 = 0;
const LANE: u64 = 1;
const LISTENER: u64 = 2;
const LINK: u64 = 3;
/// The tag of the mailbox: that of the last of all links, which there never is.
const MAILBOX: u64 = u64::MAX;

/// One worker.
pub struct Worker<R> {
    /// Events of this turn that the prefetch has seen and that are not handled yet.
    upcoming: VecDeque<Event>,
    reactor: R,
    engine: Engine,
    started: Instant,
    orders: Receiver<Order>,
    events: UnboundedSender<WorkerEvent>,
    listeners: Vec<(u16, Conn)>,
    /// Listeners that all workers accept from.
    shared: Vec<u16>,
    /// The listeners are paused: new clients wait in the queues of the kernel until there are descriptors for
    /// them.
    full: bool,
    /// A listener has failed to accept since the last tick.
    cannot_accept: bool,
    /// The mailboxes of all workers, by number.
    peers: Vec<Mailbox>,
    /// Endpoints that others wait for until they have taken what they were sent.
    watched: Vec<Endpoint>,
    handshakes: Handshakes,
    next_lane_check: Micros,
    next_client_check: Micros,
    /// Lanes without use may be left: a client or another tree has come since they were closed.
    has_useless_lanes: bool,
    idle: Idle,
    /// Scratch space for bytes that a transform has opened.
    plain: Vec<u8>,
    /// Set while there are time-outs to look at: the control thread then wakes this worker at each tick.
    tick: Arc<AtomicBool>,
}

impl<R: Reactor> Worker<R> {
    /// A worker with its ends of the queues.
    ///
    /// # Errors
    /// The reactor refuses a socket.
    pub fn new(mut reactor: R, engine: Engine, wiring: Wiring) -> io::Result<Self> {
        let Wiring {
            started,
            orders,
            waker,
            events,
            tick,
            peers,
        } = wiring;
        reactor.add(MAILBOX, waker, Expect::Small)?;
        Ok(Self {
            upcoming: VecDeque::with_capacity(LOOKAHEAD),
            reactor,
            engine,
            started,
            orders,
            events,
            listeners: Vec::new(),
            shared: Vec::new(),
            full: false,
            cannot_accept: false,
            peers,
            watched: Vec::new(),
            handshakes: Handshakes::default(),
            next_lane_check: Micros::ZERO,
            next_client_check: Micros::ZERO,
            has_useless_lanes: false,
            idle: Idle::default(),
            plain: Vec::new(),
            tick,
        })
    }

    /// Works until it is told to stop.
    ///
    /// # Errors
    /// Waiting for events fails: nothing can be done any more.
    pub fn run(mut self) -> io::Result<()> {
        self.work()?;
        let unanswered = self.engine.servers.leaves_unanswered();
        let events = self.engine.actions.events.drain(..);
        for event in events.chain([WorkerEvent::Ended { unanswered }]) {
            // A control thread that has ended needs no events.
            let _ = self.events.send(event);
        }
        Ok(())
    }

    fn work(&mut self) -> io::Result<()> {
        loop {
            let timeout = self.timeout();
            self.reactor.wait(timeout)?;
            self.engine.now = self.started.elapsed().into();
            if self.engine.is_in_fleet() {
                self.engine.begin_turn(boot_time());
            }
            if self.handshakes.wait() {
                self.go_on_with_handshakes();
            }
            while let Some(event) = self.next() {
                if !self.event(event) {
                    return Ok(());
                }
            }
            self.engine.run_timers();
            self.engine.check_openings();
            self.engine.release_parked();
            self.check();
            self.accept_again();
            self.settle_watched();
            self.serve_again();
            self.engine.read_on();
            self.apply_actions();
        }
    }

    /// The next event. The prefetch looks at those behind it as long as they are requests to the store or to
    /// the near cache, so that their memory is on its way while other events are handled.
    fn next(&mut self) -> Option<Event> {
        let prefetches = self.engine.tree.has_store() || self.engine.near.counts();
        while self.upcoming.len() < LOOKAHEAD {
            let Some(event) = self.reactor.next() else { break };
            let prefetched = prefetches && self.prefetch(&event);
            if !prefetched && self.upcoming.is_empty() {
                return Some(event);
            }
            self.upcoming.push_back(event);
            if !prefetched {
                break;
            }
        }
        self.upcoming.pop_front()
    }

    fn prefetch(&mut self, event: &Event) -> bool {
        match event {
            Event::Data { tag, buffer } if kind(*tag) == CLIENT => {
                self.engine.prefetch(Id::from_bits(*tag), buffer)
            }
            _ => false,
        }
    }

    fn work_done(&self) -> Work {
        let traffic = &self.engine.metrics.client_traffic;
        Work {
            bytes: traffic.received + traffic.sent,
            clients: self.engine.clients.len(),
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let engine = &self.engine;
        let is_behind = engine.has_woken_lanes() || self.handshakes.wait();
        if is_behind || !engine.actions.again.is_empty() || !self.watched.is_empty() {
            return Some(Duration::ZERO);
        }
        // The tick of the control thread checks time-outs: arming a timer for each wait would cost every
        // request.
        let wants_tick = engine.waits()
            || !engine.clients.is_empty()
            || self.has_useless_lanes
            || self.idle.is_ahead(self.work_done())
            || self.full
            || engine.is_in_fleet();
        if wants_tick != self.tick.load(Relaxed) {
            self.tick.store(wants_tick, Relaxed);
            // Nothing else will make it look at the time before the next client comes.
            engine.tell_counts();
        }
        engine.timers.next_in(engine.now)
    }

    /// Handles an event. Returns `false` if the worker is to stop.
    fn event(&mut self, event: Event) -> bool {
        match event {
            Event::Data { tag, buffer } => {
                if tag == MAILBOX {
                    self.reactor.recycle(buffer);
                    return self.take_orders();
                }
                self.data(tag, &buffer);
                self.pass(&buffer);
                self.reactor.recycle(buffer);
                if !self.engine.actions.pause.is_empty() {
                    // A connection that is to be held back is not read once more in this turn.
                    self.apply_pauses();
                }
            }
            Event::Accepted { tag, socket, address } => self.accept(number(tag) as u16, socket, address),
            Event::Connected { tag } => {
                let lane = Id::from_bits(tag);
                self.note_address(lane);
                // The login begins after the handshake.
                if self.greet(Endpoint::Lane(lane)) != Handshake::UnderWay {
                    self.engine.lane_connected(lane);
                }
            }
            Event::Eof { tag: MAILBOX } => return false,
            Event::Eof { tag } => self.end(endpoint(tag)),
            Event::Failed { tag, error } => match kind(tag) {
                CLIENT => self.engine.client_failed(Id::from_bits(tag)),
                LANE => self.engine.lane_failed(Id::from_bits(tag), Some(&error)),
                LISTENER => self.cannot_accept(&error),
                LINK => self.engine.link_failed(Id::from_bits(tag), Some(&error)),
                _ => {}
            },
            Event::Sent { tag } => {
                let endpoint = endpoint(tag);
                self.drained(endpoint);
            }
        }
        true
    }

    /// Hands bytes of a client or server to the engine, through the transform of the connection if it has
    /// one.
    fn data(&mut self, tag: u64, bytes: &[u8]) {
        let endpoint = endpoint(tag);
        let metrics = &mut self.engine.metrics;
        match endpoint {
            Endpoint::Lane(_) => metrics.server_traffic.received += bytes.len() as u64,
            Endpoint::Link(_) => metrics.peer_traffic.received += bytes.len() as u64,
            Endpoint::Client(_) => metrics.client_traffic.received += bytes.len() as u64,
        }
        let Some(stream) = self.engine.stream(endpoint) else {
            return;
        };
        if stream.transform.is_none() {
            return match endpoint {
                Endpoint::Lane(lane) => {
                    let at = bytes.as_ptr() as usize;
                    self.engine.borrowed = at..at + bytes.len();
                    self.engine.lane_bytes(lane, bytes);
                    self.engine.borrowed = 0..0;
                }
                Endpoint::Client(client) => self.engine.client_bytes(client, bytes),
                Endpoint::Link(link) => self.engine.link_bytes(link, bytes),
            };
        }
        self.open_first_bytes();
        if !self.wait_for_share(endpoint, bytes) {
            self.open(endpoint, bytes);
        }
    }

    /// Opens the first bytes of transforms that are new in this turn: nothing overtakes them.
    fn open_first_bytes(&mut self) {
        while let Some((endpoint, bytes)) = self.engine.actions.upgraded.pop() {
            if self.is_shaking_hands(endpoint) {
                self.handshake_begins(endpoint);
            }
            self.open(endpoint, &bytes);
        }
    }

    /// Opens bytes that have come through the transform of this connection, and hands them to the engine.
    fn open(&mut self, endpoint: Endpoint, bytes: &[u8]) {
        let Some(stream) = self.engine.stream(endpoint) else {
            return;
        };
        let Some(transform) = &mut stream.transform else {
            return;
        };
        let began = (transform.handshake() == Handshake::UnderWay).then(Instant::now);
        let mut plain = std::mem::take(&mut self.plain);
        let opened = transform.open(bytes, &mut plain, &mut stream.wire);
        let (now, has_ended) = (transform.handshake(), transform.has_ended());
        let answers = !stream.wire.is_empty();
        if let Some(began) = began {
            let step = opened.as_ref().map(|()| now).map_err(Failure::of);
            self.note_handshake(endpoint, began, step);
            if step.is_ok_and(|now| now != Handshake::UnderWay)
                && let Endpoint::Lane(lane) = endpoint
                && self.engine.is_connecting(endpoint)
            {
                self.engine.lane_connected(lane);
            }
        }
        match (opened, endpoint) {
            (Err(error), Endpoint::Lane(lane)) => self.engine.lane_failed(lane, Some(&error)),
            (Err(error), Endpoint::Link(link)) => self.engine.link_failed(link, Some(&error)),
            (Err(_), Endpoint::Client(client)) => self.engine.client_failed(client),
            (Ok(()), Endpoint::Lane(lane)) => self.engine.lane_bytes(lane, &plain),
            (Ok(()), Endpoint::Link(link)) => self.engine.link_bytes(link, &plain),
            (Ok(()), Endpoint::Client(client)) => self.engine.client_bytes(client, &plain),
        }
        if answers {
            self.engine.flush_later(endpoint);
        }
        plain.clear();
        self.plain = plain;
        if has_ended {
            self.end(endpoint);
        }
    }

    /// The other end sends no more: it has closed its side, or its transform has said goodbye.
    fn end(&mut self, endpoint: Endpoint) {
        self.open_kept(endpoint);
        let cut = self.cut(endpoint);
        match endpoint {
            Endpoint::Client(client) => self.engine.client_eof(client),
            Endpoint::Lane(lane) => self.engine.lane_failed(lane, cut.as_ref()),
            Endpoint::Link(link) => self.engine.link_failed(link, cut.as_ref()),
        }
    }

    /// The error if a transform has not said goodbye, which is counted.
    fn cut(&mut self, endpoint: Endpoint) -> Option<io::Error> {
        let stream = self.engine.stream(endpoint)?;
        let (cut, is_shaking_hands) = (stream.transform.as_ref()?.cut()?, stream.is_shaking_hands());
        let counts = &mut self.engine.metrics.tls;
        let counts = match endpoint {
            Endpoint::Client(_) => &mut counts.clients,
            Endpoint::Lane(_) => &mut counts.servers,
            Endpoint::Link(_) => return Some(cut),
        };
        match is_shaking_hands {
            true => counts.fail(Failure::Cut),
            false => counts.cut += 1,
        }
        Some(cut)
    }

    /// Lets a transform that begins the conversation do so now. Returns how far its handshake is.
    fn greet(&mut self, endpoint: Endpoint) -> Handshake {
        let Some(stream) = self.engine.stream(endpoint) else {
            return Handshake::None;
        };
        let Some(transform) = &mut stream.transform else {
            return Handshake::None;
        };
        // What cannot begin cannot go on either: the first bytes show it.
        let _ = transform.seal(&[], &mut stream.wire);
        let (now, answers) = (transform.handshake(), !stream.wire.is_empty());
        if answers {
            self.engine.flush_later(endpoint);
        }
        now
    }

    fn check(&mut self) {
        let now = self.engine.now;
        if now >= self.next_lane_check {
            self.next_lane_check = now + LANE_CHECK;
            self.engine.tell_counts();
            if self.engine.is_in_fleet() {
                self.engine.check_fleet();
            }
            self.cannot_accept = false;
            self.end_late_handshakes();
            let reactor = &self.reactor;
            self.engine.check_lanes(&|conn| reactor.refused(conn), &|conn| {
                reactor.unacknowledged(conn)
            });
            self.engine.end_blocked(&|conn| reactor.left_to_read(conn));
            self.engine.check_room();
            self.engine.check_uploads(&|conn| reactor.left_to_read(conn));
            if self.full {
                self.engine.make_way(&|conn| reactor.left_to_read(conn));
            }
        }
        if now >= self.next_client_check {
            self.next_client_check = now + CLIENT_CHECK;
            let reactor = &self.reactor;
            self.engine.check_clients(&|conn| reactor.refused(conn), &|conn| {
                reactor.unacknowledged(conn)
            });
            // The logins of clients that are left are wanted until they leave.
            let are_closed = self.engine.retire_lanes();
            self.has_useless_lanes &= !are_closed || !self.engine.clients.is_empty();
            if self.idle.begins(self.work_done()) {
                give_back();
            }
        }
    }

    fn serve_again(&mut self) {
        // Clients that use up their budget again are put on the list for the next turn.
        for client in std::mem::take(&mut self.engine.actions.again) {
            self.engine.serve_again(client);
        }
    }

    /// Looks which watched peers have taken what they were sent. For bytes that the socket has refused,
    /// `Sent` will come. A piece that was passed in this very turn is not offered to the socket yet, and no
    /// event would come for it: the next turn looks again.
    fn settle_watched(&mut self) {
        for endpoint in std::mem::take(&mut self.watched) {
            let Some(stream) = self.engine.stream(endpoint) else {
                continue;
            };
            stream.watched = false;
            let Some(conn) = stream.conn else { continue };
            if self.reactor.backlog(conn) == 0 {
                self.drained(endpoint);
            } else if self.reactor.refused(conn) == 0 {
                self.watch(endpoint);
            }
        }
    }

    fn drained(&mut self, endpoint: Endpoint) {
        match endpoint {
            Endpoint::Client(client) => {
                self.engine.client_drained(client);
                self.engine.flush_later(endpoint);
            }
            Endpoint::Lane(lane) => self.engine.lane_drained(lane),
            Endpoint::Link(_) => self.engine.flush_later(endpoint),
        }
    }

    /// Applies the actions of this turn.
    fn apply_actions(&mut self) {
        self.open_first_bytes();
        while !self.engine.actions.connect.is_empty() {
            for lane in std::mem::take(&mut self.engine.actions.connect) {
                self.connect(lane);
            }
        }
        // A flush that fails may add others.
        let mut flush = std::mem::take(&mut self.engine.actions.flush);
        while !flush.is_empty() {
            for endpoint in flush.drain(..) {
                self.flush(endpoint);
            }
            std::mem::swap(&mut flush, &mut self.engine.actions.flush);
        }
        self.engine.actions.flush = flush;
        self.engine.settle_room();
        self.apply_pauses();
        for (conn, abort) in std::mem::take(&mut self.engine.actions.close) {
            if !self.engine.actions.farewells.is_empty() {
                self.say_goodbye();
            }
            if abort {
                self.reactor.abort(conn)
            } else {
                self.reactor.close(conn)
            }
        }
        for event in self.engine.actions.events.drain(..) {
            let _ = self.events.send(event);
        }
    }

    /// Sends the last bytes of connections that are closed in this turn.
    fn say_goodbye(&mut self) {
        for (conn, mut bytes) in std::mem::take(&mut self.engine.actions.farewells) {
            // A client that does not take what was sent before takes no goodbye either.
            if !bytes.is_empty() && self.reactor.backlog(conn) == 0 {
                self.reactor.send(conn, &mut bytes);
            }
        }
    }

    fn apply_pauses(&mut self) {
        for (conn, pause) in std::mem::take(&mut self.engine.actions.pause) {
            if pause {
                self.reactor.pause(conn)
            } else {
                self.reactor.resume(conn)
            }
        }
    }

    fn connect(&mut self, id: LaneId) {
        let Some(lane) = self.engine.servers.lane(id) else {
            return;
        };
        let endpoint = Endpoint::Lane(id);
        let connected = match &lane.member.socket {
            Some(socket) => self.reactor.connect(tag(endpoint), socket),
            None => Err(std::io::ErrorKind::AddrNotAvailable.into()),
        };
        match connected {
            Ok(conn) => {
                if let Some(how) = lane.member.keepalive {
                    self.reactor.keep_alive(conn, &keep_alive(how));
                }
                self.engine.attach(endpoint, conn);
            }
            Err(error) => self.engine.lane_failed(id, Some(&error)),
        }
    }
}

fn keep_alive(how: KeepAlive) -> TcpKeepalive {
    let mut options = TcpKeepalive::new();
    if let Some(idle) = how.idle {
        options = options.with_time(idle);
    }
    if let Some(interval) = how.interval {
        options = options.with_interval(interval);
    }
    match how.probes {
        Some(probes) => options.with_retries(probes),
        None => options,
    }
}

fn tag(endpoint: Endpoint) -> u64 {
    match endpoint {
        Endpoint::Client(id) => CLIENT << 62 | id.to_bits(),
        Endpoint::Lane(id) => LANE << 62 | id.to_bits(),
        Endpoint::Link(id) => LINK << 62 | id.to_bits(),
    }
}

/// The endpoint of a tag that belongs to a client or a lane.
fn endpoint(tag: u64) -> Endpoint {
    match kind(tag) {
        LANE => Endpoint::Lane(Id::from_bits(tag)),
        LINK => Endpoint::Link(Id::from_bits(tag)),
        _ => Endpoint::Client(Id::from_bits(tag)),
    }
}

fn kind(tag: u64) -> u64 {
    tag >> 62
}

fn number(tag: u64) -> u32 {
    tag as u32
}
