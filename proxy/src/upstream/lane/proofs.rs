//! The proofs that a lane's server has given.

use proxima_wire::message::Request;

use crate::{members::Member, protocol::Protocol};

/// A server's proof that it knows some commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::upstream) enum Proof {
    /// It was not asked.
    Unasked,
    /// It was asked. Requests behind the question are held.
    Asked,
    /// It knows the commands.
    Given,
    /// It does not know them.
    Refused,
}

/// The proofs that a lane's server has given.
#[derive(Clone, Copy, Debug)]
pub(in crate::upstream) struct Proofs {
    /// Proof that the server knows the common commands that need it.
    pub(in crate::upstream) common: Proof,
    /// Proof that its version has the other commands.
    pub(in crate::upstream) version: Proof,
    /// If both questions are under way: was the one for the version sent first?
    pub(in crate::upstream) version_first: bool,
}

impl Proofs {
    /// Those of a new lane to this member.
    pub(in crate::upstream) fn of(member: &Member) -> Self {
        let at_login = member.asks_version || member.is_copy();
        Self {
            common: Proof::Unasked,
            version: if at_login { Proof::Given } else { Proof::Unasked },
            version_first: false,
        }
    }

    /// Is the version not asked for at the login?
    pub(in crate::upstream) fn defers_version(self) -> bool {
        self.version != Proof::Given
    }

    /// Is the answer to a question awaited?
    #[inline]
    pub(in crate::upstream) fn are_awaited(self) -> bool {
        self.common == Proof::Asked || self.version == Proof::Asked
    }

    /// The length of the questions whose answers are awaited.
    pub(in crate::upstream) fn asked_bytes(self, protocol: &dyn Protocol) -> usize {
        let common = protocol.proof().filter(|_| self.common == Proof::Asked);
        let version = Some(protocol.probe()).filter(|_| self.version == Proof::Asked);
        let questions = [common, version].into_iter().flatten();
        questions.map(|(_, message)| message.len()).sum()
    }

    pub(in crate::upstream) fn of_command(&mut self, is_common: bool) -> &mut Proof {
        if is_common {
            &mut self.common
        } else {
            &mut self.version
        }
    }

    /// Does the next answer tell the version?
    pub(in crate::upstream) fn awaits_version(self) -> bool {
        self.version == Proof::Asked && (self.common != Proof::Asked || self.version_first)
    }

    /// May the server be given this request?
    pub(in crate::upstream) fn admit(mut self, request: &Request, protocol: &dyn Protocol) -> bool {
        !request.needs_proof || *self.of_command(protocol.is_common(request.command)) == Proof::Given
    }
}
