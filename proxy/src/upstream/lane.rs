//! One connection of one worker to one member.

use std::{collections::VecDeque, sync::Arc};

use crate::{dialect::Conversation, members::Member, route::ReplyTo, stream::Stream};

/// A lane.
pub struct Lane {
    pub generation: u32,
    pub member: Arc<Member>,
    pub stream: Stream,
    pub phase: Phase,
    /// Requests in the order in which they were sent.
    pub waiters: VecDeque<Waiter>,
    /// One message at a time.
    pub bulk: bool,
    /// The client whose value is on its way through this lane.
    pub uploading: Option<(u32, u32)>,
    /// A large reply on its way through this lane.
    pub download: Option<Download>,
    /// Microseconds: when it was opened, and when bytes last came or went.
    pub opened: u64,
    pub active: u64,
}

/// How far a lane is. Requests may be given to it in every phase; before `Ready` they wait in it.
#[derive(Debug)]
pub enum Phase {
    Connecting,
    /// Logging in; what is said meanwhile must not mix with requests, so these wait here.
    Login { conversation: Conversation, requests: Vec<u8> },
    Ready,
}

/// Who waits for a reply.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    pub to: ReplyTo,
    pub command: u8,
    /// Microseconds.
    pub sent: u64,
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
        match &mut self.phase {
            Phase::Login { requests, .. } => requests,
            _ => &mut self.stream.out,
        }
    }
}
