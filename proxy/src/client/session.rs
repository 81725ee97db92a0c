//! From a client's bytes to requests in the tree.
//!
//! ```text
//!  bytes ─▶ head? ─▶ whole (≤ 64 KiB)? ─▶ plan ─▶ slot + route
//!             │            └─ no: upload, alone, as it comes
//!             └─ not a request: the answer memcached gives
//! ```

use std::rc::Rc;

use proxima_wire::message::{Outcome, Parsed, Request};

use super::{Part, split::OUT_OF_MEMORY, upload::Begun};
use crate::{
    dialect::{Failed, Plan},
    engine::{Engine, Peer},
    route::{Ahead, ReplyTo, TOGETHER, Tree},
    stream::Stream,
};

/// Only a request up to this size, held whole, enters a shared lane.
pub const WHOLE: u64 = 64 * 1024;
/// Requests of one client in one turn: a pipeline of 10,000 does not hold up the rest.
const BUDGET: usize = 1024;
pub(super) const REMOVED: &str = "this listener was removed from the configuration";

impl Engine {
    pub(crate) fn flush_later(&mut self, peer: Peer) {
        if self.stream(peer).is_some_and(Stream::mark) {
            self.wishes.flush.push(peer);
        }
    }

    /// Plain bytes from a client.
    pub fn client_bytes(&mut self, index: u32, generation: u32, bytes: &[u8]) {
        // Field by field: the rest of the engine is used beside it.
        let Some(client) = self
            .clients
            .get_mut(index as usize)
            .filter(|client| client.generation == generation)
        else {
            return;
        };
        client.active = self.now;
        if client.stream.stash.is_empty() && !client.stalled {
            let used = self.serve(index, bytes);
            if let Some(client) = self.clients.get_mut(index as usize) {
                client.stream.keep(&bytes[used..], &mut self.spare);
            }
        } else {
            client.stream.keep(bytes, &mut self.spare);
            if !client.stalled {
                self.serve_stash(index);
            }
        }
        self.after_serving(index);
    }

    /// Serves a client from what it has already sent; replies have made room, or its turn's budget was used up.
    pub fn serve_again(&mut self, index: u32, generation: u32) {
        let Some(client) = self.client(index, generation) else {
            return;
        };
        client.queued = false;
        client.stalled = false;
        self.serve_stash(index);
        if self
            .client(index, generation)
            .is_some_and(|client| client.left_midway())
        {
            return self.close_client(index, false);
        }
        self.after_serving(index);
    }

    fn serve_stash(&mut self, index: u32) {
        let Some(client) = self.clients.get_mut(index as usize) else {
            return;
        };
        let (mut stash, begun) = client.stream.take_stash();
        let at = begun + self.serve(index, &stash[begun..]);
        match self.clients.get_mut(index as usize) {
            Some(client) if at < stash.len() => {
                // Of a line that is served as it comes the beginning counts, not the last key.
                if at > begun && client.keys.is_none() {
                    client.half = 0;
                }
                client.stream.keep_rest(stash, at);
            }
            // Whoever has sent half a request next gets it: what clients keep is only what they have sent.
            _ => {
                stash.clear();
                self.spare.give(stash);
            }
        }
    }

    /// Notes what a client holds now and what it waits for. One that is stalled is not read from, so that what it sends next stays
    /// in its own socket.
    fn after_serving(&mut self, index: u32) {
        let Some(client) = self.clients.get_mut(index as usize) else {
            return;
        };
        if !client.is_midway() {
            client.half = 0;
        } else if client.half == 0 {
            client.half = self.now.max(1);
        }
        if let Some(conn) = client.stream.conn
            && client.stalled != client.stream.paused
        {
            client.stream.paused = client.stalled;
            self.wishes.pause.push((conn, client.stalled));
        }
        self.room.charge(client, client.unsent);
        self.keep_within_room();
    }

    /// Not served further for now; `again`: in the next turn, else when there is room.
    pub(super) fn stall(&mut self, index: u32, again: bool) {
        if let Some(client) = self.clients.get_mut(index as usize) {
            client.stalled = true;
        }
        if again {
            self.requeue(index);
        }
    }

    pub(crate) fn requeue(&mut self, index: u32) {
        if let Some(client) = self.clients.get_mut(index as usize)
            && client.stalled
            && !client.queued
        {
            client.queued = true;
            self.wishes.again.push((index, client.generation));
        }
    }

    /// Takes as many requests from `bytes` as may be served now; returns how many bytes they were.
    fn serve(&mut self, index: u32, bytes: &[u8]) -> usize {
        let tree = Rc::clone(&self.tree);
        let used = self.take_requests(index, &tree, bytes);
        self.dispatch_ahead(index, &tree, bytes);
        used
    }

    fn take_requests(&mut self, index: u32, tree: &Rc<Tree>, bytes: &[u8]) -> usize {
        let mut at = 0;
        let mut budget = BUDGET;
        loop {
            let Some(client) = self.clients.get_mut(index as usize) else {
                return bytes.len();
            };
            let rest = &bytes[at..];
            if client.closing {
                return bytes.len();
            }
            if client.dump.is_some() {
                // Behind what was asked before it.
                if !client.slots.is_empty() {
                    client.stalled = true;
                    return at;
                }
                if !self.go_on_dumping(index) {
                    return at;
                }
                continue;
            }
            if client.swallow > 0 {
                let swallowed = client.swallow.min(rest.len() as u64);
                client.swallow -= swallowed;
                at += swallowed as usize;
                if client.swallow > 0 {
                    return at;
                }
                continue;
            }
            if let Some(upload) = &client.upload {
                if upload.remaining == 0 {
                    // Alone to its end: what follows may not overtake it on another lane.
                    if !client.slots.is_empty() {
                        client.stalled = !rest.is_empty();
                        return at;
                    }
                    client.upload = None;
                    continue;
                }
                let used = self.pass_on(index, rest);
                at += used;
                if used == 0 {
                    return at;
                }
                continue;
            }
            if rest.is_empty() {
                return at;
            }
            if client.logs_in {
                match self.admit(index, rest) {
                    Some(used) => at += used,
                    None => return at,
                }
                continue;
            }
            if let Some(seq) = client.awaits {
                if client.slots.get(seq).is_some() {
                    client.stalled = true;
                    return at;
                }
                client.awaits = None;
            }
            if client.keys.is_some() {
                at += self.go_on_splitting(index, tree, rest, &mut budget);
                match self.clients.get(index as usize) {
                    Some(client) if client.keys.is_some() => return at,
                    _ => continue,
                }
            }
            if budget == 0 || !self.admits(index) {
                self.stall(index, budget == 0);
                return at;
            }
            budget -= 1;
            let Some(client) = self.clients.get_mut(index as usize) else {
                return bytes.len();
            };
            let (dialect, most) = (client.dialect, self.limits.value_bytes as u64);
            match &dialect.request(&mut client.stream.parse, rest, most) {
                Parsed::More => return at,
                Parsed::Bad(bad) => {
                    client.slots.push_answer(bad.reply, &mut client.stream.out);
                    client.swallow = bad.swallow;
                    client.closing |= bad.close;
                    at += (bad.head as usize).min(rest.len());
                    let peer = Peer::Client {
                        index,
                        generation: client.generation,
                    };
                    self.figures.clients.refused += 1;
                    self.flush_later(peer);
                    if !bad.why.is_empty() {
                        self.tell_of_stranger(bad.why);
                    }
                }
                Parsed::Head(request) => {
                    if !request.more_keys.is_empty()
                        && let Some(used) = self.split(index, tree, request, (bytes, at), &mut budget)
                    {
                        at += used;
                        match self.clients.get(index as usize) {
                            Some(client) if client.keys.is_some() => return at,
                            _ => continue,
                        }
                    }
                    let len = request.len();
                    if len > WHOLE && len > self.whole_limit(index) {
                        // Alone: nothing of this client may overtake it, nor be overtaken by it.
                        let alone = self
                            .clients
                            .get(index as usize)
                            .is_some_and(|client| client.slots.is_empty());
                        let begun = if alone {
                            self.begin_upload(index, tree, request, rest)
                        } else {
                            Begun::Later
                        };
                        if begun != Begun::Yes {
                            if let Some(client) = self.clients.get_mut(index as usize) {
                                client.stalled = begun == Begun::Later;
                            }
                            return at;
                        }
                        at += request.head as usize;
                        continue;
                    }
                    let Some(message) = rest.get(..len as usize) else {
                        return at;
                    };
                    self.request(index, tree, request, message, bytes, at);
                    at += len as usize;
                }
            }
        }
    }

    /// The embedded store takes a value whole or not at all, so what may be for it is held up to its largest item.
    fn whole_limit(&self, client: u32) -> u64 {
        const HEAD: u64 = 4096;
        let listener = self
            .clients
            .get(client as usize)
            .map_or(usize::MAX, |client| usize::from(client.listener));
        if self.tree.reaches_store(listener) {
            self.store.limits().item as u64 + HEAD
        } else {
            WHOLE
        }
    }

    /// One whole request, `message`, which begins at `at` in `bytes`.
    #[inline]
    fn request(
        &mut self,
        index: u32,
        tree: &Rc<Tree>,
        request: &Request,
        message: &[u8],
        bytes: &[u8],
        at: usize,
    ) {
        let Some(client) = self.clients.get_mut(index as usize) else {
            return;
        };
        let (dialect, number) = (client.dialect, client.number(request.command));
        if request.body > 0
            && let Err(answer) = dialect.check_end(message)
        {
            let silenced = request.is_quiet && dialect.silenced(request.command, Outcome::ClientError);
            return self.answer_here(index, answer, silenced);
        }
        self.figures.asked(number);
        if client.plans(request) {
            return self.planned(index, tree, request, message, bytes, at);
        }
        self.route(index, tree, request, message, bytes, at);
    }

    /// One that the session has a word in.
    #[inline(never)]
    fn planned(
        &mut self,
        index: u32,
        tree: &Rc<Tree>,
        request: &Request,
        message: &[u8],
        bytes: &[u8],
        at: usize,
    ) {
        let Some(client) = self.clients.get_mut(index as usize) else {
            return;
        };
        let (dialect, listener, generation) = (client.dialect, client.listener, client.generation);
        let mut answer = std::mem::take(&mut self.scratch);
        let plan = dialect.plan(&mut client.session, request, message, &mut answer);
        let logs_in = !self.logins.is(client.login, &client.session.login);
        if plan != Plan::Route || logs_in {
            self.dispatch_ahead(index, tree, bytes);
        }
        if !self.follow_login(index) {
            return self.refuse_login(index);
        }
        match plan {
            Plan::Route => self.route(index, tree, request, message, bytes, at),
            Plan::Dedicated => {
                let request = Request {
                    is_dedicated: true,
                    ..*request
                };
                self.route(index, tree, &request, message, bytes, at);
            }
            Plan::Answer => self.answer_here(index, &answer, request.is_quiet),
            Plan::Refuse(text) => self.object(index, request, &Failed::here(Outcome::LocalError, text)),
            Plan::Broadcast if self.over_memory => {
                self.refuse(index, request, &Failed::here(Outcome::Overloaded, OUT_OF_MEMORY));
            }
            Plan::Broadcast => self.broadcast(index, tree, request, message),
            Plan::Stats => self.stats(index, listener, request, message),
            Plan::Close => {
                if let Some(client) = self.clients.get_mut(index as usize) {
                    client.closing = true;
                }
                self.flush_later(Peer::Client { index, generation });
            }
        }
        answer.clear();
        self.scratch = answer;
        if let Some(own) = self.clients.get(index as usize).and_then(|client| client.own) {
            // What it has said may have let go of it.
            self.give_back(own);
        }
    }

    /// Walks the tree with it, maybe beside those behind it.
    #[inline(always)] // a hundredth of a pipelined request
    fn route(
        &mut self,
        index: u32,
        tree: &Rc<Tree>,
        request: &Request,
        message: &[u8],
        bytes: &[u8],
        at: usize,
    ) {
        if self.over_memory {
            return self.refuse(index, request, &Failed::here(Outcome::Overloaded, OUT_OF_MEMORY));
        }
        let Some(client) = self.clients.get_mut(index as usize) else {
            return;
        };
        let (listener, origin) = (client.listener, client.origin());
        let Some(root) = tree.root(usize::from(listener)) else {
            return self.refuse(index, request, &Failed::here(Outcome::LocalError, REMOVED));
        };
        let size = tree.cost(usize::from(listener), request.class, message.len());
        let seq = client
            .slots
            .push(request.command, request.is_quiet, Part::Whole, size, self.now);
        let to = ReplyTo::Client {
            index,
            generation: client.generation,
            seq,
        };
        let is_last = at + message.len() == bytes.len() && self.ahead.is_empty();
        if is_last || request.is_dedicated || request.base64_key || !tree.is_plain(usize::from(listener)) {
            self.dispatch_ahead(index, tree, bytes);
            return self.walk(tree, root, origin, request, message, to);
        }
        self.ahead.push(Ahead {
            request: *request,
            start: at,
            to,
        });
        if self.ahead.len() == TOGETHER {
            self.dispatch_ahead(index, tree, bytes);
        }
    }
}
