//! The own copies of a proxy in a fleet: they are not read before this proxy has joined and heard what they
//! missed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use proxima_wire::hash::spooky64;
use tokio::time::{sleep, timeout};

use super::{Copies, copies_of, repairs::open};
use crate::{
    control::{Proxy, membership::Membership},
    copies::{CopyState, MissedKeys, repair::RepairError},
    fleet::keeper::MissedByPeer,
    members::Member,
};

/// How long the start waits until a server says that nobody else is connected.
const ALONE: Duration = Duration::from_secs(1);
/// Between two questions for that.
const LOOK: Duration = Duration::from_millis(20);

impl Copies {
    /// After an end without a goodbye, before any worker connects: finds the own copies that another process
    /// may still have connections to. The keeper alone may be connected there, so that nothing comes by
    /// others once it is alone.
    pub(in crate::control) async fn find_orphaned(&mut self, members: &[Arc<Member>]) {
        let own: Vec<Arc<Member>> = copies_of(members).cloned().collect();
        for member in own {
            let alone = timeout(ALONE, async {
                while !matches!(is_alone(&member).await, Ok(true)) {
                    sleep(LOOK).await;
                }
            });
            if alone.await.is_err() {
                self.orphaned.insert(member.identity.clone());
            }
        }
    }
}

async fn is_alone(member: &Member) -> Result<bool, RepairError> {
    Ok(open(member).await?.connection_count().await? == 1)
}

impl Proxy {
    /// The own copies are not read any more, and not repaired before they are released.
    pub(in crate::control) fn hold_own_copies(self: &Arc<Self>, why: &str) {
        self.miss_at_own_copies(why, true, |_| MissedKeys::default());
    }

    /// The own copies may be read again when what they missed is repaired.
    pub(in crate::control) fn release_own_copies(self: &Arc<Self>, missed: &MissedByPeer) {
        self.miss_at_own_copies("it has joined its fleet", false, |member| {
            let pool = spooky64(member.pool.name.as_bytes(), 0);
            let Some(keys) = missed.keys() else {
                return MissedKeys::everything();
            };
            let mut of_pool = MissedKeys::default();
            keys.filter(|(of, _)| *of == pool)
                .for_each(|(_, key)| of_pool.add(key));
            of_pool
        });
    }

    fn miss_at_own_copies(
        self: &Arc<Self>,
        why: &str,
        is_held: bool,
        missed: impl Fn(&Member) -> MissedKeys,
    ) {
        let now = Instant::now();
        let rooms = &mut *self.rooms();
        rooms.membership.copies.is_held = is_held;
        let own: Vec<Arc<Member>> = copies_of(&rooms.membership.members).cloned().collect();
        for member in own {
            let Copies {
                agreement, orphaned, ..
            } = &mut rooms.membership.copies;
            let acts = agreement.mark_stale(&member.identity, why, missed(&member), now);
            if orphaned.remove(&member.identity) {
                agreement.broken(&member.identity, None);
            }
            self.execute(rooms, acts);
        }
    }

    /// May all own copies be read, and is there one?
    pub(in crate::control) fn reads_own_copies(&self) -> bool {
        let Membership { members, copies, .. } = &self.rooms().membership;
        let mut own = copies_of(members).peekable();
        let is_current = |member: &Arc<Member>| copies.state(member) == CopyState::Current && member.is_up();
        own.peek().is_some() && own.all(is_current)
    }
}
