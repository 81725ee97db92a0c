//! One client connection.

use proxima_wire::message::{Class, Request};

use super::{Keys, Slots};
use crate::{
    copies::OperationId,
    dialect::{Dialect, Session},
    members::{ClientSource, Locality},
    micros::Micros,
    near::embedded::Dump,
    route::Origin,
    stream::Stream,
    table::{Entry, Id},
    upstream::LaneId,
};

/// The place among the large messages to a server that an upload waits for.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// Until when.
    pub due: Micros,
    /// Of its whole message.
    pub bytes: u64,
}

/// What a client's next bytes are.
pub(super) enum Stage {
    /// A step of its login.
    Login,
    /// A request.
    Requests,
    /// The same large request again, which waits for a place among the large messages to a server.
    Place(Wanted),
    /// The rest of a refused value: so many bytes are thrown away.
    Discard(u64),
    /// The rest of a value that is passed on as it comes.
    Upload(Box<Upload>),
    /// More keys of a request of which only some are served.
    Keys(Box<Keys>),
    /// Requests, which wait until this dump of the embedded store is sent.
    Dump(Box<Dump>),
}

/// One client connection.
pub struct Client {
    pub(super) generation: u32,
    pub(super) stream: Stream,
    /// Number of its listener: the route its requests enter.
    pub(super) listener: u16,
    pub(super) dialect: &'static dyn Dialect,
    /// The number of its protocol's first command among those of all.
    pub(super) first_command: u32,
    pub(super) session: Session,
    /// The number of the login that its requests need at servers.
    pub(super) login: u16,
    /// Where it is by the newest word of the node agent.
    pub(super) locality: Locality,
    /// What that is looked up by.
    pub(super) source: ClientSource,
    /// The lane that is its alone.
    pub(super) own: Option<LaneId>,
    pub(super) slots: Slots,
    /// What its next bytes are.
    pub(super) stage: Stage,
    /// Bytes of a reply to this client, as far as is known: rises at once, falls slowly. What it may have in flight
    /// follows from it, so that replies that nobody has seen yet cannot outgrow the client's share of memory.
    pub(super) reply_size: usize,
    /// It asked to leave, or cannot be understood any more: closed after what is due.
    pub(super) closing: bool,
    /// The peer has closed its side: closed after what is due.
    pub(super) eof: bool,
    /// The request in this slot changes copies in several steps: not served further before it is answered.
    pub(super) awaits: Option<u32>,
    /// Not served further until replies have made room.
    pub(super) stalled: bool,
    /// On the list of clients to be served again.
    pub(super) queued: bool,
    /// On the list of clients that wait for room.
    pub(super) waits: bool,
    /// Bytes that its socket was given and has not taken.
    pub(super) unsent: usize,
    /// Bytes of its buffers, as they are charged to it.
    pub(super) charged: usize,
    /// Since when it has sent a part of a request and not the rest; `None`: it has not.
    pub(super) half: Option<Micros>,
    /// The last time it sent anything or was answered.
    pub(super) active: Micros,
    /// Since when it takes nothing of what it is due.
    pub(super) stuck: Micros,
    /// What was on its way to the peer, here and in the kernel, when `stuck` was set.
    pub(super) stuck_backlog: usize,
}

/// The handle of a client.
pub type ClientId = Id<Client>;

impl Entry for Client {
    fn generation(&self) -> u32 {
        self.generation
    }
}

impl Client {
    /// The place that its upload waits for; `None`: it does not wait.
    pub(super) fn place(&self) -> Option<Wanted> {
        match self.stage {
            Stage::Place(place) => Some(place),
            _ => None,
        }
    }

    /// Where its requests come from.
    pub fn origin(&self) -> Origin {
        Origin {
            listener: self.listener,
            form: self.session.form,
            login: self.login,
            locality: self.locality,
            dialect: self.dialect,
        }
    }

    /// Is to be asked what to do with this request? Most often it is about one key, and walks the tree.
    #[inline]
    pub(super) fn plans(&self, request: &Request) -> bool {
        let walks = matches!(request.class, Class::Read | Class::Write | Class::Delete);
        !walks || !request.more_keys.is_empty() || self.session.plans_all
    }

    /// The number of a command among those of all protocols.
    #[inline]
    pub fn number(&self, command: u16) -> usize {
        self.first_command as usize + usize::from(command)
    }

    /// Is it in the middle of a value that is being passed on?
    pub fn is_uploading(&self) -> bool {
        matches!(&self.stage, Stage::Upload(upload) if upload.remaining > 0)
    }

    /// Will the rest of its value never come? What has come may still wait here, all of it even.
    pub(super) fn left_midway(&self) -> bool {
        self.eof && self.is_uploading() && !self.stalled
    }

    /// Bytes that its buffers take, used or not.
    pub(super) fn holds(&self) -> usize {
        let Stream {
            read_buffer,
            out,
            wire,
            ..
        } = &self.stream;
        self.unsent + read_buffer.capacity() + out.capacity() + wire.capacity() + self.slots.memory()
    }

    /// Has it sent the beginning of a request and not yet the rest? (Of a value that is passed on as it comes nothing is kept.)
    pub(super) fn is_midway(&self) -> bool {
        let begun = match self.stage {
            Stage::Upload(_) => false,
            Stage::Keys(_) => true,
            _ => !self.stream.read_buffer.is_empty(),
        };
        begun && !self.stalled
    }

    /// May a reply leave without waiting for the end of the turn? Nothing is before it, and nothing is to be done after it.
    pub(super) fn takes_at_once(&self) -> bool {
        let free = self.stream.out.is_empty() && self.stream.transform.is_none() && !self.stream.dirty;
        free && !(self.stalled || self.closing || self.eof)
    }
}

/// A request too large for a shared lane, on its way through; its client is served no further before it is answered.
pub(super) struct Upload {
    /// Bytes of it that are still to come.
    pub(super) remaining: u64,
    /// Bulk lanes that take them.
    pub(super) lanes: Vec<LaneId>,
    /// Changes of copies that wait for the lock of their key.
    pub(super) changes: Vec<OperationId>,
    /// Since when its last byte waits for that.
    pub(super) due: Option<Micros>,
}
