//! A client's bytes become requests in the tree.
//!
//! ```text
//!  bytes ─▶ head? ─▶ whole (≤ 64 KiB)? ─▶ plan ─▶ slot + route
//!             │            └─ no: upload, alone, as it comes
//!             └─ not a request: the answer memcached gives
//! ```

use std::rc::Rc;

use proxima_wire::{
    fleet::MESSAGE_LIMIT,
    message::{Class, Parsed, Request},
};

use super::{Client, input::Input, sizes::WHOLE, stage::Stage, upload::UploadStart};
use crate::{
    engine::{ClientId, Endpoint, Engine},
    micros::Micros,
    reactor::Conn,
    route::Tree,
    upstream::Servers,
};

/// The number of requests of one client in one turn. A pipeline of 10,000 requests does not hold up other
/// clients.
const BUDGET: usize = 1024;

impl Engine {
    /// Takes plain bytes from a client.
    pub fn client_bytes(&mut self, id: ClientId, bytes: &[u8]) {
        // The client is borrowed field by field, because the rest of the engine is used beside it.
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        client.active = self.now;
        if client.stream.read_buffer.is_empty() && !client.stalled {
            let used = self.serve(id, bytes);
            if let Some(client) = self.clients.table.get_mut(id) {
                client.stream.keep(&bytes[used..], &mut self.buffers);
            }
        } else {
            client.stream.keep(bytes, &mut self.buffers);
            if !client.stalled {
                self.serve_read_buffer(id);
            }
        }
        self.after_serving(id);
    }

    /// Serves a client from what it has already sent. Replies have made room, or the client's budget of the
    /// last turn was used up.
    pub fn serve_again(&mut self, id: ClientId) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        client.queued = false;
        client.stalled = false;
        self.serve_read_buffer(id);
        if self
            .clients
            .table
            .get_mut(id)
            .is_some_and(|client| client.left_midway())
        {
            return self.close_client(id, false);
        }
        self.after_serving(id);
    }

    fn serve_read_buffer(&mut self, id: ClientId) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let (mut read_buffer, begun) = client.stream.take_read_buffer();
        let at = begun + self.serve(id, &read_buffer[begun..]);
        match self.clients.table.get_mut(id) {
            Some(client) if at < read_buffer.len() => {
                // The time of a line that is served as it comes runs from its beginning, not from its last
                // key; that of a login runs from its first step.
                if at > begun && !matches!(client.stage, Stage::Keys(_) | Stage::Login | Stage::Asking) {
                    client.half = Micros::NEVER;
                }
                client.stream.keep_rest(read_buffer, at);
            }
            // The next client that has sent half a request gets this buffer: clients keep only what they have
            // sent.
            _ => {
                read_buffer.clear();
                self.buffers.give(read_buffer);
            }
        }
    }

    /// Notes what a client holds now and what it waits for.
    fn after_serving(&mut self, id: ClientId) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        if client.is_midway() {
            client.half = client.half.min(self.now);
        } else {
            client.half = Micros::NEVER;
        }
        settle(client, self.clients.share, &self.servers, &mut self.actions.pause);
        self.clients.room.charge(client, client.unsent);
        self.keep_within_room();
    }

    /// Looks again whether a client is read: it may have got its connection to the server after it was
    /// stalled.
    pub(super) fn settle_reading(&mut self, id: ClientId) {
        if let Some(client) = self.clients.table.get_mut(id) {
            settle(client, self.clients.share, &self.servers, &mut self.actions.pause);
        }
    }

    /// Stalls a client. It is served again in the next turn if `again` is true, otherwise when there is room.
    pub(super) fn stall(&mut self, id: ClientId, again: bool) {
        if let Some(client) = self.clients.table.get_mut(id) {
            client.stalled = true;
        }
        if again {
            self.requeue(id);
        }
    }

    pub(crate) fn requeue(&mut self, id: ClientId) {
        if let Some(client) = self.clients.table.get_mut(id)
            && client.stalled
            && !client.queued
        {
            client.queued = true;
            self.actions.again.push(id);
        }
    }

    /// Takes as many requests from `bytes` as may be served now, and returns their size in bytes.
    fn serve(&mut self, id: ClientId, bytes: &[u8]) -> usize {
        let tree = &Rc::clone(&self.tree);
        let mut input = Input {
            tree,
            bytes,
            at: 0,
            budget: BUDGET,
            is_made: false,
        };
        while self.serve_next(id, &mut input) {}
        self.serve_pending(id, &input);
        input.at
    }

    /// Takes what comes next, by the stage of the session. Returns `false` if no more can be taken now.
    fn serve_next(&mut self, id: ClientId, input: &mut Input<'_>) -> bool {
        let Some(client) = self.clients.table.get_mut(id) else {
            return input.discard();
        };
        if client.closing {
            return input.discard();
        }
        match &mut client.stage {
            Stage::Dump(_) => {
                // A dump is sent behind what was asked before it.
                client.stalled = !client.slots.is_empty();
                !client.stalled && self.go_on_dumping(id)
            }
            Stage::Discard(left) => {
                let discarded = (*left).min(input.rest().len() as u64);
                *left -= discarded;
                let is_over = *left == 0;
                input.at += discarded as usize;
                if is_over {
                    client.stage = Stage::Requests;
                }
                is_over
            }
            Stage::Upload(upload) if upload.remaining == 0 && upload.is_open => self.next_piece(id, input),
            Stage::Upload(upload) if upload.remaining == 0 => {
                // An upload is alone to its end: what follows may not overtake it on another lane.
                if !client.slots.is_empty() {
                    client.stalled = !input.rest().is_empty();
                    return false;
                }
                client.stage = Stage::Requests;
                true
            }
            Stage::Upload(_) => {
                let used = self.pass_on(id, input.rest());
                input.at += used;
                used > 0
            }
            Stage::Asking => {
                client.stalled = true;
                false
            }
            _ if input.rest().is_empty() => false,
            Stage::Login => match self.admit(id, input.rest()) {
                Some(used) => {
                    input.at += used;
                    true
                }
                None => false,
            },
            Stage::Spread(_) => self.go_on_spreading(id, input),
            Stage::Requests | Stage::Seat(_) | Stage::Keys(_) => self.serve_requests(id, input),
        }
    }

    /// Takes the next request, or more keys of the one under way. Returns `false` if neither can be taken
    /// now.
    fn serve_requests(&mut self, id: ClientId, input: &mut Input<'_>) -> bool {
        let Some(client) = self.clients.table.get_mut(id) else {
            return input.discard();
        };
        if let Some(seq) = client.awaits {
            if client.slots.get(seq).is_some() {
                client.stalled = true;
                return false;
            }
            client.awaits = None;
        }
        if matches!(client.stage, Stage::Keys(_)) {
            return self.go_on_splitting(id, input);
        }
        if input.budget == 0 || !self.admits(id) {
            self.stall(id, input.budget == 0);
            return false;
        }
        input.budget -= 1;
        let Some(client) = self.clients.table.get_mut(id) else {
            return input.discard();
        };
        let (protocol, most) = (client.protocol, self.limits.value_bytes as u64);
        match &protocol.request(&mut client.stream.parse, input.rest(), most) {
            Parsed::More => false,
            Parsed::Bad(bad) => {
                self.wait_for_seat(id, None);
                let Some(client) = self.clients.table.get_mut(id) else {
                    return input.discard();
                };
                client.slots.push_answer(bad.reply, &mut client.stream.out);
                if bad.swallow > 0 {
                    client.stage = Stage::Discard(bad.swallow);
                }
                if bad.close {
                    client.close_as_failed();
                }
                input.at += (bad.head as usize).min(input.rest().len());
                self.metrics.clients.refused += 1;
                self.flush_later(Endpoint::Client(id));
                if !bad.why.is_empty() {
                    self.report_foreign_protocol(bad.why);
                }
                true
            }
            Parsed::Head(request) => self.serve_request(id, request, input),
        }
    }

    /// Takes a request whose head has come. Returns `false` if it cannot be taken now, or is not all there.
    fn serve_request(&mut self, id: ClientId, request: &Request, input: &mut Input<'_>) -> bool {
        let declared;
        let request = match self.declared(id, request, input.tree, input.rest()) {
            Some(request) => {
                declared = request;
                &declared
            }
            None => request,
        };
        if !request.more_keys.is_empty()
            && let Some(is_over) = self.split(id, request, input)
        {
            return is_over;
        }
        let len = request.len();
        let is_there = input.rest().len() as u64 >= len;
        // Keys and channels of several members are found in a request that is all there, and so is what goes
        // to every member or is answered here.
        let is_spread = || {
            let has_no_key = request.key.is_empty() && matches!(request.class, Class::Admin | Class::Session);
            is_there && (has_no_key || !request.more_keys.is_empty())
        };
        if len > WHOLE
            && !is_spread()
            && !(is_there && self.subscribes(id, request))
            && len > self.whole_limit(id)
        {
            // No other request of this client may overtake an upload, nor be overtaken by it.
            let is_alone = self
                .clients
                .table
                .get(id)
                .is_some_and(|client| client.slots.is_empty());
            let begun = match is_alone {
                true => self.begin_upload(id, input.tree, request, input.rest()),
                false => UploadStart::Later,
            };
            if begun != UploadStart::Yes {
                if let Some(client) = self.clients.table.get_mut(id) {
                    client.stalled = begun == UploadStart::Later;
                }
                return false;
            }
            input.at += request.head as usize;
            return true;
        }
        // What follows an open request's body has to come, too, before it is whole.
        let Some(message) = input.rest().get(..len as usize).filter(|_| !request.is_open) else {
            return false;
        };
        if self.clients.waiting_uploads > 0 {
            // A reload may have made a request that waited for a seat one that needs none.
            self.wait_for_seat(id, None);
        }
        let next = input.rest().get(len as usize..).unwrap_or_default();
        self.preload_next(id, next);
        let taken = self.request(id, request, message, input);
        self.preload_rest();
        input.at += len as usize * usize::from(taken);
        taken
    }

    /// The request as the configuration declares it, or as its client's session makes it a shorter one.
    /// `None` if neither changes the request.
    #[inline]
    pub(super) fn declared(
        &self,
        id: ClientId,
        request: &Request,
        tree: &Tree,
        bytes: &[u8],
    ) -> Option<Request> {
        if request.class != Class::Session {
            return None;
        }
        let client = self.clients.table.get(id)?;
        let declared = tree.declared(usize::from(client.listener));
        if declared.commands.is_empty() && !client.session.plans_all {
            return None;
        }
        let message = bytes.get(..request.len() as usize)?;
        client
            .protocol
            .resolve(&client.session, declared, request, message)
    }

    /// Does this request change its client's subscriptions?
    fn subscribes(&self, id: ClientId, request: &Request) -> bool {
        let client = self.clients.table.get(id);
        let channels = client.and_then(|client| client.protocol.channels());
        channels.is_some_and(|channels| channels.change(request.command).is_some())
    }

    /// The largest request that is held whole, in bytes. The embedded store takes a value whole or not at
    /// all, so a request that may be for the store is held up to the size of the store's largest item.
    fn whole_limit(&self, id: ClientId) -> u64 {
        const HEAD: u64 = 4096;
        let listener = self
            .clients
            .table
            .get(id)
            .map_or(usize::MAX, |client| usize::from(client.listener));
        if self.tree.has_fleet_pool() {
            // A change of a fleet is sent to several peers, each at its own time.
            MESSAGE_LIMIT as u64
        } else if self.tree.needs_values(listener) {
            self.limits.value_bytes as u64 + HEAD
        } else if self.tree.reaches_store(listener) {
            self.store.limits().item as u64 + HEAD
        } else {
            WHOLE
        }
    }
}

/// Reads a client, or stops reading it. A stalled client is not read, so that what it sends next stays in its
/// own socket. One whose server lets it wait is read a little further, because the end of what it sends is to
/// be seen.
#[inline]
fn settle(client: &mut Client, share: usize, servers: &Servers, pause: &mut Vec<(Conn, bool)>) {
    let reads_on = client.stalled
        && client.stream.read_buffer.len() < share / 2
        && client.own.is_some_and(|own| servers.lets_wait(own));
    let pauses = client.stalled && !reads_on;
    if let Some(conn) = client.stream.conn
        && pauses != client.stream.paused
    {
        client.stream.paused = pauses;
        pause.push((conn, pauses));
    }
}
