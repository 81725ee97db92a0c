//! The login that a client uses, and that a lane has.

use std::net::IpAddr;

use super::Servers;
use crate::engine::LaneId;

impl Servers {
    /// Sets how many logins of clients there may be at a time. Those that there are stay.
    pub(crate) fn limit_logins(&mut self, most: usize) {
        self.logins.most = most;
    }

    /// May a client of this host have a login with these words?
    pub(crate) fn has_room_for_login(&self, words: &[u8], by: Option<IpAddr>) -> bool {
        self.logins.find(words).is_some() || self.logins.has_room(by)
    }

    /// Changes the login of a client of this host from `known` to one with these words. Returns the new
    /// number; `None`: there are too many logins, and the client uses the pool's own.
    pub(crate) fn change_login(&mut self, known: u16, words: &[u8], by: Option<IpAddr>) -> Option<u16> {
        self.logins.leave(known);
        let joined = self.logins.join(words, by);
        if joined.is_none() {
            self.logins.join(&[], None);
        }
        joined
    }

    /// This lane has another login from now on.
    pub(super) fn move_lane(&mut self, id: LaneId, login: u16) {
        if let Some(lane) = self.lanes.get_mut(id) {
            self.logins.lane_closed(lane.login);
            self.logins.lane_opened(login);
            lane.login = login;
        }
    }

    /// A client with this login has left.
    pub(crate) fn leave_login(&mut self, login: u16) {
        self.logins.leave(login);
    }

    /// Does this login have these words?
    pub(crate) fn is_login(&self, login: u16, words: &[u8]) -> bool {
        self.logins.is(login, words)
    }
}
