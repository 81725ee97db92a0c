//! Servers that have no room for one more connection, at all or with one login. They are well: a request
//! waits, as it does where all lanes are in use, and one new connection is tried now and then.

use std::sync::Arc;

use proxima_wire::message::{Outcome, Reply};

use super::{close::CLOSED, queue::LanePurpose};
use crate::{
    engine::{Engine, LaneId},
    micros::Micros,
    protocol::Failed,
    upstream::{Close, Unwritten},
};

/// Time between two new connections to a server that had no room for one.
const RETRY: Micros = Micros::millis(100);
/// Logins of which that is remembered for one server.
const MOST: usize = 64;

/// The most bytes of what a server says.
const LONGEST: usize = 1024;

/// The logins for which a server has no room.
#[derive(Debug, Default)]
pub(in crate::upstream) struct FullLogins(Vec<FullLogin>);

/// A login for which a server has no room.
#[derive(Clone, Debug)]
struct FullLogin {
    /// The login; `None` if the server has no room for any.
    login: Option<u16>,
    /// The next connection may be tried then.
    until: Micros,
    /// The server's reply.
    words: Arc<[u8]>,
}

impl Engine {
    /// The server has no room for this lane. Its request waits for another one; if it has waited long enough,
    /// it gets these words of the server. `is_of_login`: there is room for other logins.
    pub(in crate::upstream) fn lane_is_full(&mut self, id: LaneId, words: &[u8], is_of_login: bool) {
        let now = self.now;
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let (member, login, owner) = (Arc::clone(&lane.member), lane.login, lane.owner);
        let lane_closes = lane.closes;
        let due = match lane.due {
            Micros::ZERO => now + Micros::from(member.dedicated.wait),
            due => due,
        };
        let waits = lane.waiters.is_empty() && lane.unwritten.len() == 1 && !lane.unwritten[0].is_streamed();
        let (Some(owner), true) = (owner, waits && now < due && words.len() <= LONGEST) else {
            return self.deny_lane(id, words);
        };
        let Some(Unwritten {
            to, request, message, ..
        }) = lane.unwritten.pop()
        else {
            return;
        };
        self.servers.in_flight -= 1;
        self.dedicated_of(&member).full.note(FullLogin {
            login: is_of_login.then_some(login),
            until: now + RETRY,
            words: words.into(),
        });
        let goes_elsewhere = lane_closes == Some(Close::ForGood);
        self.drop_lane(id, "");
        if !self.clients.is_open(owner) {
            return;
        }
        if goes_elsewhere {
            // The member is given nothing more that writes, on no other connection either.
            let failed = Failed::at(&member.address, Outcome::Ejected, CLOSED);
            let wants = LanePurpose::Answer(to, request, message);
            return self.fail_wants(owner, &wants, &failed);
        }
        self.hold_requests_behind(to);
        self.await_lane(
            &member,
            login,
            (owner, LanePurpose::Answer(to, request, message)),
            due,
        );
    }

    /// Answers a request that has waited too long with what the server has said to its login. Returns `false`
    /// if it has said nothing.
    pub(super) fn answer_full(&mut self, words: Option<Arc<[u8]>>, wants: &LanePurpose) -> bool {
        let (Some(words), LanePurpose::Answer(to, ..)) = (words, wants) else {
            return false;
        };
        self.deliver(*to, &Reply::new(Outcome::ClientError, words.len()), &words);
        true
    }
}

impl FullLogins {
    fn note(&mut self, full: FullLogin) {
        let Self(all) = self;
        all.retain(|other| other.login != full.login);
        if all.len() < MOST {
            all.push(full);
        }
    }

    /// The server has taken a lane with this login.
    pub(in crate::upstream) fn clear(&mut self, login: u16) {
        self.0
            .retain(|full| full.login.is_some_and(|other| other != login));
    }

    /// May a lane with this login be opened now? Then no other one may for a while, if there was no room.
    pub(super) fn may_open(&mut self, login: u16, now: Micros) -> bool {
        let Self(all) = self;
        let may = all.iter().all(|full| !full.is_for(login) || full.until <= now);
        if may {
            let its = all.iter_mut().filter(|full| full.is_for(login));
            its.for_each(|full| full.until = now + RETRY);
        }
        may
    }

    /// Has this login alone no room now? Others do not wait for it.
    pub(super) fn has_only(&self, login: u16, now: Micros) -> bool {
        let Self(all) = self;
        all.iter()
            .any(|full| full.login == Some(login) && full.until > now)
    }

    /// The server's reply to this login.
    pub(super) fn words(&self, login: u16) -> Option<Arc<[u8]>> {
        let Self(all) = self;
        let full = all.iter().find(|full| full.is_for(login));
        full.map(|full| Arc::clone(&full.words))
    }
}

impl FullLogin {
    fn is_for(&self, login: u16) -> bool {
        self.login.is_none_or(|own| own == login)
    }
}
