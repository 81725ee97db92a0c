//! Lanes that carry complete requests of many clients, one for each login.

use std::sync::Arc;

use crate::{
    engine::{Engine, LaneId},
    members::Member,
};

/// A worker's shared lanes to one member.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Shared {
    /// The lane with the pool's own login.
    own: Option<LaneId>,
    /// The lanes with other logins.
    others: Vec<(u16, LaneId)>,
}

impl Shared {
    /// The lane with this login.
    #[inline]
    pub(in crate::upstream) fn get(&self, login: u16) -> Option<LaneId> {
        if login == 0 {
            return self.own;
        }
        let found = self.others.iter().find(|other| other.0 == login);
        found.map(|other| other.1)
    }

    /// Makes this lane the one with this login.
    pub(in crate::upstream) fn set(&mut self, login: u16, id: LaneId) {
        if login == 0 {
            self.own = Some(id);
            return;
        }
        self.unset(login);
        self.others.push((login, id));
    }

    /// Makes the next small request with this login open a fresh lane.
    pub(in crate::upstream) fn unset(&mut self, login: u16) {
        if login == 0 {
            self.own = None;
        } else {
            self.others.retain(|other| other.0 != login);
        }
    }
}

impl Engine {
    /// The lane for small requests to this member with this login; opened if there is none.
    #[inline(always)]
    pub(in crate::upstream) fn shared_lane(&mut self, member: &Arc<Member>, login: u16) -> LaneId {
        match self.lanes_of(member).shared.get(login) {
            Some(id) => id,
            None => self.open_shared_lane(member, login),
        }
    }

    /// It is not inlined, so that [`shared_lane`](Self::shared_lane) is.
    #[cold]
    #[inline(never)]
    fn open_shared_lane(&mut self, member: &Arc<Member>, login: u16) -> LaneId {
        let id = self.open_lane(member, login, false);
        self.lanes_of(member).shared.set(login, id);
        id
    }

    /// Opens the lanes to members that are to be connected before anything is asked of them.
    pub(crate) fn preconnect(&mut self) {
        for member in self.tree.members() {
            if member.preconnect && member.is_up() {
                self.shared_lane(&member, 0);
            }
        }
    }
}
