//! A login that is nearly over.

use super::{step::Claim, who::Proof};
use crate::protocol::Attempt;

/// A login that is nearly over.
pub(super) struct Pending {
    pub(super) claim: Claim,
    pub(super) proof: Proof,
    /// The number of the cached login, or of the attempt.
    pub(super) number: u64,
    /// The number of the next packet to the client.
    pub(super) sequence: u8,
    /// The attempt that a server decides on. `None`: the proxy has found the proof good.
    pub(super) attempt: Option<Attempt>,
}

impl Pending {
    pub(super) fn new(claim: Claim, proof: Proof, number: u64, sequence: u8) -> Self {
        Self {
            claim,
            proof,
            number,
            sequence,
            attempt: None,
        }
    }

    /// Bytes of memory that the client fills in it.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.claim.memory() + self.proof.password().map_or(0, <[u8]>::len)
    }
}
