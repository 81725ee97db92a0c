//! Bypass writes: changes that come to a copy by another route than its pool, so that no operation knows
//! which of them the copy misses.

use std::sync::Arc;

use crate::{
    copies::Event,
    engine::{Engine, ReplyTo, WorkerEvent},
    members::Member,
};

impl Engine {
    /// Does an operation of the pool wait for this reply? An operation records the changes that its copies
    /// miss, until it has ended.
    pub(crate) fn tracks_misses(&self, to: ReplyTo) -> bool {
        matches!(to, ReplyTo::Operation { operation, .. } if self.copies.operations.get(operation).is_some())
    }

    /// This copy misses, or may miss, a change that no operation of its pool knows of; an empty key stands
    /// for an unknown one.
    pub(crate) fn miss_bypass_write(&mut self, member: &Arc<Member>, key: &[u8], why: &str) {
        if !self.tree.names(member.id) {
            return;
        }
        self.copies.snapshot.miss(member.id, key);
        self.mark_stale(member, why);
    }

    /// This worker stops reading the copy, and tells the control thread, unless it has done so before.
    pub(super) fn mark_stale(&mut self, member: &Arc<Member>, why: &str) {
        if self.copies.snapshot.mark_stale(member.id) {
            let (member, why) = (Arc::clone(member), why.to_owned());
            self.actions
                .events
                .push(WorkerEvent::Copy(Event::Stale { member, why }));
        }
    }
}
