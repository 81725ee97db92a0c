//! The handles by which the parts of an engine name each other's entries, and the addresses that are made of
//! handles. A part needs no more than these to deliver a reply.

use crate::table::Id;

/// A client of a worker, for its handle.
#[derive(Debug)]
pub struct ClientKind;
/// A lane to a server, for its handle.
#[derive(Debug)]
pub struct LaneKind;
/// A flight, for its handle.
#[derive(Debug)]
pub struct FlightKind;
/// A change of copies, or a look at a key's home, for its handle.
#[derive(Debug)]
pub struct OperationKind;
/// Work for a peer, for its handle.
#[derive(Debug)]
pub struct TaskKind;
/// A link to a peer, for its handle.
#[derive(Debug)]
pub struct LinkKind;

/// The handle of a client.
pub type ClientId = Id<ClientKind>;
/// The handle of a lane.
pub type LaneId = Id<LaneKind>;
/// The handle of a flight.
pub type FlightId = Id<FlightKind>;
/// The handle of an operation.
pub type OperationId = Id<OperationKind>;
/// The handle of a task.
pub type TaskId = Id<TaskKind>;
/// The handle of a link.
pub type LinkId = Id<LinkKind>;

/// The destination of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyTo {
    /// A slot of a client.
    Client {
        /// The client. Its generation tells it from an earlier client in the same place.
        client: ClientId,
        /// The number of the slot.
        seq: u32,
    },
    /// A child of a gather, an attempt or a wrap.
    Flight {
        /// The flight that waits.
        flight: FlightId,
        /// The number of the child.
        child: u32,
    },
    /// A child of a replicated pool, or a further request to a key's home.
    Operation {
        /// The operation that waits.
        operation: OperationId,
        /// The number of the child.
        child: u32,
    },
    /// A peer of the fleet, in whose place this request is made.
    Peer {
        /// The task that waits.
        task: TaskId,
    },
    /// The login of a client, which depends on what a server says.
    Admission {
        /// The client.
        client: ClientId,
    },
    /// A pool's own, or an order about what a server does.
    Pool {
        /// The number of the question.
        question: u32,
    },
    /// The lane itself, whose server was asked for a proof, or to forget its last client.
    Lane {
        /// The lane that waits.
        lane: LaneId,
    },
    /// Nobody waits for the reply.
    Nobody,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A client.
    Client(ClientId),
    /// A lane to a server.
    Lane(LaneId),
    /// A link to a peer of the fleet.
    Link(LinkId),
}

/// A request or client that waits for a time. At the same time, within one kind, the older one wakes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sleeper {
    /// A request that a route holds back.
    Flight(FlightId),
    /// A change of copies that waits for its key lock, or for its key's home.
    Operation(OperationId),
    /// A change of a peer that waits for its key lock.
    Task(TaskId),
    /// A client whose value waits for its key lock.
    Client(ClientId),
}
