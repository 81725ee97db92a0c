//! Servers that prove that they know a command before they are given it.
//!
//! Invariant: a lane carries a request that [needs proof](proxima_wire::message::Request::needs_proof) only
//! behind the answer to a question, and only if the answer was the proof. A server that does not know the
//! command would take the value behind it for requests, whose replies would go to other clients. The proof is
//! a connection's: another server may have taken the address since.
//!
//! A [common command](crate::protocol::ServerSide::is_common) is proved by the answer to the protocol's
//! [question](crate::protocol::ServerSide::proof), any other by the server's version. Where that is asked for
//! at the login, such a request needs no proof here.

use proxima_wire::message::Outcome;

use super::{Phase, Proof, Waiter};
use crate::{
    engine::{Endpoint, Engine, LaneId, ReplyTo},
    protocol::Failed,
    route::Answer,
};

/// The error text for a server that did not prove what it knows.
pub(super) const UNPROVEN: &str = "the server does not know this command";
/// The error text for a pool that cannot be given such a request.
const UNKNOWN: &str = "this command is not known here";

impl Engine {
    /// Asks this lane's server for the proof that it knows this command, unless it was asked before. Requests
    /// that are given to the lane from now on are held until the answer comes.
    ///
    /// # Errors
    /// The server must not be given the request, for this reason.
    #[cold]
    #[inline(never)]
    pub(super) fn ask_proof(&mut self, id: LaneId, command: u16) -> Result<(), String> {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return Ok(());
        };
        let protocol = lane.member.protocol;
        let is_common = protocol.is_common(command);
        let question = match is_common {
            true => protocol.proof().filter(|_| !lane.member.is_copy()),
            false => Some(protocol.probe()),
        };
        let Some((command, message)) = question else {
            return Err(UNKNOWN.to_owned());
        };
        let (is_behind, before) = (lane.proofs.are_awaited(), lane.proofs.asked_bytes(protocol));
        match lane.proofs.of_command(is_common) {
            Proof::Refused if is_common => return Err(UNPROVEN.to_owned()),
            Proof::Refused => return Err(lane.limit.clone()),
            Proof::Given | Proof::Asked => return Ok(()),
            proof @ Proof::Unasked => *proof = Proof::Asked,
        }
        lane.holding = true;
        lane.proofs.version_first = !is_common && !is_behind || lane.proofs.version_first && is_behind;
        let waiter = Waiter {
            to: ReplyTo::Lane { lane: id },
            command,
            sent: self.now,
            ..Waiter::NOBODY
        };
        lane.given += message.len() as u64;
        let is_ready = matches!(lane.phase, Phase::Ready);
        if is_ready {
            // Nothing that is held was sent: the question is behind the other one.
            lane.stream.filling(&mut self.buffers).extend_from_slice(message);
        } else {
            // The login is not over: the question goes before everything that waits for its end.
            lane.held.splice(before..before, message.iter().copied());
        }
        let is_question = |waiter: &Waiter| matches!(waiter.to, ReplyTo::Lane { .. });
        let position = match lane.waiters.iter().rposition(is_question) {
            Some(other) if is_behind => other + 1,
            _ if is_ready => lane.waiters.len(),
            _ => 0,
        };
        lane.waiters.insert(position, waiter);
        for behind in lane.waiters.iter_mut().skip(position + 1) {
            behind.at = behind.at.wrapping_add(message.len() as u32);
        }
        self.servers.in_flight += 1;
        self.flush_later(Endpoint::Lane(id));
        Ok(())
    }

    /// The server has answered a question. If no other is under way, requests that were held are sent, or
    /// rejected.
    #[cold]
    pub(crate) fn proved(&mut self, id: LaneId, answer: &Answer<'_>) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let protocol = lane.member.protocol;
        let is_common = !lane.proofs.awaits_version();
        let limit = match answer {
            Answer::Reply(_, bytes) if !is_common => protocol.limit(bytes),
            _ => None,
        };
        let proof = match answer.outcome() {
            outcome if !outcome.is_error() && limit.is_none() => Proof::Given,
            // It may know the command and only be unwell. It is asked again.
            outcome if outcome.is_failover() => Proof::Unasked,
            _ => Proof::Refused,
        };
        *lane.proofs.of_command(is_common) = proof;
        if !is_common {
            lane.limit = limit.unwrap_or_default();
        }
        if proof != Proof::Given && lane.uploading.is_some() {
            let what = if is_common {
                UNPROVEN.to_owned()
            } else {
                lane.limit.clone()
            };
            return self.end_lane(id, Outcome::LocalError, &what);
        }
        if lane.proofs.are_awaited() {
            return;
        }
        let proofs = lane.proofs;
        let rejected = match lane.uploading {
            Some(_) => Vec::new(),
            None => lane.drop_held(protocol, |request, _| {
                (!proofs.admit(request, protocol)).then_some(())
            }),
        };
        let (member, limit) = (lane.member.clone(), lane.limit.clone());
        let said = answer.what();
        // What a server that is unwell has said is why a request fails that it would know otherwise.
        let unproven = match proof {
            Proof::Unasked if is_common => (answer.outcome(), said.trim_start_matches("SERVER_ERROR ")),
            _ => (Outcome::LocalError, UNPROVEN),
        };
        self.release_held(id);
        self.servers.in_flight -= rejected.len();
        self.flush_later(Endpoint::Lane(id));
        for (waiter, _) in rejected {
            let (outcome, what) = match protocol.is_common(waiter.command) {
                true => unproven,
                false => (Outcome::LocalError, &*limit),
            };
            self.fail(waiter.to, &Failed::at(&member.address, outcome, what));
        }
        // A bulk lane whose value had arrived completely has no more work.
        self.settle_lane(id);
    }
}
