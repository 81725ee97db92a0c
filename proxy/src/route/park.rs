//! Requests that wait before any server is chosen for them: until the state of their pool lets them go on, or
//! until the step of the tree that has them in its queue names them.
//!
//! Invariant: what waits for a pool is bounded in time, number and bytes by what the pool's state says. It is
//! looked at again when that state has changed, and not in every turn.

use std::{rc::Rc, sync::Arc};

use proxima_wire::message::Outcome;

use super::{
    Node, NodeId, StatefulPool, Walk,
    flight::{MISPLACED, child_of},
    slow_requests::WaitedFor,
    tree::{Of, Query, Wrapped},
};
use crate::{
    engine::{Engine, FlightId, ReplyTo},
    metrics::Metrics,
    micros::Micros,
    protocol::{Failed, HoldLimit},
};

/// The requests that wait for one pool.
pub(super) struct Waiting {
    kept: StatefulPool,
    /// The changes of its state that were looked at.
    seen: u64,
    /// Bytes of the requests.
    bytes: usize,
    /// No request is due before this time.
    due: Micros,
    /// The oldest first.
    parked: Vec<ParkedRequest>,
}

impl Waiting {
    fn keep(&mut self, parked: ParkedRequest) {
        self.due = self.due.min(parked.due);
        self.parked.push(parked);
    }
}

/// A request that waits.
#[derive(Clone, Copy)]
struct ParkedRequest {
    flight: FlightId,
    /// When it came.
    since: Micros,
    /// The request fails if it still waits at this time, and may wait no longer.
    due: Micros,
    /// Bytes of it that are kept.
    bytes: usize,
    /// A value follows, which its client holds back.
    is_streamed: bool,
}

impl Engine {
    /// Holds this request at the wrap `node` until its pool lets it go on. The client's next requests wait as
    /// well, and so does a value that follows.
    pub(super) fn park(&mut self, node: NodeId, kept: &StatefulPool, walk: &Walk<'_>) {
        let at = self.waiting_for(kept);
        let waiting = &self.router.waiting[at];
        let mut scratch = [0; 250];
        let query = walk.query(walk.key(&mut scratch), self.unix());
        let asked = query.of(walk, &self.clients).asked();
        let state = kept.state();
        let limit = state.map_or(HoldLimit::DEFAULT, |state| state.hold_limit(&asked));
        let bytes = walk.message.len();
        if waiting.parked.len() >= limit.requests || waiting.bytes + bytes > limit.bytes {
            let text = format!("too many requests wait for pool {}", kept.pool);
            return self.fail(walk.to, &Failed::here(Outcome::Overloaded, &text));
        }
        let question = state.and_then(|state| state.barrier(&asked, kept));
        // The state may have changed since it was asked, and before the count of its changes was read: then the
        // request is looked at in the next turn.
        let may_go_on = !kept.pool.orders.is_held() && state.is_none_or(|state| !state.holds(&asked, kept));
        let flight = self.watch(node, walk);
        let is_streamed = walk.is_streamed();
        if is_streamed {
            self.servers.hold_upload();
        }
        if let Some(waiting) = self.router.waiting.get_mut(at) {
            waiting.bytes += bytes;
            if may_go_on {
                waiting.seen = waiting.seen.wrapping_sub(1);
            }
            waiting.keep(ParkedRequest {
                flight,
                since: self.now,
                due: self.now + Micros::from(limit.time.min(limit.again)),
                bytes,
                is_streamed,
            });
        }
        self.hold_requests_behind(walk.to);
        if let Some(question) = question {
            self.ask_for_pool(kept, &question);
        }
    }

    /// Fills in the gauges of requests that wait for their pools.
    pub fn report_parked(&self, metrics: &mut Metrics) {
        for waiting in &self.router.waiting {
            metrics.parks(waiting.kept.pool.id, waiting.parked.len() as u64);
        }
    }

    /// Where the requests are that wait for this pool.
    fn waiting_for(&mut self, kept: &StatefulPool) -> usize {
        // A pool whose settings have changed has another state, whose changes are its own.
        let is_its = |waiting: &Waiting| Arc::ptr_eq(&waiting.kept.pool, &kept.pool);
        let waiting = &mut self.router.waiting;
        waiting.iter().position(is_its).unwrap_or_else(|| {
            waiting.push(Waiting {
                kept: kept.clone(),
                seen: kept.pool.changes.count(),
                bytes: 0,
                due: Micros::NEVER,
                parked: Vec::new(),
            });
            waiting.len() - 1
        })
    }

    /// Puts this request into the queue of the wrap `node`.
    pub(super) fn queue(&mut self, node: NodeId, walk: &Walk<'_>) {
        let flight = self.hold(node, walk);
        let client = self.slot_of(walk.to).map(|(client, _)| client);
        if let Node::Wrap { handle, .. } = walk.tree.node(node) {
            handle.enqueue(flight, client);
        }
    }

    /// Lets a request from the queue of a wrap go on; in place of one whose client has left, the next one.
    pub(super) fn release_queued(&mut self, mut id: FlightId) {
        while let Some(flight) = self.router.flights.get(id) {
            let (tree, node, parent) = (Rc::clone(&flight.tree), flight.node, flight.parent);
            let since = flight.until;
            let Node::Wrap { handle, child } = tree.node(node) else {
                return self.broken(MISPLACED);
            };
            if !self.has_left(parent) {
                self.note_wait(parent, WaitedFor::Route(handle.name()), since);
                return self.resend(id, *child, child_of(id, 0));
            }
            self.router.flights.close(id);
            let next = handle.left();
            self.fail(parent, &Failed::here(Outcome::ClientError, "its client left"));
            match next {
                Some(next) => id = next,
                None => return,
            }
        }
    }

    /// Looks at the requests that wait for a pool whose state has changed, and ends those that have waited too
    /// long. The worker calls this in every turn.
    pub fn release_parked(&mut self) {
        for at in 0..self.router.waiting.len() {
            let Some(waiting) = self.router.waiting.get_mut(at) else {
                break;
            };
            // The count is read before the state: a change in between is looked at in the next turn.
            let count = waiting.kept.pool.changes.count();
            let has_changed = std::mem::replace(&mut waiting.seen, count) != count;
            if !has_changed && waiting.due > self.now {
                continue;
            }
            waiting.due = Micros::NEVER;
            let all = std::mem::take(&mut waiting.parked);
            for parked in all {
                match has_changed || parked.due <= self.now {
                    true => self.ask_again(at, parked),
                    false => self.keep_parked(at, parked),
                }
            }
        }
        self.router.waiting.retain(|waiting| !waiting.parked.is_empty());
    }

    fn keep_parked(&mut self, at: usize, parked: ParkedRequest) {
        if let Some(waiting) = self.router.waiting.get_mut(at) {
            waiting.keep(parked);
        }
    }

    fn ask_again(&mut self, at: usize, parked: ParkedRequest) {
        let id = parked.flight;
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let (tree, parent) = (Rc::clone(&flight.tree), flight.parent);
        let Node::Wrap { handle, child } = tree.node(flight.node) else {
            return self.broken(MISPLACED);
        };
        let walk = flight.walk(&tree, ReplyTo::Nobody);
        let mut scratch = [0; 250];
        let query = walk.query(walk.key(&mut scratch), self.facts.start + self.now);
        let since = self.facts.start + parked.since;
        let query = Query {
            of: Of::Waiting(&walk, &self.clients, since),
            ..query
        };
        let wrapped = handle.request(walk.request, walk.message, &query, &mut self.random);
        let failed = match wrapped {
            Wrapped::Park(kept) => {
                let asked = query.asked();
                let state = kept.state();
                // It may wait for something else by now, and for another time.
                let limit = state.map_or(HoldLimit::DEFAULT, |state| state.hold_limit(&asked));
                let [end, again] = [limit.time, limit.again].map(|time| parked.since + Micros::from(time));
                if self.now < end {
                    let due = if self.now < again { again.min(end) } else { end };
                    let question = state.and_then(|state| state.barrier(&asked, &kept));
                    self.keep_parked(at, ParkedRequest { due, ..parked });
                    if let Some(question) = question {
                        self.ask_for_pool(&kept, &question);
                    }
                    return;
                }
                Some("its pool held it back for too long")
            }
            _ => None,
        };
        if let Some(waiting) = self.router.waiting.get_mut(at) {
            waiting.bytes -= parked.bytes;
            self.metrics
                .held(waiting.kept.pool.id, (self.now - parked.since).0);
        }
        self.note_wait(parent, WaitedFor::Pool, parked.since);
        let client = self.slot_of(parent).map(|(client, _)| client);
        let failed = match failed {
            Some(text) => Failed::here(Outcome::Timeout, text),
            None if self.has_left(parent) => Failed::here(Outcome::ClientError, "its client left"),
            None if parked.is_streamed => {
                if let Some(client) = client {
                    self.servers.begin_upload(client);
                    self.resend(id, *child, child_of(id, 0));
                    // It may wait for a lane now.
                    if !self.servers.upload_waits() {
                        let lanes = self.servers.upload_lanes();
                        self.begin_queued_upload(client, lanes);
                    }
                }
                return;
            }
            None => return self.resend(id, *child, child_of(id, 0)),
        };
        self.router.flights.close(id);
        self.fail(parent, &failed);
        if let Some(client) = client.filter(|_| parked.is_streamed) {
            self.begin_queued_upload(client, Vec::new());
        }
    }

    /// Is the client gone that this answer is for?
    fn has_left(&mut self, to: ReplyTo) -> bool {
        let slot = self.slot_of(to);
        slot.is_some_and(|(client, _)| self.clients.retention(client).is_none())
    }
}
