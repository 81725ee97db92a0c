//! The clients of a worker, and the state that they share.

use std::sync::Arc;

use proxima_wire::message::Span;

use super::{Client, Register, Room, key_groups::KeyGroups};
use crate::{
    engine::{ClientId, Engine},
    micros::Micros,
    route::{BATCH, Pending},
    stream::Stream,
    table::Table,
};

/// The clients of one worker.
pub struct Clients {
    pub(super) table: Table<Client>,
    /// The number of clients that have connected.
    pub(super) opened: u64,
    /// Buffers for requests with several keys.
    pub(super) key_groups: KeyGroups,
    /// The clients of all workers.
    pub(super) register: Arc<Register>,
    /// The memory that clients take.
    pub(super) room: Room,
    /// Bytes that may be due to one client: the limit of a connection, or its share of the memory of all.
    pub(super) share: usize,
    /// New requests are rejected until the buffers have shrunk.
    pub(super) over_memory: bool,
    /// Clients are closed as soon as nothing is due to them.
    pub(super) draining: bool,
    /// The number of clients whose upload waits for a seat.
    pub(super) waiting_uploads: usize,
    /// These clients and the time until which they wait, in the order in which they came. Some may have
    /// stopped waiting; they stay until the next look.
    pub(super) seat_queue: Vec<(Micros, ClientId)>,
    /// Requests of the client being served that are about to walk the tree as one batch.
    pub(super) pending: Vec<Pending>,
    /// Scratch space for the keys of a request.
    pub(super) keys: Vec<Span>,
    /// The time at which the control thread was last told of a client that speaks another protocol; `None` if
    /// it never was.
    pub(super) foreign_protocol_reported: Option<Micros>,
}

impl Clients {
    /// No clients yet.
    pub fn new(register: Arc<Register>) -> Self {
        Self {
            table: Table::default(),
            opened: 0,
            key_groups: KeyGroups::default(),
            register,
            room: Room::default(),
            share: 0,
            over_memory: false,
            draining: false,
            waiting_uploads: 0,
            seat_queue: Vec::new(),
            pending: Vec::with_capacity(BATCH),
            keys: Vec::new(),
            foreign_protocol_reported: None,
        }
    }

    /// The number of clients.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// The number of clients whose upload waits for a seat.
    pub fn waiting_uploads(&self) -> usize {
        self.waiting_uploads
    }

    /// Returns whether there is no client.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The number of each client's listener.
    pub fn listeners(&self) -> impl Iterator<Item = u16> {
        self.table.iter().map(|(_, client)| client.listener)
    }

    /// The handles of all clients.
    pub fn ids(&self) -> impl Iterator<Item = ClientId> {
        self.table.iter().map(|(id, _)| id)
    }

    /// The bytes of this client's connection; `None`: the client has gone.
    pub fn stream(&mut self, id: ClientId) -> Option<&mut Stream> {
        self.table.get_mut(id).map(|client| &mut client.stream)
    }

    /// The clients of all workers.
    pub fn register(&self) -> &Arc<Register> {
        &self.register
    }

    /// Bytes that may be due to one client.
    pub fn share(&self) -> usize {
        self.share
    }

    /// Bytes of memory that clients take.
    pub fn memory(&self) -> usize {
        self.room.used()
    }

    /// Bytes that may be collected for one client while others wait behind its reply.
    pub(crate) fn collected(&self) -> usize {
        self.room.collected()
    }

    /// Returns whether clients are closed as soon as nothing is due to them.
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    /// Sets whether clients are closed as soon as nothing is due to them.
    pub fn set_draining(&mut self, draining: bool) {
        self.draining = draining;
    }
}

impl Engine {
    /// Shares the memory for buffers among the clients that there are.
    pub(crate) fn share_memory(&mut self) {
        /// The least share, in bytes. It is enough for a few replies that are large for a shared lane: a
        /// client that is served one request at a time waits behind slow readers once for each.
        const LEAST: usize = 256 * 1024;
        let all = self.limits.total_bytes / self.facts.workers.max(1);
        let share = (all / self.clients.len().max(1)).max(LEAST);
        self.clients.share = self.limits.connection_bytes.min(share);
        self.clients.room.limit(all);
    }

    /// Returns whether anything waits until this client has taken what it was sent.
    pub fn is_awaited(&self, id: ClientId) -> bool {
        let client = self.clients.table.get(id);
        client.is_some_and(|client| client.stalled || client.slots.leaves_in_pieces())
            || self.servers.has_paused_lanes()
    }
}
