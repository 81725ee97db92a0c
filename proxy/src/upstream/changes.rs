//! Changes that are under way at servers, for the near cache.
//!
//! Invariant: a change begins before the first byte of its request can leave, and ends when its answer is
//! taken off the lane. A change whose answer says that it is executed later, in a transaction, ends with the
//! next answer that does not. A change that has no answer ends with the answer to a later request on its
//! lane, as servers execute in order, or some seconds after it was sent. One that misses its answer ends some
//! seconds after its lane.

use std::{collections::VecDeque, mem};

use proxima_wire::message::{Class, Reply, Request};

use super::{Lane, lane::Unanswered};
use crate::{
    engine::{Engine, LaneId},
    micros::Micros,
    near::{Changes, LINGER, OpenChange, Rules, WorkerNear},
    protocol::{ChangeScope, Protocol},
};

/// The most changes without an answer that a lane remembers. More are remembered by the worker, for their
/// time.
const MOST_UNANSWERED: usize = 32 * 1024;

/// The word of a change is loaded so many answers before it ends.
const AHEAD: usize = 4;

impl Engine {
    /// The change that begins with this request, which goes to several lanes. `None` if it changes nothing,
    /// or nothing is kept.
    pub(crate) fn begin_change(
        &mut self,
        protocol: &'static dyn Protocol,
        request: &Request,
        message: &[u8],
    ) -> Option<OpenChange> {
        if !self.near.counts() {
            return None;
        }
        let scope = scope(protocol, request, message);
        begin(&mut self.near, scope, protocol, (request, message), self.now)
    }

    /// The change of this request begins, if it makes one. It has been given to the lane and is not on its
    /// way yet. The last that waits there is the one for its reply.
    #[inline]
    pub(super) fn count_change(&mut self, id: LaneId, request: &Request, message: &[u8]) {
        let Some(lane) = self.servers.lanes.get(id) else {
            return;
        };
        let scope = scope(lane.member.protocol, request, message);
        if scope != ChangeScope::Nothing || lane.has_uncounted {
            self.count_scope(id, scope, request, message);
        }
    }

    #[inline(never)]
    fn count_scope(&mut self, id: LaneId, scope: ChangeScope, request: &Request, message: &[u8]) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let protocol = lane.member.protocol;
        let begun = begin(&mut self.near, scope, protocol, (request, message), self.now);
        let may_execute = lane.has_uncounted && request.class != Class::Read;
        let change = match (begun, self.near.changes()) {
            (Some(change), _) => change,
            (None, Some(changes)) if may_execute => changes.of_everything(),
            (None, _) => return,
        };
        match lane.waiters.last_mut() {
            Some(waiter) if !request.is_unanswered => {
                waiter.effects = waiter.effects.counted();
                lane.changes.push_back(change);
            }
            _ if lane.unanswered.len() < MOST_UNANSWERED => lane.unanswered.push_back(Unanswered {
                end: lane.given as u32,
                sent: self.now,
                change,
            }),
            _ => self.near.linger(change, self.now),
        }
    }

    /// Remembers a flush that is due later, while no change is counted: something may be kept by then.
    #[cold]
    pub(super) fn note_flush(&mut self, id: LaneId, request: &Request, message: &[u8]) {
        let lane = self.servers.lanes.get(id);
        let cacheable = lane.and_then(|lane| lane.member.protocol.cacheable());
        let changed = cacheable.map(|of| of.changes(request, message));
        if let Some(ChangeScope::EverythingLater(seconds)) = changed {
            self.near.flush_later(seconds, self.now);
        }
    }

    /// Ends changes without an answer behind which nothing was answered for long enough.
    pub(super) fn end_unanswered(&mut self) {
        if self.near.counts() {
            for (_, lane) in self.servers.lanes.iter_mut() {
                let is_over = |front: &mut Unanswered| self.now - front.sent >= LINGER;
                while lane.unanswered.pop_front_if(is_over).is_some() {}
            }
        }
    }

    /// Begins or ends to count changes, as any rule of the tree's near cache is on or none is.
    pub fn follow_near(&mut self) {
        let keeps = |rules: &Rules| rules.all().any(|rule| rule.is_on());
        let near = self
            .tree
            .near()
            .filter(|_| self.tree.near_rules().is_some_and(keeps));
        let near = near.cloned();
        match (near, self.near.counts()) {
            (Some(near), false) => {
                self.near.begin(&near);
                self.count_those_under_way();
                self.near.join(&near);
            }
            (None, true) => self.near.leave(),
            _ => {}
        }
    }

    /// Counts every request that waits on a lane, and every operation on copies, as a change of everything:
    /// the effect of those that were sent before is unknown.
    fn count_those_under_way(&mut self) {
        let Some(changes) = self.near.changes() else {
            return;
        };
        for (_, lane) in self.servers.lanes.iter_mut() {
            for waiter in lane.waiters.iter_mut().filter(|waiter| !waiter.effects.reads()) {
                waiter.effects = waiter.effects.counted();
                lane.changes.push_back(changes.of_everything());
            }
            lane.has_uncounted = lane.owner.is_some();
        }
        self.copies.count_changes(changes);
    }

    /// A reply has come on a dedicated lane: its server has executed all changes on it, unless the reply says
    /// that it keeps them for later.
    pub(super) fn end_queued_changes(&mut self, id: LaneId, reply: &Reply, bytes: &[u8]) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        if lane.queued_changes.is_empty() && !lane.has_uncounted {
            return;
        }
        let cacheable = lane.member.protocol.cacheable();
        // An error may be the answer to one command in the middle of a transaction. A late end does no harm.
        let is_for_later = cacheable.is_some_and(|cacheable| cacheable.is_for_later(bytes));
        if !is_for_later && !reply.outcome.is_error() {
            lane.queued_changes.clear();
            lane.has_uncounted = false;
        }
    }

    /// The changes of a lane that has ended. If anything was sent, its server may still execute them.
    pub(super) fn outlive(&mut self, changes: LaneChanges, was_sent: bool) {
        if was_sent {
            let LaneChanges {
                waiting,
                queued,
                unanswered,
            } = changes;
            let unanswered = unanswered.into_iter().map(|one| one.change);
            for change in queued.into_iter().chain(waiting).chain(unanswered) {
                self.near.linger(change, self.now);
            }
        }
    }
}

/// The changes on a lane.
pub(super) struct LaneChanges {
    waiting: VecDeque<OpenChange>,
    queued: Vec<OpenChange>,
    unanswered: VecDeque<Unanswered>,
}

impl Lane {
    /// The first waiting request is taken off.
    #[inline]
    pub(super) fn end_change(&mut self) {
        if !self.changes.is_empty() || !self.unanswered.is_empty() {
            self.end_counted();
        }
    }

    #[inline(never)]
    fn end_counted(&mut self) {
        let Some(first) = self.waiters.first() else {
            return;
        };
        let is_before = |one: &mut Unanswered| first.at.wrapping_sub(one.end) < 1 << 31;
        while self.unanswered.pop_front_if(is_before).is_some() {}
        if first.effects.is_counted() {
            if let Some(later) = self.changes.get(AHEAD) {
                later.preload();
            }
            let change = self.changes.pop_front();
            if self.dedicated {
                self.queued_changes.extend(change);
            }
        }
    }

    /// Bytes of memory that the lane's changes take.
    pub(super) fn changes_memory(&self) -> usize {
        let own = (self.changes.capacity() + self.queued_changes.capacity()) * size_of::<OpenChange>();
        let unanswered = self.unanswered.iter().map(|one| &one.change);
        let all = self.changes.iter().chain(&self.queued_changes).chain(unanswered);
        let unanswered = self.unanswered.capacity() * size_of::<Unanswered>();
        own + unanswered + all.map(OpenChange::memory).sum::<usize>()
    }

    /// All changes on the lane.
    pub(super) fn take_changes(&mut self) -> LaneChanges {
        LaneChanges {
            waiting: mem::take(&mut self.changes),
            queued: mem::take(&mut self.queued_changes),
            unanswered: mem::take(&mut self.unanswered),
        }
    }
}

/// What this request may change. Nothing, where no reply of its protocol is kept.
#[inline]
fn scope(protocol: &'static dyn Protocol, request: &Request, message: &[u8]) -> ChangeScope {
    let cacheable = protocol.cacheable();
    cacheable.map_or(ChangeScope::Nothing, |of| of.changes(request, message))
}

#[inline]
fn begin(
    near: &mut WorkerNear,
    scope: ChangeScope,
    protocol: &'static dyn Protocol,
    (request, message): (&Request, &[u8]),
    now: Micros,
) -> Option<OpenChange> {
    let changes = near.changes()?;
    match scope {
        ChangeScope::Nothing => None,
        ChangeScope::Keys => Some(of_keys(changes, protocol, request, message)),
        ChangeScope::Scripts if changes.scripts_keep_to_keys() => {
            Some(of_keys(changes, protocol, request, message))
        }
        ChangeScope::Everything | ChangeScope::Scripts => Some(changes.of_everything()),
        ChangeScope::EverythingLater(seconds) => {
            let change = changes.of_everything();
            near.flush_later(seconds, now);
            Some(change)
        }
    }
}

#[inline]
fn of_keys(
    changes: &Changes,
    protocol: &'static dyn Protocol,
    request: &Request,
    message: &[u8],
) -> OpenChange {
    // A request that has not come whole has no other key: the protocol says so.
    let is_streamed = (message.len() as u64) < request.len();
    if is_streamed || request.base64_key {
        let mut scratch = [0; 250];
        return changes.of_key(protocol.key(request, message, &mut scratch));
    }
    let (mut first, mut others) = (None, Vec::new());
    protocol.keys(request, message, &mut |key| match first {
        None => first = Some(key),
        Some(_) => others.push(key.of(message)),
    });
    match first {
        // It changes keys that are not known.
        None => changes.of_everything(),
        Some(key) if others.is_empty() => changes.of_key(key.of(message)),
        Some(key) => changes.of_keys(std::iter::once(key.of(message)).chain(others)),
    }
}
