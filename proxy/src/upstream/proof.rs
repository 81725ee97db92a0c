//! Servers that prove that they know a command before they are given it.
//!
//! Invariant: a lane carries a request that [needs proof](proxima_wire::message::Request::needs_proof) only
//! behind the answer to the dialect's [question](crate::dialect::Dialect::proof), and only if that was no
//! error. A server that does not know the command would take the value behind it for requests, whose replies
//! would go to other clients. The proof is a connection's: another server may have taken the address since.

use proxima_wire::message::Outcome;

use super::{LaneId, Phase, Waiter};
use crate::{
    dialect::Failed,
    engine::{Engine, Peer},
    route::{Answer, ReplyTo},
};

/// The error text for a server that did not prove what it knows.
pub(super) const UNPROVEN: &str = "the server does not know this command";
/// The error text for a pool that cannot be given such a request.
const UNKNOWN: &str = "this command is not known here";

/// What a lane's server has proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// It was not asked.
    Unasked,
    /// It was asked. Requests behind the question are held.
    Asked,
    /// It knows the commands.
    Given,
    /// It does not know them.
    Refused,
}

impl Engine {
    /// Asks this lane's server for its proof, unless it was asked before. Requests that are given to the lane
    /// from now on are held until the answer comes.
    ///
    /// # Errors
    /// The server must not be given the request, for this reason.
    #[cold]
    #[inline(never)]
    pub(super) fn ask_proof(&mut self, id: LaneId) -> Result<(), &'static str> {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return Ok(());
        };
        let question = lane.member.dialect.proof().filter(|_| !lane.member.is_copy());
        let Some((command, message)) = question else {
            return Err(UNKNOWN);
        };
        match lane.proof {
            Proof::Refused => return Err(UNPROVEN),
            Proof::Given | Proof::Asked => return Ok(()),
            Proof::Unasked => lane.proof = Proof::Asked,
        }
        let waiter = Waiter {
            to: ReplyTo::Lane { lane: id },
            command,
            sent: self.now,
            ..Waiter::NOBODY
        };
        lane.given += message.len() as u64;
        if matches!(lane.phase, Phase::Ready) {
            lane.stream.filling(&mut self.buffers).extend_from_slice(message);
            lane.waiters.push_back(waiter);
        } else {
            // The login is not over: the question goes before everything that waits for its end.
            lane.held.splice(..0, message.iter().copied());
            lane.waiters.push_front(waiter);
        }
        self.servers.in_flight += 1;
        self.flush_later(Peer::Lane(id));
        Ok(())
    }

    /// The server has answered the question. Requests that were held are sent, or refused.
    #[cold]
    pub(crate) fn proved(&mut self, id: LaneId, answer: &Answer<'_>) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        lane.proof = match answer.outcome() {
            outcome if !outcome.is_error() => Proof::Given,
            Outcome::ClientError => Proof::Refused,
            // It may know the command and only be unwell. It is asked again.
            _ => Proof::Unasked,
        };
        let refused = match lane.proof {
            Proof::Given => Vec::new(),
            _ if lane.uploading.is_some() => return self.end_lane(id, Outcome::LocalError, UNPROVEN),
            _ => {
                let dialect = lane.member.dialect;
                lane.drop_held(dialect, |request| request.needs_proof)
            }
        };
        let member = lane.member.clone();
        lane.release_held();
        self.servers.in_flight -= refused.len();
        self.flush_later(Peer::Lane(id));
        for waiter in refused {
            self.fail(
                waiter.to,
                &Failed::at(&member.address, Outcome::LocalError, UNPROVEN),
            );
        }
        // A bulk lane whose value had arrived completely has no more work.
        self.settle_lane(id);
    }
}
