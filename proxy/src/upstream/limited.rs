//! Servers that take only some of the commands.

use proxima_wire::message::{Outcome, Parsed, Request};

use crate::{dialect::Dialect, dialect::Failed, engine::Engine, members::Failure};

use super::{LaneId, Waiter};

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
        let is_upload = lane.uploading.is_some();
        if is_upload
            && lane
                .waiters
                .iter()
                .any(|waiter| !member.dialect.is_common(waiter.command))
        {
            return self.end_lane(id, Outcome::LocalError, why);
        }
        lane.limited = true;
        why.clone_into(&mut lane.limit);
        let refused = if is_upload {
            Vec::new()
        } else {
            lane.drop_held(member.dialect, |request| {
                !member.dialect.is_common(request.command)
            })
        };
        lane.ready(self.now);
        self.servers.in_flight -= refused.len();
        for waiter in refused {
            self.fail(waiter.to, &Failed::at(&member.address, Outcome::LocalError, why));
        }
        // A bulk lane whose value had arrived completely has no more work.
        self.settle_lane(id);
    }
}

impl super::Lane {
    /// Removes the held requests that this server must not be given. Returns what waits for them.
    pub(super) fn drop_held(
        &mut self,
        dialect: &dyn Dialect,
        unfit: impl Fn(&Request) -> bool,
    ) -> Vec<Waiter> {
        let held = std::mem::take(&mut self.held);
        let mut waiters = std::mem::take(&mut self.waiters).into_iter();
        let mut refused = Vec::new();
        let mut rest = &held[..];
        // These heads were parsed successfully when the requests came.
        while let Parsed::Head(request) = dialect.head(rest) {
            let (message, behind) = rest.split_at(rest.len().min(request.len() as usize));
            rest = behind;
            let waiter = (!request.is_unanswered).then(|| waiters.next()).flatten();
            if unfit(&request) {
                self.given = self.given.saturating_sub(message.len() as u64);
                refused.extend(waiter);
            } else {
                self.held.extend_from_slice(message);
                self.waiters.extend(waiter);
            }
        }
        refused.extend(waiters);
        refused
    }
}
