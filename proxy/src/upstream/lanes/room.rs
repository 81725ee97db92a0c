//! Room for one more dedicated lane: within the limit of the worker, and that of all workers together.
//!
//! Invariant: a worker that has fewer lanes to a server than its share gets them when it needs them, whatever
//! the others do: those that have more give lanes up as their clients leave them, and open no others
//! meanwhile.

use std::{
    mem::{replace, take},
    sync::Arc,
};

use super::dedicated::Dedicated;
use crate::{
    engine::{Engine, LaneId},
    members::{Member, QuotaWish},
};

impl Engine {
    /// The most lanes to this server that all workers may have together.
    pub(super) fn most_dedicated(&self, member: &Member) -> u32 {
        let offered = || member.health.quota().offered();
        let total = member.dedicated.total.or_else(offered);
        total.unwrap_or_else(|| member.protocol.room_until_told())
    }

    /// The number of lanes to this server that each worker may have, however many others want.
    fn share(&self, member: &Member) -> usize {
        let most = self.most_dedicated(member) as usize / self.facts.workers.max(1);
        most.clamp(1, member.dedicated.max as usize)
    }

    /// Opens a lane with this login, if there is room for one; an idle lane with another login is closed to
    /// make room.
    pub(super) fn open_dedicated(&mut self, member: &Arc<Member>, login: u16) -> Option<LaneId> {
        let (now, most, share) = (self.now, self.most_dedicated(member), self.share(member));
        let quota = member.health.quota();
        let dedicated = self.dedicated_of(member);
        if !dedicated.full.may_open(login, now) {
            return None;
        }
        let has_share = dedicated.count >= share && quota.is_short(dedicated.wish);
        let has_room = dedicated.count < member.dedicated.max as usize && !has_share;
        let other = match has_room && quota.take(most) {
            true => None,
            false => Some(dedicated.idle.pop()?.lane),
        };
        // The one that is closed gives its own back.
        if other.is_some() && !quota.take(u32::MAX) {
            return None;
        }
        dedicated.count += 1;
        self.servers.dedicated += 1;
        self.metrics.member(member.id).dedicated_opened += 1;
        let id = self.open_lane(member, login, false);
        if let Some(lane) = self.servers.lanes.get_mut(id) {
            lane.dedicated = true;
        }
        if let Some(other) = other {
            self.drop_lane(other, "");
        }
        Some(id)
    }

    /// Notes whether the clients that wait for lanes to this server need more than the worker has.
    pub(super) fn note_wish(&mut self, member: &Arc<Member>) {
        let (most, share) = (self.most_dedicated(member), self.share(member));
        let quota = member.health.quota();
        let dedicated = self.dedicated_of(member);
        let is_at_limit = dedicated.count >= member.dedicated.max as usize;
        let wish = match dedicated.queue.is_empty() || is_at_limit || !quota.is_exhausted(most) {
            true => QuotaWish::Nothing,
            false if dedicated.count < share => QuotaWish::Share,
            false => QuotaWish::More,
        };
        quota.wish(replace(&mut dedicated.wish, wish), wish);
    }

    /// Must the worker give up a lane to this server, as it has more than its share and another worker has
    /// less?
    pub(super) fn must_give_up(&mut self, member: &Arc<Member>) -> bool {
        let share = self.share(member);
        let dedicated = self.dedicated_of(member);
        dedicated.count > share && member.health.quota().is_short(dedicated.wish)
    }
}

impl Dedicated {
    /// The worker wants no more lanes to this server, or does not know yet whether it does.
    pub(in crate::upstream) fn withdraw_wish(&mut self, member: &Member) {
        member
            .health
            .quota()
            .wish(take(&mut self.wish), QuotaWish::Nothing);
    }
}
