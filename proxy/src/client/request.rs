//! The session of a client serves one whole request.

use std::rc::Rc;

use proxima_wire::message::{Bad, Outcome, Parsed, Request};

use super::{
    ReplyRole,
    errors::{OUT_OF_MEMORY, REMOVED},
    input::Input,
};
use crate::{
    engine::{ClientId, Endpoint, Engine, ReplyTo, WorkerEvent},
    protocol::{Failed, Plan, Retention, Session},
    route::{BATCH, Pending, Tree, Walk},
};

impl Engine {
    /// Serves one whole request, `message`, which starts at the input's position. Returns `false` if it has
    /// to wait for the replies to earlier ones.
    // The call alone would be a hundredth of the time of a pipelined request.
    #[inline(always)]
    pub(super) fn request(
        &mut self,
        id: ClientId,
        request: &Request,
        message: &[u8],
        input: &Input<'_>,
    ) -> bool {
        let Some(client) = self.clients.table.get_mut(id) else {
            return true;
        };
        let (protocol, number) = (client.protocol, client.number(request.command));
        if request.body > 0
            && let Err(bad) = protocol.check_end(message)
        {
            self.end_badly(id, request, &bad);
            return true;
        }
        if client.plans(request) {
            let taken = self.planned(id, request, message, input);
            if taken {
                self.metrics.asked(number);
            }
            return taken;
        }
        self.metrics.asked(number);
        self.route(id, request, message, input);
        true
    }

    /// Answers a request whose body has a wrong end.
    #[cold]
    fn end_badly(&mut self, id: ClientId, request: &Request, bad: &Bad) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let silenced = request.is_quiet && client.protocol.silenced(request.command, Outcome::ClientError);
        self.answer_here(id, bad.reply, silenced && !bad.close);
        if bad.close {
            if let Some(client) = self.clients.table.get_mut(id) {
                client.close_as_failed();
            }
            self.flush_later(Endpoint::Client(id));
        }
    }

    /// Serves a request that the session has to plan.
    #[inline(never)]
    fn planned(&mut self, id: ClientId, request: &Request, message: &[u8], input: &Input<'_>) -> bool {
        let listener = self.clients.table.get(id).map(|client| client.listener);
        let is_embedded = listener.is_some_and(|listener| self.serves_store(listener));
        let Some(client) = self.clients.table.get_mut(id) else {
            return true;
        };
        let (protocol, listener) = (client.protocol, client.listener);
        let is_idle = client.slots.is_empty();
        let mut new = Session::NEW;
        let session = client.session.or(&mut new);
        if session.retention != Retention::Clean && !is_idle && input.tree.may_hold(usize::from(listener)) {
            // A route could hold or reject an earlier request and let this one pass.
            self.stall(id, false);
            return false;
        }
        session.is_idle = is_idle;
        session.is_embedded = is_embedded;
        session.reach = input.tree.reach_of(usize::from(listener));
        let mut answer = std::mem::take(&mut self.scratch);
        let plan = protocol.plan(session, request, message, &mut answer);
        let leaves = std::mem::take(&mut session.leaves_lane) && is_idle;
        let follows = std::mem::take(&mut session.follows_tree);
        if std::mem::take(&mut session.has_named_library) {
            self.metrics.libraries.count(protocol.library(session));
        }
        let logs_in = !self.servers.is_login(client.login, &client.session.login);
        if plan != Plan::Route || logs_in {
            self.serve_pending(id, input);
        }
        if plan == Plan::Later {
            self.scratch = answer;
            self.stall(id, false);
            return false;
        }
        if !self.follow_login(id) {
            self.reject_login(id);
            return true;
        }
        if leaves {
            self.leave_lane(id);
        }
        let mut taken = true;
        let request = &Request {
            is_of_transaction: plan == Plan::Dedicated && self.clients.retention(id) == Some(Retention::Kept),
            ..*request
        };
        let request = &Request {
            class: protocol.acts_as(request, message),
            ..*request
        };
        match plan {
            Plan::Later => {}
            Plan::Subscribe => self.subscribe(id, request, message, input),
            Plan::Spread { is_divisible } => {
                taken = self.spread_keys(id, request, message, is_divisible, input)
            }
            Plan::Everywhere => self.spread_everywhere(id, request, message, input),
            Plan::Visit => self.visit(id, request, message, input),
            Plan::Route => self.route(id, request, message, input),
            Plan::Dedicated => self.dedicate(id, request, (&answer, message), follows, input),
            Plan::Alone if input.tree.reach_of(usize::from(listener)).is_one => {
                self.spread_everywhere(id, request, message, input);
            }
            Plan::Instead => self.serve_instead(id, &answer, input),
            Plan::Alone | Plan::Answer => self.answer_here(id, &answer, request.is_quiet),
            Plan::Reject(text) => self.reject_by_codec(id, request, &Failed::here(Outcome::LocalError, text)),
            Plan::Broadcast if self.clients.over_memory => {
                self.reject(id, request, &Failed::here(Outcome::Overloaded, OUT_OF_MEMORY));
            }
            Plan::Broadcast => self.broadcast(id, request, message, input.tree),
            Plan::Stats => self.stats(id, listener, request, message),
            Plan::Consult => self.consult(id, request, message),
            Plan::Counters => {
                self.append_figures(id, message, &mut answer);
                self.answer_here(id, &answer, false);
            }
            Plan::Connection => {
                self.append_connection(id, message, input.rest().len(), &mut answer);
                self.answer_here(id, &answer, false);
            }
            Plan::Announce(form) => {
                self.clients.register.announced(listener, form, &mut answer);
                self.answer_here(id, &answer, false);
            }
            Plan::Shutdown => self.actions.events.push(WorkerEvent::Shutdown),
            Plan::Admit => {
                self.answer_here(id, &answer, false);
                self.admit_again(id);
            }
            Plan::Close | Plan::CloseAsFailed => {
                if !answer.is_empty() {
                    self.answer_here(id, &answer, false);
                }
                if let Some(client) = self.clients.table.get_mut(id) {
                    client.closing = true;
                    client.failed |= plan == Plan::CloseAsFailed;
                }
                self.flush_later(Endpoint::Client(id));
            }
        }
        answer.clear();
        self.scratch = answer;
        match self.clients.table.get_mut(id) {
            Some(client)
                if client.subscriptions.is_some()
                    && !client.session.has_subscriptions
                    && !client.is_subscribing() =>
            {
                self.drop_subscriptions(id);
            }
            _ => {}
        }
        match self.clients.table.get_mut(id) {
            // The request may have released the client's own lane.
            Some(client) if let Some(own) = client.own => self.give_back(own),
            Some(_) => self.end_spoilt(id),
            None => {}
        }
        taken
    }

    /// Serves a request that the codec has made of another one.
    fn serve_instead(&mut self, id: ClientId, message: &[u8], input: &Input<'_>) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let Parsed::Head(request) = client.protocol.head(message) else {
            return;
        };
        let request = self
            .declared(id, &request, input.tree, message)
            .unwrap_or(request);
        let input = Input {
            tree: input.tree,
            bytes: message,
            at: 0,
            budget: 1,
            is_made: true,
        };
        self.request(id, &request, message, &input);
    }

    /// Walks the tree with a request, in a batch with those behind it where that is possible.
    // The call alone would be a hundredth of the time of a pipelined request.
    #[inline(always)]
    pub(super) fn route(&mut self, id: ClientId, request: &Request, message: &[u8], input: &Input<'_>) {
        if self.clients.over_memory {
            return self.reject(id, request, &Failed::here(Outcome::Overloaded, OUT_OF_MEMORY));
        }
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let (tree, origin) = (input.tree, client.origin(id));
        let listener = usize::from(origin.listener);
        let Some(root) = tree.root(listener) else {
            return self.reject(id, request, &Failed::here(Outcome::LocalError, REMOVED));
        };
        let size = tree.cost(listener, request.class, message.len());
        let seq = client.slots.push(
            request.command,
            request.is_quiet,
            ReplyRole::Whole,
            size,
            self.now,
        );
        let to = ReplyTo::Client { client: id, seq };
        let is_last = input.at + message.len() == input.bytes.len() && self.clients.pending.is_empty();
        if is_last || request.is_dedicated || request.base64_key || !tree.is_plain(listener) {
            self.serve_pending(id, input);
            let walk = Walk {
                tree,
                origin,
                request,
                message,
                to,
            };
            return self.walk(root, &walk);
        }
        self.clients.pending.push(Pending {
            request: *request,
            start: input.at,
            to,
        });
        if self.clients.pending.len() == BATCH {
            self.serve_pending(id, input);
        }
    }

    /// Walks the tree with the pending requests of this client, as one batch.
    #[inline]
    pub(super) fn serve_pending(&mut self, id: ClientId, input: &Input<'_>) {
        if !self.clients.pending.is_empty() {
            self.serve_batch(id, input);
        }
    }

    #[inline(never)]
    fn serve_batch(&mut self, id: ClientId, input: &Input<'_>) {
        let mut pending = std::mem::take(&mut self.clients.pending);
        if let Some(client) = self.clients.table.get(id) {
            self.walk_batch(client.origin(id), input.tree, &pending, input.bytes);
        }
        pending.clear();
        self.clients.pending = pending;
    }

    /// Serves a command that concerns every member of the client's tree. The worst reply is the answer.
    fn broadcast(&mut self, id: ClientId, request: &Request, message: &[u8], tree: &Rc<Tree>) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let origin = client.origin(id);
        let listener = usize::from(origin.listener);
        let Some(node) = tree.broadcast(listener) else {
            return self.reject(id, request, &Failed::here(Outcome::LocalError, REMOVED));
        };
        let size = tree.cost(listener, request.class, message.len());
        let seq = client.slots.push(
            request.command,
            request.is_quiet,
            ReplyRole::Whole,
            size,
            self.now,
        );
        let walk = Walk {
            tree,
            origin,
            request,
            message,
            to: ReplyTo::Client { client: id, seq },
        };
        self.walk(node, &walk);
    }
}
