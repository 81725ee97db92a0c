//! Uploads: requests that are too large for a shared lane are passed on as they come.

use std::{rc::Rc, time::Duration};

use proxima_wire::message::{Outcome, Parsed, Request};

use super::{
    ReplyRole,
    errors::REMOVED,
    input::Input,
    sizes::HIGH_WATER,
    stage::{Stage, Upload, WantedSeat},
};
use crate::{
    copies::LastByte,
    engine::{ClientId, Endpoint, Engine, LaneId, ReplyTo, WorkerEvent},
    members::Member,
    micros::Micros,
    protocol::{Failed, Plan, Session},
    route::{Tree, Walk},
};

/// The longest wait of an upload for a seat; a shorter `limits.write_timeout` goes before it.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The error for a large request that carries no value.
const TOO_LARGE: &str = "this request is too large";
/// The error of a request whose rest cannot be read, for all but its client.
const BROKEN_OFF: &str = "the client's request breaks off";

/// The result of beginning a request that is too large for a shared lane.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UploadStart {
    /// The head of the request is on its way, or the request is rejected.
    Yes,
    /// The request waits for a seat, and its client is read no further.
    Later,
    /// The request gets a seat when all of it is here.
    Whole,
}

impl Engine {
    /// Begins a request that is too large for a shared lane: its head is dispatched, and its body follows as
    /// it comes.
    pub(super) fn begin_upload(
        &mut self,
        id: ClientId,
        tree: &Rc<Tree>,
        request: &Request,
        rest: &[u8],
    ) -> UploadStart {
        let Some(client) = self.clients.table.get_mut(id) else {
            return UploadStart::Later;
        };
        let is_whole = rest.len() as u64 >= request.len();
        if client.eof && !is_whole {
            // The rest of the request will never come.
            self.close_client(id, false);
            return UploadStart::Later;
        }
        let listener = client.listener;
        let number = client.number(request.command);
        let Some(root) = tree.root(usize::from(listener)) else {
            self.discard_rest(id, request);
            self.reject(id, request, &Failed::here(Outcome::LocalError, REMOVED));
            return UploadStart::Yes;
        };
        let reach = tree.reach(usize::from(listener));
        let Some(head) = rest.get(..request.head as usize) else {
            return UploadStart::Later;
        };
        let reach = reach.iter().map(AsRef::as_ref);
        if let Some(member) = self.servers.find_full(reach, is_whole, self.now) {
            return self.wait_or_reject(id, request, is_whole, member);
        }
        self.wait_for_seat(id, None);
        self.metrics.asked(number);
        let Some((is_dedicated, mut before)) = self.passes(id, request, rest) else {
            return UploadStart::Yes;
        };
        let request = &Request {
            is_dedicated,
            ..request.behind(before.len())
        };
        before.extend_from_slice(head);
        let head = &before[..];
        let Some(client) = self.clients.table.get_mut(id) else {
            return UploadStart::Later;
        };
        let origin = client.origin(id);
        self.metrics.clients.uploads += 1;
        let seq = client
            .slots
            .push(request.command, request.is_quiet, ReplyRole::Whole, 0, self.now);
        self.servers.begin_upload(id);
        self.copies.begin_streamed();
        let walk = Walk {
            tree,
            origin,
            request,
            message: head,
            to: ReplyTo::Client { client: id, seq },
        };
        self.walk(root, &walk);
        let waits = self.servers.upload_waits();
        let (lanes, changes) = (self.servers.upload_lanes(), self.copies.take_streamed());
        if let Some(client) = self.clients.table.get_mut(id) {
            client.stage = Stage::Upload(Box::new(Upload {
                seq: Some(seq),
                remaining: request.body,
                is_open: request.is_open,
                lanes,
                waits,
                changes,
                due: None,
            }));
        }
        UploadStart::Yes
    }

    /// Makes an upload wait for a seat at this member, which has none, or rejects it after the longest wait.
    fn wait_or_reject(
        &mut self,
        id: ClientId,
        request: &Request,
        is_whole: bool,
        member: &Member,
    ) -> UploadStart {
        if !is_whole && request.len() <= self.clients.share as u64 {
            return UploadStart::Whole;
        }
        let Some(client) = self.clients.table.get_mut(id) else {
            return UploadStart::Later;
        };
        let most = Micros::from(self.limits.write_timeout.min(LONGEST_WAIT));
        let due = client.wanted_seat().map_or(self.now + most, |seat| seat.due);
        if self.now < due {
            let bytes = request.len();
            self.wait_for_seat(id, Some(WantedSeat { due, bytes }));
            return UploadStart::Later;
        }
        self.discard_rest(id, request);
        let what = "too many large values are on their way to it";
        self.reject(
            id,
            request,
            &Failed::at(&member.address, Outcome::Overloaded, what),
        );
        UploadStart::Yes
    }

    /// Returns whether this upload takes a lane of the client's own, and the request to be sent before it.
    /// `None` if the session does not let it pass: it is answered, and its rest is thrown away.
    fn passes(&mut self, id: ClientId, request: &Request, rest: &[u8]) -> Option<(bool, Vec<u8>)> {
        let client = self.clients.table.get_mut(id)?;
        if !client.plans(request) {
            return Some((false, Vec::new()));
        }
        // An upload begins only when nothing else is due to its client.
        let mut new = Session::NEW;
        let session = client.session.or(&mut new);
        session.is_idle = true;
        session.reach = self.tree.reach_of(usize::from(client.listener));
        let mut answer = std::mem::take(&mut self.scratch);
        let plan = client.protocol.plan(session, request, rest, &mut answer);
        session.follows_tree = false;
        if std::mem::take(&mut session.leaves_lane) {
            self.leave_lane(id);
        }
        if !self.follow_login(id) {
            self.reject_login(id);
            return None;
        }
        let client = self.clients.table.get_mut(id)?;
        client.closing |= matches!(plan, Plan::Close | Plan::CloseAsFailed);
        client.failed |= plan == Plan::CloseAsFailed;
        let passes = matches!(plan, Plan::Route | Plan::Dedicated)
            .then(|| (plan == Plan::Dedicated, std::mem::take(&mut answer)));
        if passes.is_none() {
            self.discard_rest(id, request);
        }
        match plan {
            Plan::Route | Plan::Dedicated => {}
            Plan::Close | Plan::CloseAsFailed => self.flush_later(Endpoint::Client(id)),
            Plan::Alone | Plan::Instead | Plan::Later | Plan::Answer => {
                self.answer_here(id, &answer, request.is_quiet);
            }
            Plan::Reject(text) => self.reject_by_codec(id, request, &Failed::here(Outcome::LocalError, text)),
            Plan::Shutdown => self.actions.events.push(WorkerEvent::Shutdown),
            Plan::Subscribe
            | Plan::Spread { .. }
            | Plan::Everywhere
            | Plan::Visit
            | Plan::Broadcast
            | Plan::Admit
            | Plan::Stats
            | Plan::Consult
            | Plan::Counters
            | Plan::Connection
            | Plan::Announce(_) => {
                self.reject(id, request, &Failed::here(Outcome::LocalError, TOO_LARGE));
            }
        }
        answer.clear();
        self.scratch = answer;
        passes
    }

    /// Passes body bytes of an upload on and returns how many. They are fewer than all when a server is slow
    /// to take them.
    pub(super) fn pass_on(&mut self, id: ClientId, bytes: &[u8]) -> usize {
        let Some(client) = self.clients.table.get_mut(id) else {
            return bytes.len();
        };
        let Stage::Upload(upload) = &mut client.stage else {
            return 0;
        };
        if upload.waits || self.servers.is_slow(&mut upload.lanes, HIGH_WATER) {
            client.stalled = true;
            return 0;
        }
        // The last byte of an open request is not known yet.
        let is_held = !upload.changes.is_empty() && !upload.is_open;
        let open = upload.remaining - u64::from(is_held);
        if open == 0 && !bytes.is_empty() {
            return if self.may_end(id) {
                self.pass_on(id, bytes)
            } else {
                0
            };
        }
        let used = open.min(bytes.len() as u64) as usize;
        upload.remaining -= used as u64;
        let done = !upload.goes_on();
        for lane in upload.lanes.clone() {
            self.send_piece(lane, &bytes[..used], done);
        }
        used
    }

    /// An upload that has waited for a dedicated lane goes on to these; none: its request was answered, and
    /// its rest is thrown away.
    pub(crate) fn begin_queued_upload(&mut self, id: ClientId, lanes: Vec<LaneId>) {
        if let Some(client) = self.clients.table.get_mut(id)
            && let Stage::Upload(upload) = &mut client.stage
        {
            upload.waits = false;
            upload.lanes = lanes;
            self.requeue(id);
        }
    }

    /// This lane takes nothing more of the value that a client sends.
    pub(crate) fn leave_lane_of_upload(&mut self, id: ClientId, lane: LaneId) {
        if let Some(client) = self.clients.table.get_mut(id)
            && let Stage::Upload(upload) = &mut client.stage
        {
            upload.lanes.retain(|&other| other != lane);
            self.requeue(id);
        }
    }

    /// Counts the bytes of an open request that come next. Returns `false` if more of them are needed.
    pub(super) fn next_piece(&mut self, id: ClientId, input: &mut Input<'_>) -> bool {
        let most = self.limits.value_bytes as u64;
        let Some(client) = self.clients.table.get_mut(id) else {
            return false;
        };
        let parsed = client
            .protocol
            .piece(&mut client.stream.parse, input.rest(), most);
        let Stage::Upload(upload) = &mut client.stage else {
            return false;
        };
        match parsed {
            Parsed::More => false,
            Parsed::Head(piece) => {
                upload.remaining = piece.len;
                upload.is_open = !piece.is_last;
                true
            }
            Parsed::Bad(bad) => {
                // The servers wait for bytes that will not come.
                let lanes = std::mem::take(&mut upload.lanes);
                upload.is_open = false;
                let seq = upload.seq;
                client.close_as_failed();
                if let Some(seq) = seq {
                    self.answer_badly(id, seq, bad.reply);
                }
                self.drop_upload(lanes, BROKEN_OFF);
                self.flush_later(Endpoint::Client(id));
                true
            }
        }
    }

    /// Throws away what follows the head of this request.
    fn discard_rest(&mut self, id: ClientId, request: &Request) {
        if !request.is_open {
            return self.discard(id, request.body);
        }
        self.wait_for_seat(id, None);
        if let Some(client) = self.clients.table.get_mut(id) {
            client.stage = Stage::Upload(Box::new(Upload {
                seq: None,
                remaining: request.body,
                is_open: true,
                lanes: Vec::new(),
                waits: false,
                changes: Vec::new(),
                due: None,
            }));
        }
    }

    /// Returns whether the last byte of an upload may leave, or the upload is rejected. Otherwise the client
    /// waits.
    fn may_end(&mut self, id: ClientId) -> bool {
        let Some(client) = self.clients.table.get_mut(id) else {
            return false;
        };
        let Stage::Upload(upload) = &mut client.stage else {
            return false;
        };
        let since = *upload.due.get_or_insert(self.now);
        let changes = std::mem::take(&mut upload.changes);
        let end = self.lock_streamed(id, &changes, since);
        let Some(client) = self.clients.table.get_mut(id) else {
            return false;
        };
        match (end, &mut client.stage) {
            (LastByte::Never(text), Stage::Upload(upload)) => {
                let lanes = std::mem::take(&mut upload.lanes);
                self.drop_upload(lanes, text);
            }
            (LastByte::Later, Stage::Upload(upload)) => {
                upload.changes = changes;
                client.stalled = true;
            }
            _ => {}
        }
        end != LastByte::Later
    }

    /// Closes lanes whose servers have a part of a value and wait for the rest: these lanes are of no more
    /// use.
    pub(super) fn drop_upload(&mut self, lanes: Vec<LaneId>, text: &str) {
        for lane in lanes {
            self.drop_lane(lane, text);
        }
    }
}
