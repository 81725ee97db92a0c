//! The actions of a worker after the events of a turn.

use std::{ops::Range, sync::Arc};

use super::{ClientId, Endpoint, FlightId, LaneId};
use crate::{client::Question, copies, members::Member, near::Fetch, peers, reactor::Conn};

/// The worker's actions on its reactor after the events of a turn.
#[derive(Default)]
pub struct Actions {
    /// Connections with bytes to send.
    pub flush: Vec<Endpoint>,
    /// Pieces of the borrowed receive buffer that leave as they are.
    pub pass: Vec<PassedReply>,
    /// Connections with a new transform, and the bytes for it that came with the word that has agreed on it.
    pub upgraded: Vec<(Endpoint, Vec<u8>)>,
    /// Lanes to connect.
    pub connect: Vec<LaneId>,
    /// Last bytes of connections that are closed: their transforms say goodbye.
    pub farewells: Vec<(Conn, Vec<u8>)>,
    /// Connections to close; `true`: with a reset.
    pub close: Vec<(Conn, bool)>,
    /// Connections whose receiving stops (`true`) or starts again (`false`).
    pub pause: Vec<(Conn, bool)>,
    /// Clients to serve again from the bytes that they have already sent.
    pub again: Vec<ClientId>,
    /// Events for the control thread.
    pub events: Vec<WorkerEvent>,
}

/// A reply that goes to a client straight from the buffer in which it came.
#[derive(Clone, Debug)]
pub struct PassedReply {
    /// The client that the reply is for.
    pub client: ClientId,
    /// The position of the reply in the borrowed receive buffer, in bytes.
    pub range: Range<usize>,
}

/// An event that a worker reports to the control thread.
#[derive(Clone, Debug)]
pub enum WorkerEvent {
    /// This member was ejected just now, for this reason.
    Ejected(Arc<Member>, String),
    /// An event about a copy.
    Copy(copies::Event),
    /// An event about a peer of the fleet.
    Peer(peers::Event),
    /// A client was closed at once because it speaks another protocol; the text gives the reason.
    ForeignProtocol(&'static str),
    /// Descriptors ran out, for this reason.
    Short(String),
    /// The worker is in a state that cannot be, which is an error of the program; the text says which.
    Broken(&'static str),
    /// A client ends the process, as mcrouter's may.
    Shutdown,
    /// A client asks what the control thread answers.
    Question(Question),
    /// A value is wanted of an HTTP origin.
    Fetch {
        /// The number of the worker that waits for it.
        worker: usize,
        /// The flight that waits there.
        flight: FlightId,
        /// The question.
        fetch: Box<Fetch>,
    },
    /// A worker has ended.
    Ended {
        /// The worker has left copies with changes that they have not answered.
        unanswered: bool,
    },
}

/// The purpose for which a descriptor was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// A client, which waits in the kernel's queue.
    Accept,
    /// A connection to a server.
    Connect,
}
