//! The meaning of a client's next bytes, and the state of a request that has come in part.

use std::rc::Rc;

use proxima_wire::message::Request;

use super::key_groups::KeyGroups;
use crate::{
    embedded::Dump,
    engine::{LaneId, OperationId},
    micros::Micros,
    protocol::Join,
    route::{Branches, NodeId, Tree},
};

/// The seat among the large messages to a server that an upload waits for.
#[derive(Clone, Copy)]
pub(super) struct WantedSeat {
    /// The time until which the upload waits.
    pub(super) due: Micros,
    /// The size of the whole message.
    pub(super) bytes: u64,
}

/// The meaning of a client's next bytes.
pub(super) enum Stage {
    /// A step of its login.
    Login,
    /// The same, when a server has answered what the login asks.
    Asking,
    /// A request.
    Requests,
    /// The same large request again, which waits for a seat among the large messages to a server.
    Seat(WantedSeat),
    /// The rest of a rejected value: this many bytes are thrown away.
    Discard(u64),
    /// The rest of a value that is passed on as it comes.
    Upload(Box<Upload>),
    /// More keys of a request of which only some are served.
    Keys(Box<Keys>),
    /// The same request again, whose many keys are being grouped or sent.
    Spread(Box<Spread>),
    /// Requests, which wait until this dump of the embedded store is sent.
    Dump(Box<Dump>),
}

/// A request that is too large for a shared lane, on its way through. Its client is served no further before
/// it is answered.
pub(super) struct Upload {
    /// The slot of the request; `None` once it is answered: the rest of the request is thrown away.
    pub(super) seq: Option<u32>,
    /// Bytes of the request that are still to come, as far as they are counted.
    pub(super) remaining: u64,
    /// More bytes follow these, which the codec counts.
    pub(super) is_open: bool,
    /// Bulk lanes that take these bytes.
    pub(super) lanes: Vec<LaneId>,
    /// The request waits for a dedicated lane.
    pub(super) waits: bool,
    /// Changes of copies that wait for the lock of their key.
    pub(super) changes: Vec<OperationId>,
    /// The time since which the last byte waits for the key lock; `None` if it does not wait.
    pub(super) due: Option<Micros>,
}

impl Upload {
    /// Is more of the request to come?
    pub(super) fn goes_on(&self) -> bool {
        self.remaining > 0 || self.is_open
    }
}

/// A request for many keys. It is served further when there is room, or when more of it has come.
pub(super) struct Keys {
    pub(super) request: Request,
    /// The request up to its first key.
    pub(super) head: Vec<u8>,
    pub(super) join: &'static Join,
    /// The request was answered with an error: the rest of it is skipped.
    pub(super) failed: bool,
    /// The time at which serving the request began.
    pub(super) since: Micros,
}

/// A request with several keys, on its way into the tree.
pub(super) struct Spread {
    pub(super) request: Request,
    /// The tree that the request has entered: a reload does not change the rules under it.
    pub(super) tree: Rc<Tree>,
    pub(super) root: NodeId,
    /// How the replies are joined; `None` if the request cannot be split.
    pub(super) join: Option<&'static Join>,
    pub(super) branches: Branches,
    pub(super) key_groups: KeyGroups,
    /// The number of groups that were sent.
    pub(super) sent: usize,
    /// The number of parts that were sent: one for each group, or more where its keys have parted since.
    pub(super) parts: u32,
    /// The request takes more than one turn.
    pub(super) is_long: bool,
}

impl Spread {
    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.key_groups.memory()
    }
}
