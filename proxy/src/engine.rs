//! Everything of a worker but its sockets: bytes in, bytes and wishes out. No system call, no clock: time comes with each
//! turn, chance from a seed, so that a simulator can own both.

use std::{collections::BinaryHeap, net::SocketAddr, ops::Range, rc::Rc, sync::Arc};

use crate::{
    client::{Client, ClientId, Register, Room},
    config::schema::Limits,
    figures::Figures,
    members::{
        Member, MemberId,
        copies::{Claimant, Claims, Owed, Views},
    },
    near::store::{Foresight, Store},
    reactor::Conn,
    route::{BATCH, Flight, FlightId, Flights, Opening, Pending, Random, Timer, Tree},
    stream::{Spare, Stream},
    table::Table,
    upstream::{Lane, LaneId, Lanes, Logins, Phase},
};

/// A worker's state.
pub struct Engine {
    /// Microseconds since the process began; the time of this turn.
    pub now: u64,
    pub random: Random,
    pub limits: Limits,
    /// The tree that new requests enter.
    pub tree: Rc<Tree>,
    pub clients: Table<Client>,
    pub lanes: Table<Lane>,
    /// Which lanes each member has, by member number.
    pub by_member: Vec<Lanes>,
    /// As whom lanes log in.
    pub logins: Logins,
    pub flights: Flights,
    pub timers: BinaryHeap<Timer>,
    /// What each copy may be used for.
    pub views: Views,
    /// Writes that wait for a copy to be out: flights.
    pub(crate) parked: Vec<FlightId>,
    /// Proposals to open a copy that are acknowledged when what was decided elsewhere meanwhile has ended.
    pub(crate) openings: Vec<Opening>,
    /// Which keys of copies this worker may change.
    pub(crate) claimant: Rc<Claimant>,
    pub store: Arc<Store>,
    pub(crate) foresight: Foresight,
    pub register: Arc<Register>,
    pub figures: Figures,
    pub wishes: Wishes,
    /// Buffers for what is to be sent.
    pub spare: Spare,
    /// Requests of the client being served that are about to walk the tree together.
    pub(crate) pending: Vec<Pending>,
    /// Requests sent to servers and not answered.
    pub(crate) in_flight: usize,
    /// Lanes that are not read because their reader is slow.
    pub(crate) held_lanes: usize,
    /// Requests that wait for a lane of their client's own.
    pub(crate) queued: usize,
    /// Clients whose upload waits for a place.
    pub(crate) waiting_uploads: usize,
    /// Bytes that one client may be due: its own limit, or its share of all.
    pub(crate) client_bytes: usize,
    /// Memory that clients take.
    pub room: Room,
    /// New requests are refused until buffers have shrunk.
    pub over_memory: bool,
    /// When the control thread was last told that descriptors ran out: microseconds.
    short_told: Option<u64>,
    /// Draining: clients are closed as soon as nothing is due to them.
    pub draining: bool,
    /// Scratch for requests and replies made here.
    pub(crate) scratch: Vec<u8>,
    pub(crate) scratch_reply: Vec<u8>,
    /// Scratch for a request that a flight sends again or later.
    pub(crate) resend: Vec<u8>,
    /// Scratch for the key of a request to copies.
    pub(crate) key: Vec<u8>,
    /// Addresses of the bytes that the worker has lent for the event under way: what lies there may leave from there,
    /// without a copy.
    pub lent: Range<usize>,
    /// Bulk lanes that the request being dispatched was given.
    pub(crate) uploads: Vec<LaneId>,
    /// The client whose upload is being dispatched.
    pub(crate) uploader: Option<ClientId>,
    /// Changes of copies that it has begun, if it is streamed: flights whose key is not claimed yet.
    pub(crate) turns: Vec<FlightId>,
    /// Microseconds: when the control thread was last told of a client that speaks another protocol; none: never.
    pub(crate) stranger_told: Option<u64>,
    /// Process-wide facts that `stats` reports.
    pub facts: Facts,
}

/// What the worker must do to its reactor after the events of a turn.
#[derive(Default)]
pub struct Wishes {
    /// Connections with bytes to send.
    pub flush: Vec<Peer>,
    /// Pieces of the lent bytes that leave as they are.
    pub pass: Vec<Passed>,
    /// Lanes to connect.
    pub connect: Vec<LaneId>,
    /// Connections to close; true = with a reset.
    pub close: Vec<(Conn, bool)>,
    /// Connections to stop (true) or start (false) receiving from.
    pub pause: Vec<(Conn, bool)>,
    /// Clients to be served again from what they have already sent.
    pub again: Vec<ClientId>,
    /// What the control thread should hear of.
    pub news: Vec<News>,
}

/// A reply that a client is sent straight from the buffer in which it came.
#[derive(Clone, Debug)]
pub struct Passed {
    pub client: ClientId,
    /// Where it lies in the lent bytes.
    pub range: Range<usize>,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Client(ClientId),
    Lane(LaneId),
}

/// What the control thread should hear of.
#[derive(Clone, Debug)]
pub enum News {
    /// This member was ejected just now, for this reason.
    Ejected(Arc<Member>, String),
    /// This copy missed a write, for this reason: it is not read here any more.
    Missed(Arc<Member>, String),
    /// A client was closed at once, for this reason: it speaks another protocol.
    Stranger(&'static str),
    /// Descriptors ran out, for this reason.
    Short(String),
    /// Our end of a connection to this copy that broke with requests unanswered.
    Broken(Arc<Member>, Option<SocketAddr>),
    /// This worker follows a proposal; what it saw the copy miss until then.
    Follows {
        worker: usize,
        member: MemberId,
        epoch: u64,
        owed: Owed,
    },
    /// A worker has ended. `unanswered`: it has left copies with changes that they have not answered.
    Ended { unanswered: bool },
}

/// What there were no descriptors for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// A client, who waits.
    Accept,
    /// A connection to a server.
    Connect,
}

/// Facts about the process.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub pid: u32,
    /// Unix seconds at which `now` was 0.
    pub epoch: u64,
    pub workers: usize,
    pub worker: usize,
}

impl Engine {
    /// A worker without clients and without listeners.
    pub fn new(
        limits: Limits,
        store: Arc<Store>,
        register: Arc<Register>,
        claims: Arc<Claims>,
        facts: Facts,
        seed: u64,
    ) -> Self {
        Self {
            now: 0,
            random: Random(seed),
            limits,
            tree: Rc::new(Tree::empty()),
            clients: Table::default(),
            lanes: Table::default(),
            by_member: Vec::new(),
            logins: Logins::default(),
            flights: Flights::default(),
            timers: BinaryHeap::new(),
            views: Views::default(),
            parked: Vec::new(),
            openings: Vec::new(),
            claimant: Claimant::new(claims, facts.worker),
            store,
            foresight: Foresight::default(),
            register,
            figures: Figures::default(),
            wishes: Wishes::default(),
            spare: Spare::default(),
            pending: Vec::with_capacity(BATCH),
            in_flight: 0,
            held_lanes: 0,
            queued: 0,
            waiting_uploads: 0,
            client_bytes: 0,
            room: Room::default(),
            over_memory: false,
            short_told: None,
            draining: false,
            scratch: Vec::new(),
            scratch_reply: Vec::new(),
            resend: Vec::new(),
            key: Vec::new(),
            lent: 0..0,
            uploads: Vec::new(),
            uploader: None,
            turns: Vec::new(),
            stranger_told: None,
            facts,
        }
    }

    /// Seconds since 1970.
    pub(crate) fn unix(&self) -> u64 {
        self.facts.epoch + self.now / 1_000_000
    }

    /// There is no descriptor for something: counted, and told once a second at most.
    #[cold]
    pub(crate) fn fall_short(&mut self, what: Shortage, why: &str) {
        const ONCE: u64 = 1_000_000;
        self.figures.shortages[what as usize] += 1;
        if self
            .short_told
            .is_none_or(|told| self.now.saturating_sub(told) >= ONCE)
        {
            self.short_told = Some(self.now);
            self.wishes.news.push(News::Short(why.to_owned()));
        }
    }

    /// Does anything wait for a server?
    #[inline]
    pub fn waits(&self) -> bool {
        self.in_flight > 0 || self.queued > 0 || !self.parked.is_empty()
    }

    /// Is this a lane whose connection is still being made?
    pub fn is_connecting(&self, peer: Peer) -> bool {
        match peer {
            Peer::Lane(id) => self
                .lanes
                .get(id)
                .is_some_and(|lane| matches!(lane.phase, Phase::Connecting)),
            Peer::Client(_) => false,
        }
    }

    /// Shares what may be buffered in all among the clients there are.
    pub(crate) fn share_memory(&mut self) {
        /// Enough for a few replies that are large for a shared lane: whoever is served one request at a time waits behind
        /// slow readers once for each.
        const LEAST: usize = 256 * 1024;
        let all = self.limits.total_bytes / self.facts.workers.max(1);
        let share = (all / self.clients.len().max(1)).max(LEAST);
        self.client_bytes = self.limits.connection_bytes.min(share);
        self.room.limit(all);
    }

    /// Is there a copy with a change that it has not answered?
    pub fn leaves_unanswered(&self) -> bool {
        self.lanes
            .iter()
            .any(|(_, lane)| lane.member.is_copy() && lane.waiters.iter().any(|waiter| waiter.changes))
    }

    /// Is any server held back because its reader is slow?
    pub fn holds_lanes(&self) -> bool {
        self.held_lanes > 0
    }

    /// The bytes of a connection.
    pub fn stream(&mut self, peer: Peer) -> Option<&mut Stream> {
        match peer {
            Peer::Client(id) => self.clients.get_mut(id).map(|client| &mut client.stream),
            Peer::Lane(id) => self.lanes.get_mut(id).map(|lane| &mut lane.stream),
        }
    }

    /// Ends what clients have waited too long for. Called once a second; `refused` tells what a socket has not taken,
    /// `unacknowledged` what it has and its peer has not.
    pub fn check_clients(&mut self, refused: &dyn Fn(Conn) -> usize, unacknowledged: &dyn Fn(Conn) -> usize) {
        let (now, idle) = (self.now, self.limits.idle.as_micros() as u64);
        let patience = self.limits.write_timeout.as_micros() as u64;
        let mut gone: Vec<ClientId> = Vec::new();
        let unfinished = self.limits.request_timeout.as_micros() as u64;
        let lanes = &self.lanes;
        let blocks = |own: LaneId| {
            let first = lanes.get(own).and_then(|lane| lane.waiters.front());
            first.is_some_and(|waiter| waiter.patience == u32::MAX)
        };
        for (id, client) in self.clients.iter_mut() {
            let waiting = client.stream.conn.map_or(0, refused);
            let due = waiting + client.stream.out.len() + client.stream.wire.len();
            let unsent = if waiting > 0 {
                client.unsent.max(waiting)
            } else {
                0
            };
            self.room.charge(client, unsent);
            // A socket makes room in steps of megabytes: a slow reader's progress shows in what his kernel acknowledges.
            let ahead = match client.stream.conn {
                Some(conn) if waiting > 0 => waiting + unacknowledged(conn),
                _ => 0,
            };
            if ahead == 0 || ahead != client.stuck_backlog {
                (client.stuck, client.stuck_backlog) = (now, ahead);
            }
            // In the middle of a value it holds a lane, and others wait for one.
            let silent = client.is_uploading() && !client.stalled && now - client.active > patience;
            if silent || waiting > 0 && now - client.stuck > patience {
                self.figures.clients.slow += 1;
                gone.push(id);
            } else if client.eof && client.own.is_some_and(&blocks) {
                // It has gone, and its server would answer it for ever.
                gone.push(id);
            } else if client.half > 0 && now - client.half > unfinished {
                self.figures.clients.unfinished += 1;
                gone.push(id);
            } else if idle > 0 && due == 0 && client.slots.is_empty() && now - client.active > idle {
                self.figures.clients.idle += 1;
                gone.push(id);
            }
        }
        for id in gone {
            self.close_client(id, true);
        }
        let lanes: usize = self.lanes.iter().map(|(_, lane)| lane.holds()).sum();
        let queues = self.by_member.iter().filter_map(|lanes| lanes.dedicated.as_ref());
        let queues: usize = queues.map(|dedicated| dedicated.holds()).sum();
        let flights: usize = self.flights.iter().map(Flight::holds).sum();
        self.over_memory = self.room.lend(
            lanes + queues + flights,
            self.limits.total_bytes / self.facts.workers.max(1),
        );
    }
}
