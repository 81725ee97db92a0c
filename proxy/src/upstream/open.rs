//! Which lane a request takes; connecting and logging in.

use std::sync::Arc;

use proxima_wire::message::{Class, Outcome, Parsed, Reply, Request};

use super::{BULK_LANES, Hold, Lane, LaneId, Lanes, Pace, Phase, UNREPAIRED, Waiter};
use crate::{
    client::WHOLE,
    dialect::{Change, Conversation, Effect, Failed, Login, Message, NO_UPGRADE},
    engine::{Engine, Peer},
    members::{Failure, Member},
    route::ReplyTo,
    stream::Stream,
};

/// Bytes that may wait for a server that takes none, as far as no client waits for the replies; beyond this such requests
/// are refused. Those that a client waits for are bounded by the clients' shares of memory.
const LANE_BYTES: usize = 16 << 20;

/// May this request change what a copy holds?
fn changes_copy(member: &Member, request: &Request, message: &[u8]) -> bool {
    member.copied.is_some_and(|copied| {
        request.class != Class::Read
            && !matches!(copied.effect(request, message), Effect::Look | Effect::LookAtHome)
    })
}

impl Engine {
    /// Hands a request to a lane of this member. `message` is the whole request, or the head of a streamed one.
    #[inline]
    pub(crate) fn send(
        &mut self,
        member: &Arc<Member>,
        login: u16,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        if !member.is_up() {
            return self.not_sent(member, request, message, to, Outcome::Ejected, member.refusal());
        }
        if member.is_copy() && !self.may_ask(member, request) {
            return self.not_sent(member, request, message, to, Outcome::Ejected, UNREPAIRED);
        }
        if request.is_dedicated {
            return self.send_dedicated(member, login, request, message, to);
        }
        let streamed = (message.len() as u64) < request.len();
        let id = if streamed {
            self.bulk_lane(member, login)
        } else {
            self.shared_lane(member, login)
        };
        self.give(id, member, request, message, to);
    }

    /// Writes a request into this lane's queue.
    #[inline(always)] // a hundredth of a pipelined request
    pub(super) fn give(
        &mut self,
        id: LaneId,
        member: &Arc<Member>,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        let streamed = (message.len() as u64) < request.len();
        let now = self.now;
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        if lane.limited && !member.dialect.is_common(request.command) {
            let what = lane.limit.clone();
            self.settle_lane(id);
            return self.not_sent(member, request, message, to, Outcome::LocalError, &what);
        }
        if request.is_unanswered && member.is_copy() {
            let what = "a copy must answer what it is told";
            return self.not_sent(member, request, message, to, Outcome::LocalError, what);
        }
        // What a client waits for is bounded by what it may have under way. What a copy is refused it misses, and our own
        // overload is not its failure.
        let is_bounded = matches!(to, ReplyTo::Client { .. }) && !request.is_unanswered;
        if lane.requests().len() > LANE_BYTES && !is_bounded && !member.is_copy() {
            let what = "too many requests wait for it";
            self.settle_lane(id);
            return self.not_sent(member, request, message, to, Outcome::Overloaded, what);
        }
        let requests = match lane.phase {
            Phase::Ready => lane.stream.filling(&mut self.spare),
            _ => &mut lane.held,
        };
        if request.quiet.is_empty() {
            requests.extend_from_slice(message);
        } else {
            if !member
                .dialect
                .rewrite(request, message, &Change::default(), requests)
            {
                let text = "this request cannot be sent without its quiet flag";
                self.settle_lane(id);
                return self.fail(to, &Failed::here(Outcome::LocalError, text));
            }
            let body = message.get(request.head as usize..).unwrap_or_default();
            requests.extend_from_slice(body);
        }
        lane.given += message.len() as u64;
        if !request.is_unanswered {
            // Written in its place: `push_back` is a call, and would copy what has just been written in parts, for which the
            // processor waits until its store buffer is empty.
            lane.waiters.push_back(Waiter::NOBODY);
            if let Some(waiter) = lane.waiters.back_mut() {
                *waiter = Waiter {
                    to,
                    command: request.command,
                    changes: changes_copy(member, request, message),
                    patience: if lane.dedicated { request.patience } else { 0 },
                    sent: now,
                };
            }
            self.servers.in_flight += 1;
        }
        if lane.stream.mark() {
            self.wishes.flush.push(Peer::Lane(id));
        }
        if streamed {
            lane.uploading = self.servers.uploader;
            lane.active = now;
            lane.pace = Pace::since(now);
            self.servers.uploads.push(id);
        }
        if request.is_unanswered {
            // That it is on its way is all that will ever be known.
            self.deliver(to, &Reply::new(Outcome::Ok, 0), b"");
            self.settle_lane(id);
        }
    }

    /// Sends a lane a piece of the value that is on its way through it.
    pub(crate) fn send_piece(&mut self, id: LaneId, piece: &[u8], is_last: bool) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        if lane.requests().is_empty() {
            // It has taken all so far: only from now on can it be late.
            lane.active = self.now;
        }
        lane.requests().extend_from_slice(piece);
        lane.given += piece.len() as u64;
        lane.pace.moved(piece.len() as u64);
        if is_last {
            lane.uploading = None;
        }
        self.flush_later(Peer::Lane(id));
        if is_last {
            self.settle_lane(id);
        }
    }

    /// The server is not given the request. If it is a copy, it has missed a change.
    #[cold]
    fn not_sent(
        &mut self,
        member: &Arc<Member>,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
        outcome: Outcome,
        what: &str,
    ) {
        if changes_copy(member, request, message) && !self.notes_misses(to) {
            let mut scratch = [0; 250];
            let key = member.dialect.key(request, message, &mut scratch);
            self.miss_aside(member, key, what);
        }
        self.fail(to, &Failed::at(&member.address, outcome, what));
    }

    pub(super) fn lanes_of(&mut self, member: &Member) -> &mut Lanes {
        let number = member.id.0 as usize;
        if self.servers.by_member.len() <= number {
            self.servers.by_member.resize_with(number + 1, Lanes::default);
        }
        &mut self.servers.by_member[number]
    }

    #[inline]
    fn shared_lane(&mut self, member: &Arc<Member>, login: u16) -> LaneId {
        if let Some(id) = self.lanes_of(member).shared(login) {
            return id;
        }
        let id = self.open_lane(member, login, false);
        self.lanes_of(member).share(login, id);
        id
    }

    fn bulk_lane(&mut self, member: &Arc<Member>, login: u16) -> LaneId {
        self.lanes_of(member);
        let lanes = &mut self.servers.by_member[member.id.0 as usize];
        let is_its = |&idle: &LaneId| {
            self.servers
                .lanes
                .get(idle)
                .is_some_and(|lane| lane.login == login)
        };
        if let Some(at) = lanes.idle.iter().position(is_its) {
            return lanes.idle.swap_remove(at);
        }
        // One that has logged in as somebody else is of no use, and takes a place.
        if lanes.bulk as usize >= BULK_LANES
            && let Some(other) = lanes.idle.pop()
        {
            self.drop_lane(other, "");
        }
        let id = self.open_lane(member, login, true);
        self.lanes_of(member).bulk += 1;
        id
    }

    pub(super) fn open_lane(&mut self, member: &Arc<Member>, login: u16, bulk: bool) -> LaneId {
        self.servers.logins.lane_opened(login);
        let now = self.now;
        let id = self.servers.lanes.insert(|generation| Lane {
            generation,
            member: Arc::clone(member),
            stream: Stream {
                transform: member.dialect.transform(member.end()),
                ..Stream::default()
            },
            local: None,
            phase: Phase::Connecting,
            held: Vec::new(),
            waiters: Default::default(),
            bulk,
            login,
            dedicated: false,
            owner: None,
            limited: false,
            limit: String::new(),
            uploading: None,
            download: None,
            part_bytes: 0,
            parts: Vec::new(),
            free: now,
            active: now,
            given: 0,
            uptake: None,
            hold: Hold::default(),
            pace: Pace::since(now),
        });
        self.wishes.connect.push(id);
        self.figures.lanes_opened += 1;
        id
    }

    /// The connection is made: log in, if the protocol asks for it.
    pub fn lane_connected(&mut self, id: LaneId) {
        let now = self.now;
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        lane.active = now;
        let login = lane.login;
        let words = self.servers.logins.words(login);
        if let Some(lane) = self.servers.lanes.get_mut(id) {
            lane.phase = Phase::Login(Box::new(Conversation {
                login: words,
                ..Conversation::default()
            }));
        }
        self.log_in(id, &[]);
    }

    /// A step of the login; returns how many bytes it used, none when it failed or needs more.
    pub(super) fn log_in(&mut self, id: LaneId, bytes: &[u8]) -> Option<usize> {
        let lane = self.servers.lanes.get_mut(id)?;
        let conversation = match &mut lane.phase {
            Phase::Login(conversation) => conversation,
            Phase::Greeting => return self.greeted(id, bytes),
            Phase::Connecting | Phase::Ready => return None,
        };
        let step = lane
            .member
            .dialect
            .login(conversation, bytes, &mut lane.stream.out);
        let used = match step {
            // What cannot be understood within the size of a reply never will be.
            Login::More { used: 0 } if bytes.len() as u64 > WHOLE => {
                let what = "greeting without an end";
                self.fail_lane(id, Failure::Garbage, Outcome::ConnectError, what);
                return None;
            }
            Login::More { used } => Some(used).filter(|&used| used > 0),
            // A login in which the server has spoken last is an answer on this very connection.
            Login::Ready { used } if lane.member.is_copy() && used == 0 => {
                lane.phase = Phase::Greeting;
                lane.stream.out.extend_from_slice(lane.member.dialect.probe().1);
                Some(used)
            }
            Login::Ready { used } => {
                lane.ready(self.now);
                Some(used)
            }
            Login::Limited { used, why } => {
                self.limit_lane(id, &why);
                Some(used)
            }
            Login::Upgrade { used } => {
                let transform = lane.member.dialect.upgrade(lane.member.end());
                let is_alone = used == bytes.len();
                if !transform.is_some_and(|transform| is_alone && lane.stream.upgrade(transform)) {
                    self.fail_lane(id, Failure::Garbage, Outcome::ConnectError, NO_UPGRADE);
                    return None;
                }
                // Whose turn it is to speak, the codec knows.
                self.log_in(id, &[]);
                Some(used).filter(|&used| used > 0)
            }
            Login::Refused(what) => {
                self.fail_lane(id, Failure::Garbage, Outcome::ConnectError, &what);
                return None;
            }
        };
        self.flush_later(Peer::Lane(id));
        used
    }

    /// The answer to the first question; returns how many bytes it was.
    fn greeted(&mut self, id: LaneId, bytes: &[u8]) -> Option<usize> {
        let lane = self.servers.lanes.get_mut(id)?;
        let dialect = lane.member.dialect;
        let (command, _) = dialect.probe();
        match dialect.reply(&mut lane.stream.parse, command, bytes) {
            Parsed::Head(Message::Last(reply)) if !reply.outcome.is_error() => {
                let used = bytes.get(..reply.len() as usize)?.len();
                lane.ready(self.now);
                self.flush_later(Peer::Lane(id));
                Some(used)
            }
            Parsed::More => None,
            _ => {
                let what = "no answer to the first question";
                self.fail_lane(id, Failure::Garbage, Outcome::ConnectError, what);
                None
            }
        }
    }
}
