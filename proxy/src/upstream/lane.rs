//! One connection of one worker to one member.

use std::{collections::VecDeque, net::SocketAddr, sync::Arc};

use crate::{dialect::Conversation, members::Member, route::ReplyTo, stream::Stream};

/// A lane.
pub struct Lane {
    pub generation: u32,
    pub member: Arc<Member>,
    pub stream: Stream,
    /// Our end, where the server of a copy may have to prove that it is gone.
    pub local: Option<SocketAddr>,
    pub phase: Phase,
    /// Requests that wait for the end of the login: what is said until then must not mix with them.
    pub held: Vec<u8>,
    /// Requests in the order in which they were sent.
    pub waiters: VecDeque<Waiter>,
    /// One message at a time.
    pub bulk: bool,
    /// The client whose value is on its way through this lane.
    pub uploading: Option<(u32, u32)>,
    /// A large reply on its way through this lane.
    pub download: Option<Download>,
    /// Of the reply under way: bytes that have come in parts, and what of them waits for the whole.
    pub part_bytes: u64,
    pub parts: Vec<u8>,
    /// Microseconds: since when its server could answer (it was opened, the login or a large message ended), and
    /// when bytes last came or went.
    pub free: u64,
    pub active: u64,
}

/// How far a lane is. Requests may be given to it in every phase; before `Ready` they are held.
#[derive(Debug)]
pub enum Phase {
    Connecting,
    Login(Conversation),
    /// Before a copy is given a write, the server must have answered on this very connection: one that was made while the
    /// server was frozen waits unseen in its queue, and would bring the write long after it was given up.
    Greeting,
    Ready,
}

/// Who waits for a reply.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    pub to: ReplyTo,
    pub command: u8,
    /// It may change what the server holds.
    pub changes: bool,
    /// Microseconds.
    pub sent: u64,
}

impl Waiter {
    pub const NOBODY: Self = Self {
        to: ReplyTo::Nobody,
        command: 0,
        changes: false,
        sent: 0,
    };
}

/// A large reply being passed on.
#[derive(Clone, Copy, Debug)]
pub struct Download {
    /// Client index, generation and slot; none: nobody wants it any more.
    pub to: Option<(u32, u32, u32)>,
    /// Bytes still to come, and of these the last ones that are not for the client.
    pub remaining: u64,
    pub trailer: u64,
    /// Others wait behind it: it is collected rather than held back at the server.
    pub collect: bool,
}

/// A worker's lanes to one member.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    /// Where small requests go.
    pub shared: Option<u32>,
    /// Bulk lanes, busy or idle.
    pub bulk: u32,
    /// Bulk lanes that wait for work.
    pub idle: Vec<u32>,
}

impl Lane {
    /// Where the bytes of requests go.
    pub fn requests(&mut self) -> &mut Vec<u8> {
        match self.phase {
            Phase::Ready => &mut self.stream.out,
            _ => &mut self.held,
        }
    }

    /// What was held may leave.
    pub fn ready(&mut self, now: u64) {
        self.phase = Phase::Ready;
        self.free = now;
        self.stream.out.append(&mut self.held);
    }

    /// The client that takes the reply under way as it comes.
    pub fn reader(&self) -> Option<(u32, u32)> {
        match (self.download, self.waiters.front()) {
            (Some(download), _) => download.to.map(|(client, generation, _)| (client, generation)),
            (
                None,
                Some(&Waiter {
                    to: ReplyTo::Client {
                        index, generation, ..
                    },
                    ..
                }),
            ) => Some((index, generation)),
            _ => None,
        }
    }

    /// Is a message on its way that may take as long as its bytes move?
    pub fn is_streaming(&self) -> bool {
        self.download.is_some() || self.part_bytes > 0
    }
}
