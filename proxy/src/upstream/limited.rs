//! Servers that take only some of the commands, or only small requests.

use proxima_wire::message::{Outcome, Parsed, Reply, Request};

use crate::{
    engine::{Engine, LaneId, ReplyTo},
    members::Failure,
    protocol::{Failed, Protocol},
};

use super::Waiter;

/// The reason why a server must not be given a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It does not know the command.
    Unknown,
    /// It would say this, and close the connection.
    Closes(&'static [u8]),
}

impl Unfit {
    /// The reason why a limited server must not be given this request; `None` if it may be.
    pub(super) fn of(protocol: &dyn Protocol, request: &Request, message: &[u8]) -> Option<Self> {
        match protocol.is_common(request.command) {
            true => protocol.exceeds(request, message).map(Self::Closes),
            false => Some(Self::Unknown),
        }
    }
}

impl Engine {
    /// The login has found that the server takes only some commands, for the reason `why`. Each held request
    /// with another command is answered with an error; none of its bytes has been sent. A copy must take all
    /// commands: a limited copy is not used at all.
    pub(super) fn limit_lane(&mut self, id: LaneId, why: &str) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let member = lane.member.clone();
        if member.is_copy() {
            self.miss_bypass_write(&member, b"", why);
            return self.fail_lane(id, Failure::Garbage, Outcome::ConnectError, why);
        }
        lane.limited = true;
        lane.take_opening();
        why.clone_into(&mut lane.limit);
        if lane.uploading.is_some() {
            // A bulk lane has one request, whose head is held.
            let unfit = match member.protocol.head(&lane.held) {
                Parsed::Head(request) => Unfit::of(member.protocol, &request, &lane.held),
                _ => None,
            };
            match unfit {
                None => {
                    self.make_ready(id);
                    self.settle_lane(id);
                }
                Some(Unfit::Unknown) => self.end_lane(id, Outcome::LocalError, why),
                Some(closes @ Unfit::Closes(_)) => {
                    let waiters = std::mem::take(&mut lane.waiters);
                    self.servers.in_flight -= waiters.len();
                    self.drop_lane(id, "");
                    for waiter in waiters {
                        self.reject_unfit(waiter.to, closes, (&member.address, why));
                    }
                }
            }
            return;
        }
        let rejected = lane.drop_held(member.protocol, |request, message| {
            Unfit::of(member.protocol, request, message)
        });
        self.make_ready(id);
        self.servers.in_flight -= rejected.len();
        for (waiter, unfit) in rejected {
            self.reject_unfit(waiter.to, unfit.unwrap_or(Unfit::Unknown), (&member.address, why));
        }
        // A bulk lane whose value had arrived completely has no more work.
        self.settle_lane(id);
    }

    /// Answers a request that a limited server is not given. `(server, why)`: its address, and why it is
    /// limited.
    pub(super) fn reject_unfit(&mut self, to: ReplyTo, unfit: Unfit, (server, why): (&str, &str)) {
        match unfit {
            Unfit::Unknown => self.fail(to, &Failed::at(server, Outcome::LocalError, why)),
            Unfit::Closes(words) => {
                let client = self.slot_of(to).map(|(client, _)| client);
                self.deliver(to, &Reply::new(Outcome::ClientError, words.len()), words);
                if let Some(client) = client {
                    self.close_as_failed(client);
                }
            }
        }
    }
}

impl super::Lane {
    /// Removes the held requests that this server must not be given. Returns what waits for them, and why
    /// they are not given.
    pub(super) fn drop_held<T>(
        &mut self,
        protocol: &dyn Protocol,
        unfit: impl Fn(&Request, &[u8]) -> Option<T>,
    ) -> Vec<(Waiter, Option<T>)> {
        let held = std::mem::take(&mut self.held);
        let first = (self.given as u32).wrapping_sub(held.len() as u32);
        let mut waiters = std::mem::take(&mut self.waiters).into_iter();
        let mut changes = std::mem::take(&mut self.changes);
        let mut rejected = Vec::new();
        let mut rest = &held[..];
        // These heads were parsed successfully when the requests came.
        while let Parsed::Head(request) = protocol.head(rest) {
            let (message, behind) = rest.split_at(rest.len().min(request.len() as usize));
            rest = behind;
            let waiter = (!request.is_unanswered).then(|| waiters.next()).flatten();
            if let Some(why) = unfit(&request, message) {
                self.given = self.given.saturating_sub(message.len() as u64);
                if waiter.is_some_and(|waiter| waiter.effects.is_counted()) {
                    // Nothing of it was sent.
                    changes.pop_front();
                }
                rejected.extend(waiter.map(|waiter| (waiter, Some(why))));
            } else {
                let at = first.wrapping_add(self.held.len() as u32);
                self.held.extend_from_slice(message);
                if waiter.is_some_and(|waiter| waiter.effects.is_counted()) {
                    self.changes.extend(changes.pop_front());
                }
                self.waiters.extend(waiter.map(|waiter| Waiter { at, ..waiter }));
            }
        }
        rejected.extend(waiters.map(|waiter| (waiter, None)));
        rejected
    }
}
