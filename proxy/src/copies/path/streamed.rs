//! A streamed value waits for the lock of its key before its last byte is sent: until then no server has
//! stored it.

use std::rc::Rc;

use super::{
    change::{LOCK_TIMEOUT, LOCKED, RETRY},
    members,
    operation::NO_POOL,
};
use crate::{
    engine::{ClientId, Engine, OperationId, Sleeper},
    micros::Micros,
};

/// May the last byte of a streamed value leave?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastByte {
    /// Its key is locked.
    Now,
    /// The client is served again soon.
    Later,
    /// For this reason.
    Never(&'static str),
}

impl Engine {
    /// Locks the keys of these changes, which a client's streamed value has begun and which have waited since
    /// `since`: may its last byte leave?
    pub(crate) fn lock_streamed(
        &mut self,
        client: ClientId,
        changes: &[OperationId],
        since: Micros,
    ) -> LastByte {
        let mut index = None;
        for &id in changes {
            let operation = self.copies.operations.get_mut(id);
            let Some(lock) = operation.and_then(|operation| operation.lock.as_mut()) else {
                continue;
            };
            if index == Some(lock.index()) {
                lock.share();
            } else if !lock.try_lock() {
                if self.now - since > LOCK_TIMEOUT {
                    return LastByte::Never(LOCKED);
                }
                self.timers.wake(self.now + RETRY, Sleeper::Client(client));
                return LastByte::Later;
            }
            index = Some(lock.index());
        }
        for &id in changes {
            self.leave_home(id);
            self.miss_again(id);
            self.miss_at_strangers(id);
        }
        LastByte::Now
    }

    /// Copies that missed its beginning may have been repaired since, and have taken other changes of its
    /// key: it is now that they miss this one.
    fn miss_again(&mut self, id: OperationId) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return;
        };
        let missed = std::mem::take(&mut operation.missed);
        let tree = Rc::clone(&operation.tree);
        let Some(copies) = tree.copies(operation.node) else {
            return self.broken(NO_POOL);
        };
        for (_, member) in members(&tree, copies) {
            if missed.iter().any(|&(id, _)| id == member.id) {
                self.miss(member, id, "it was away while a value was on its way");
            }
        }
    }

    /// Copies that came to the pool since this change began miss it, and may have later ones of its key.
    pub(super) fn miss_at_strangers(&mut self, id: OperationId) {
        let Some(operation) = self.copies.operations.get(id) else {
            return;
        };
        if Rc::ptr_eq(&operation.tree, &self.tree) {
            return;
        }
        let tree = Rc::clone(&operation.tree);
        let Some(copies) = tree.copies(operation.node) else {
            return self.broken(NO_POOL);
        };
        let known = || members(&tree, copies).map(|(_, member)| member);
        let pool = known().next().map(|member| &member.pool.name);
        for member in self.tree.members() {
            let is_stranger = !known().any(|known| known.id == member.id);
            if member.is_copy() && pool == Some(&member.pool.name) && is_stranger {
                self.miss(&member, id, "it came while a change was on its way");
            }
        }
    }
}
