//! Servers that prove that they know a command before they are given it.
//!
//! Invariant: a lane carries a request that [needs proof](proxima_wire::message::Request::needs_proof) only
//! behind the answer to a question, and only if the answer was the proof. A server that does not know the
//! command would take the value behind it for requests, whose replies would go to other clients. The proof is a
//! connection's: another server may have taken the address since.
//!
//! A [common command](crate::protocol::ServerSide::is_common) is proved by the answer to the protocol's
//! [question](crate::protocol::ServerSide::proof), any other by the server's version. Where that is asked for at the
//! login, such a request needs no proof here.

use proxima_wire::message::{Outcome, Request};

use super::{LaneId, Phase, Waiter};
use crate::{
    engine::{Engine, Peer},
    members::Member,
    protocol::{Failed, Protocol},
    route::{Answer, ReplyTo},
};

/// The error text for a server that did not prove what it knows.
pub(super) const UNPROVEN: &str = "the server does not know this command";
/// The error text for a pool that cannot be given such a request.
const UNKNOWN: &str = "this command is not known here";

/// What a lane's server has proved of some commands.
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

/// What a lane's server has proved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proofs {
    /// That it knows the common commands that need proof.
    common: Proof,
    /// That its version has the other commands.
    version: Proof,
    /// If both questions are under way: was the one for the version sent first?
    version_first: bool,
}

impl Proofs {
    /// Those of a new lane to this member.
    pub(super) fn of(member: &Member) -> Self {
        let at_login = member.asks_version || member.is_copy();
        Self {
            common: Proof::Unasked,
            version: if at_login { Proof::Given } else { Proof::Unasked },
            version_first: false,
        }
    }

    /// Is the version not asked for at the login?
    pub(super) fn defers_version(self) -> bool {
        self.version != Proof::Given
    }

    /// Is the answer to a question awaited?
    #[inline]
    pub(super) fn are_awaited(self) -> bool {
        self.common == Proof::Asked || self.version == Proof::Asked
    }

    /// The length of the questions whose answers are awaited.
    pub(super) fn asked_bytes(self, protocol: &dyn Protocol) -> usize {
        let common = protocol.proof().filter(|_| self.common == Proof::Asked);
        let version = Some(protocol.probe()).filter(|_| self.version == Proof::Asked);
        let questions = [common, version].into_iter().flatten();
        questions.map(|(_, message)| message.len()).sum()
    }

    fn of_command(&mut self, is_common: bool) -> &mut Proof {
        if is_common {
            &mut self.common
        } else {
            &mut self.version
        }
    }

    /// Does the next answer tell the version?
    fn awaits_version(self) -> bool {
        self.version == Proof::Asked && (self.common != Proof::Asked || self.version_first)
    }

    /// May the server be given this request?
    fn admit(mut self, request: &Request, protocol: &dyn Protocol) -> bool {
        !request.needs_proof || *self.of_command(protocol.is_common(request.command)) == Proof::Given
    }
}

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
        let place = match lane.waiters.iter().rposition(is_question) {
            Some(other) if is_behind => other + 1,
            _ if is_ready => lane.waiters.len(),
            _ => 0,
        };
        lane.waiters.insert(place, waiter);
        for behind in lane.waiters.iter_mut().skip(place + 1) {
            behind.at = behind.at.wrapping_add(message.len() as u32);
        }
        self.servers.in_flight += 1;
        self.flush_later(Peer::Lane(id));
        Ok(())
    }

    /// The server has answered a question. If no other is under way, requests that were held are sent, or
    /// refused.
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
        let refused = match lane.uploading {
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
        self.servers.in_flight -= refused.len();
        self.flush_later(Peer::Lane(id));
        for (waiter, _) in refused {
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
