//! Replies become a client's bytes.

use proxima_wire::message::{Outcome, Reply, Request};

use super::{ReplyRole, SharedReply, slots::SharedReplyRest, stage::Stage};
use crate::{
    engine::{ClientId, Endpoint, Engine, PassedReply, ReplyTo, WorkerEvent},
    metrics::Metrics,
    micros::Micros,
    protocol::{Failed, Fate, Protocol, Retention},
};

/// Counts an error reply by its word.
#[cold]
fn count_error(metrics: &mut Metrics, protocol: &dyn Protocol, bytes: &[u8]) {
    let word = protocol.error_word(bytes);
    if !word.is_empty() {
        metrics.errors.count(word);
    }
}

impl Engine {
    /// Answers a client's request.
    #[inline]
    pub(crate) fn answer(&mut self, id: ClientId, seq: u32, reply: &Reply, bytes: &[u8]) {
        // The client is borrowed field by field, because the rest of the engine is used beside it.
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let Some(slot) = client.slots.get(seq) else { return };
        let micros = (self.now - slot.started).0;
        self.metrics.replied(
            client.number(slot.command),
            reply.outcome,
            micros,
            client.listener,
        );
        if reply.outcome.is_error() {
            count_error(&mut self.metrics, client.protocol, bytes);
            if slot.role == ReplyRole::Part
                && let Some(text) = client.protocol.error_of_part(reply.outcome)
            {
                return self.answer_for_part(id, seq, reply.outcome, text);
            }
        }
        client.reply_size = bytes.len().max(client.reply_size - client.reply_size / 4);
        client.active = self.now;
        if slot.role == ReplyRole::Number && !reply.outcome.is_error() {
            return self.count_part(id, seq, reply, bytes);
        }
        let silenced = slot.quiet && client.protocol.silenced(slot.command, reply.outcome);
        let at = bytes.as_ptr() as usize;
        if self.borrowed.contains(&at)
            && !silenced
            && !self.servers.has_paused_lanes()
            && !self.clients.draining
            && client.takes_at_once()
            && client.slots.answer_alone(seq)
        {
            return self.actions.pass.push(PassedReply {
                client: id,
                range: at - self.borrowed.start..at - self.borrowed.start + bytes.len(),
            });
        }
        let out = client.stream.filling(&mut self.buffers);
        client.slots.answer(seq, reply, bytes, silenced, out);
        if client.stream.mark() {
            self.actions.flush.push(Endpoint::Client(id));
        }
        if client.stalled {
            self.requeue(id);
        }
    }

    /// Answers a client's request with a large reply that others get as well. It leaves in pieces, as the
    /// client takes them. Returns `false` if the client needs the reply in one piece, or has gone.
    pub(crate) fn answer_shared(
        &mut self,
        (id, seq): (ClientId, u32),
        reply: &Reply,
        reply_bytes: SharedReply<'_>,
    ) -> bool {
        let Some(client) = self.clients.table.get_mut(id) else {
            return false;
        };
        let Some(slot) = client.slots.get(seq) else {
            return false;
        };
        let trailer = match slot.role {
            ReplyRole::Whole => 0,
            ReplyRole::Body => reply.trailer as usize,
            ReplyRole::Number | ReplyRole::Part => return false,
        };
        let (command, micros) = (client.number(slot.command), (self.now - slot.started).0);
        self.metrics
            .replied(command, reply.outcome, micros, client.listener);
        client.reply_size = client.reply_size.max(reply_bytes.bytes.len());
        client.active = self.now;
        let shared = SharedReplyRest::new(reply_bytes, trailer);
        client.slots.answer_shared(seq, shared, &mut client.stream.out);
        self.clients.room.charge(client, client.unsent);
        let stalled = client.stalled;
        self.flush_later(Endpoint::Client(id));
        if stalled {
            self.requeue(id);
        }
        true
    }

    /// Takes this text in place of the error with which a server has answered a part of a request.
    #[cold]
    fn answer_for_part(&mut self, id: ClientId, seq: u32, outcome: Outcome, text: &[u8]) {
        self.count_failed(id, seq);
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let reply = Reply::new(outcome, text.len());
        let out = &mut client.stream.out;
        client.slots.answer(seq, &reply, text, false, out);
        self.flush_later(Endpoint::Client(id));
        self.requeue(id);
    }

    /// Counts a request that failed, once however many of its parts fail. One whose client wants no reply is
    /// not counted.
    #[cold]
    fn count_failed(&mut self, id: ClientId, seq: u32) {
        if let Some(client) = self.clients.table.get(id)
            && client.slots.fails_first(seq)
        {
            self.metrics.listener(client.listener).failed += 1;
        }
    }

    /// Takes a reply of which only the number counts.
    #[cold]
    fn count_part(&mut self, id: ClientId, seq: u32, reply: &Reply, bytes: &[u8]) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let number = client.protocol.number(reply, bytes);
        client.slots.count(seq, number, &mut client.stream.out);
        self.flush_later(Endpoint::Client(id));
        self.requeue(id);
    }

    /// Takes a piece of a large reply for this slot of a client. It leaves straight from the buffer in which
    /// it came, or waits in the client's buffer. Returns how many bytes wait for the client in all; `None`:
    /// the client has gone.
    pub(crate) fn pass_piece(&mut self, to: (ClientId, u32), piece: &[u8], is_last: bool) -> Option<usize> {
        let (id, seq) = to;
        let client = self.clients.table.get_mut(id)?;
        client.slots.begin(seq);
        let at = piece.as_ptr() as usize;
        if self.borrowed.contains(&at)
            && !piece.is_empty()
            && !self.servers.has_paused_lanes()
            && !self.clients.draining
            && client.takes_at_once()
            && client.slots.passes(seq, is_last)
        {
            if is_last {
                client.slots.finish(seq, &mut client.stream.out);
            }
            let start = at - self.borrowed.start;
            match self.actions.pass.last_mut() {
                Some(last) if last.client == id && last.range.end == start => last.range.end += piece.len(),
                _ => self.actions.pass.push(PassedReply {
                    client: id,
                    range: start..start + piece.len(),
                }),
            }
            return Some(0);
        }
        client.slots.more(seq, piece, &mut client.stream.out);
        // The sum counts all that waits for this client, because many large replies that come before their
        // turn need not be large each.
        let waiting = client.slots.buffered() + client.stream.out.len();
        if is_last {
            client.slots.finish(seq, &mut client.stream.out);
        }
        self.clients.room.charge(client, client.unsent);
        let stalled = client.stalled;
        self.flush_later(Endpoint::Client(id));
        if is_last && stalled {
            self.requeue(id);
        }
        Some(waiting)
    }

    /// Tells a client in its protocol's words that its request has failed.
    pub(crate) fn answer_failed(&mut self, id: ClientId, seq: u32, failed: &Failed<'_>) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        if !client.slots.forget(seq) {
            // A reply that had begun to leave broke off: the client must not take the error for the rest of
            // it.
            return self.close_client(id, true);
        }
        let command = client.slots.get(seq).map_or(0, |slot| slot.command);
        if client.session.retention != Retention::Clean {
            self.fail_retained(id, command, failed);
        }
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let mut line = Vec::with_capacity(64);
        client
            .protocol
            .failure(&client.session, command, failed, &mut line);
        let reply = Reply::new(failed.outcome, line.len());
        self.count_failed(id, seq);
        self.answer(id, seq, &reply, &line);
    }

    /// Answers a request whose rest cannot be read in the codec's words. What servers say to it comes too
    /// late.
    #[cold]
    pub(super) fn answer_badly(&mut self, id: ClientId, seq: u32, text: &[u8]) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        if !client.slots.forget(seq) {
            // The client must not take the error for the rest of a reply.
            return self.close_client(id, true);
        }
        self.count_failed(id, seq);
        self.answer(id, seq, &Reply::new(Outcome::ClientError, text.len()), text);
    }

    /// A request of a client for which a server keeps something has failed. If it may have reached a server,
    /// it is not known what that keeps from now on: the client is closed.
    #[cold]
    fn fail_retained(&mut self, id: ClientId, command: u16, failed: &Failed<'_>) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let (own, protocol) = (client.own, client.protocol);
        let is_unsent = failed.server.is_empty() && failed.fate == Fate::Unsent;
        let session = client.session.get_mut().filter(|_| is_unsent);
        let stays = session.is_some_and(|session| protocol.rejected(session, command, own.is_some()));
        client.closing |= !stays;
        match own {
            Some(own) => self.give_back(own),
            None => self.end_spoilt(id),
        }
    }

    /// Notes that nothing is kept for a client any more that has no lane for it.
    pub(super) fn end_spoilt(&mut self, id: ClientId) {
        if let Some(client) = self.clients.table.get_mut(id)
            && matches!(client.session.retention, Retention::Spoilt | Retention::Dirty)
            && let Some(session) = client.session.get_mut()
        {
            session.retention = Retention::Clean;
        }
    }

    /// Sends an answer that the session knows by itself, in its turn.
    pub(super) fn answer_here(&mut self, id: ClientId, answer: &[u8], quiet: bool) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        if quiet {
            return;
        }
        client.slots.push_answer(answer, &mut client.stream.out);
        let peer = Endpoint::Client(id);
        self.flush_later(peer);
    }

    /// Rejects a request with an error of the proxy. If a server keeps something for the client, the server
    /// has missed this request, and the client is closed.
    pub(super) fn reject(&mut self, id: ClientId, request: &Request, failed: &Failed<'_>) {
        if let Some(client) = self.clients.table.get_mut(id) {
            let retention = client.session.retention;
            client.closing |= retention != Retention::Clean && !retention.is_passing();
        }
        self.reject_by_codec(id, request, failed);
    }

    /// Rejects a request with an error that the codec has found.
    pub(super) fn reject_by_codec(&mut self, id: ClientId, request: &Request, failed: &Failed<'_>) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let mut out = std::mem::take(&mut self.scratch);
        client
            .protocol
            .failure(&client.session, request.command, failed, &mut out);
        self.metrics.clients.refused += 1;
        self.answer_here(id, &out, request.is_quiet);
        out.clear();
        self.scratch = out;
    }

    /// Reports that a client speaks another protocol. One report a second is enough for a log; each such
    /// client is counted.
    #[cold]
    pub(super) fn report_foreign_protocol(&mut self, why: &'static str) {
        const PAUSE: Micros = Micros::secs(1);
        if self
            .clients
            .foreign_protocol_reported
            .is_none_or(|told| (self.now - told) >= PAUSE)
        {
            self.clients.foreign_protocol_reported = Some(self.now);
            self.actions.events.push(WorkerEvent::ForeignProtocol(why));
        }
    }

    /// Notes that a client has taken bytes: it is served further, and servers that were held back for it go
    /// on.
    pub fn client_drained(&mut self, id: ClientId) {
        if let Some(client) = self.clients.table.get_mut(id) {
            client.slots.go_on(&mut client.stream.out);
        }
        self.charge(id, 0);
        self.requeue(id);
        self.resume_lanes(id);
    }

    /// Takes the head of a large reply to this slot. Returns how many of the last bytes of the reply are not
    /// for the client; `None`: the client has gone.
    pub(crate) fn begin_large_reply(
        &mut self,
        (id, seq): (ClientId, u32),
        reply: &Reply,
        head: &[u8],
    ) -> Option<u64> {
        let client = self.clients.table.get_mut(id)?;
        let slot = client.slots.get(seq)?;
        let trailer = match slot.role {
            ReplyRole::Whole => 0,
            ReplyRole::Body | ReplyRole::Number | ReplyRole::Part => u64::from(reply.trailer),
        };
        let (command, micros) = (client.number(slot.command), (self.now - slot.started).0);
        client.reply_size = client.reply_size.max(reply.len() as usize);
        self.metrics
            .replied(command, reply.outcome, micros, client.listener);
        self.pass_piece((id, seq), head, false);
        Some(trailer)
    }

    /// Makes what this client asks next wait for the answer to `to`: it may be about the same key.
    pub(crate) fn hold_requests_behind(&mut self, to: ReplyTo) {
        if let Some((id, seq)) = self.slot_of(to)
            && let Some(client) = self.clients.table.get_mut(id)
        {
            client.awaits = Some(seq);
        }
    }

    /// Closes a client after what is due, for what it has sent.
    pub(crate) fn close_as_failed(&mut self, id: ClientId) {
        if let Some(client) = self.clients.table.get_mut(id) {
            client.close_as_failed();
            self.flush_later(Endpoint::Client(id));
        }
    }

    /// Closes a client that gives or takes its bytes too slowly.
    pub(crate) fn close_slow(&mut self, id: ClientId) {
        if self.clients.table.get(id).is_some() {
            self.metrics.clients.slow += 1;
            self.close_client(id, true);
        }
    }

    /// Closes a client and forgets what it waits for: replies to it are dropped.
    pub(crate) fn close_client(&mut self, id: ClientId, abort: bool) {
        let Some(mut client) = self.clients.table.remove(id) else {
            return;
        };
        if let Some(conn) = client.stream.conn {
            if !abort {
                let farewell = client.stream.farewell(b"");
                self.actions.farewells.extend(farewell.map(|bytes| (conn, bytes)));
            }
            self.actions.close.push((conn, abort));
        }
        self.metrics.clients.closed += 1;
        let counts = self.metrics.listener(client.listener);
        if client.failed || abort && !client.eof {
            counts.errors += 1;
        } else if client.eof || client.closing {
            counts.eof += 1;
        }
        self.discharge(client.charged);
        self.clients.waiting_uploads -= usize::from(client.wanted_seat().is_some());
        self.share_memory();
        self.clients.register.closed(self.facts.worker, id.index());
        self.resume_lanes(id);
        self.servers.leave_login(client.login);
        self.leave_own_lane(client.own, client.session.retention);
        if client.awaits.is_some() {
            self.leave_queues(id);
        }
        if let Some(subscriptions) = &client.subscriptions {
            self.drop_subscribed(subscriptions);
        }
        if let Stage::Upload(upload) = client.stage
            && upload.goes_on()
        {
            self.drop_upload(upload.lanes, "its client left in the middle of a value");
        }
    }

    /// Returns whether nothing more is due to this client and it will ask for nothing more.
    pub fn is_finished(&self, id: ClientId) -> bool {
        let Some(client) = self.clients.table.get(id) else {
            return true;
        };
        // What a server keeps for a client (a transaction, a subscription) is not taken away from it.
        let is_retained = client.own.is_some() && !client.session.retention.is_passing();
        let is_kept = is_retained || client.subscriptions.is_some();
        let is_led_away = (self.clients.draining || client.retires) && !is_kept;
        let leaves = client.closing || client.eof || is_led_away;
        let sent = client.stream.out.is_empty() && client.stream.wire.is_empty();
        let idle = client.slots.is_empty()
            && sent
            && !matches!(client.stage, Stage::Dump(_))
            && (client.closing || !client.is_uploading());
        // Half a request does not become a whole one after the end; whole requests that wait for their turn
        // are still served.
        let between = client.stream.read_buffer.is_empty() && !matches!(client.stage, Stage::Keys(_));
        leaves && idle && (client.closing || !client.stalled && (between || client.eof))
    }

    /// Notes that the client has closed its side: what is due is still delivered.
    pub fn client_eof(&mut self, id: ClientId) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        client.eof = true;
        let leaves = client.left_midway() || client.is_subscribing() && !client.stalled;
        let blocked = self
            .clients
            .table
            .get(id)
            .filter(|client| self.is_blocked(client));
        if leaves || blocked.is_some() {
            return self.close_client(id, false);
        }
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        if client.wanted_seat().is_some() {
            // The upload is served now, or its rest will never come.
            self.requeue(id);
        }
        // The flush closes the client when nothing is due, in the socket's buffer either.
        self.flush_later(Endpoint::Client(id));
    }

    /// Closes a client whose connection is broken.
    pub fn client_failed(&mut self, id: ClientId) {
        if let Some(client) = self.clients.table.get_mut(id) {
            // What has left already, or was asked to, cannot fail.
            client.failed |= !(client.eof || client.closing);
            self.close_client(id, false);
        }
    }
}
