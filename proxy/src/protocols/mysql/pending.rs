//! A login that is nearly over.

use super::{identity::Proof, step::Claim};
use crate::protocol::Attempt;

/// A login that is nearly over.
pub(super) struct Pending {
    pub(super) claim: Claim,
    pub(super) proof: Proof,
    /// The number of the cached login, or of the attempt.
    pub(super) number: u64,
    /// The number of the next packet to the client.
    pub(super) sequence: u8,
    /// The question to a server; `None` if no server is asked.
    pub(super) question: Option<Question>,
}

/// A question to a server about a login.
pub(super) enum Question {
    /// Is the login good, and is its schema there?
    Login(Attempt),
    /// Is the schema there? The login is good.
    Schema(Attempt),
}

impl Pending {
    pub(super) fn new(claim: Claim, proof: Proof, number: u64, sequence: u8) -> Self {
        Self {
            claim,
            proof,
            number,
            sequence,
            question: None,
        }
    }

    /// Bytes of memory that the client fills in it.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.claim.memory() + self.proof.password().map_or(0, <[u8]>::len)
    }
}
