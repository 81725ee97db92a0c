//! The changes that a worker has sent to one peer, in the order of their numbers.

use std::{
    collections::VecDeque,
    hash::{Hash, Hasher},
};

use super::ChangeId;
use crate::{fleet::Stay, micros::Micros};

#[derive(Clone, Debug)]
struct SentChange {
    change: ChangeId,
    at: Micros,
    acknowledged: bool,
}

/// The time of sending decides only which peers are complained of.
impl Hash for SentChange {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.change.to_bits(), self.acknowledged).hash(state);
    }
}

/// The changes that a worker has sent to one stay of a peer.
#[derive(Clone, Debug, Hash)]
pub(super) struct Line {
    pub(super) stay: Stay,
    sent: VecDeque<SentChange>,
    /// The number of the first of them.
    first: u64,
    /// The number up to which all are complete, as the peer was last told.
    confirmed: u64,
    /// The view in which it was told.
    told_in: u64,
}

impl Line {
    pub(super) fn new(stay: Stay) -> Self {
        Self {
            stay,
            sent: VecDeque::new(),
            first: 1,
            confirmed: 0,
            told_in: 0,
        }
    }

    /// Numbers a change that is sent now.
    pub(super) fn push(&mut self, change: ChangeId, at: Micros) -> u64 {
        self.sent.push_back(SentChange {
            change,
            at,
            acknowledged: false,
        });
        self.first + self.sent.len() as u64 - 1
    }

    fn sent_mut(&mut self, sequence: u64) -> Option<&mut SentChange> {
        let at = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        self.sent.get_mut(at)
    }

    /// The change of this number, which the peer has answered.
    pub(super) fn acknowledge(&mut self, sequence: u64) -> Option<ChangeId> {
        let sent = self.sent_mut(sequence)?;
        sent.acknowledged = true;
        Some(sent.change)
    }

    /// The change of this number is sent once more.
    pub(super) fn sent_again(&mut self, sequence: u64, at: Micros) {
        if let Some(sent) = self.sent_mut(sequence) {
            sent.at = at;
            sent.acknowledged = false;
        }
    }

    /// Forgets the complete changes at the front. Returns the number up to which all are complete, to be sent
    /// to the peer; `None` if it knows that already.
    pub(super) fn confirm(&mut self, view: u64, is_under_way: impl Fn(ChangeId) -> bool) -> Option<u64> {
        while self.sent.front().is_some_and(|sent| !is_under_way(sent.change)) {
            self.sent.pop_front();
            self.first += 1;
        }
        let complete = self.first - 1;
        let told = self.confirmed == complete && (self.told_in == view || complete == 0);
        (!told).then(|| {
            (self.confirmed, self.told_in) = (complete, view);
            complete
        })
    }

    /// Has the peer told once more which changes are complete.
    pub(super) fn forget_told(&mut self) {
        self.told_in = 0;
    }

    /// The time at which the oldest change without an answer was sent.
    pub(super) fn oldest(&self) -> Option<Micros> {
        self.sent
            .iter()
            .find(|sent| !sent.acknowledged)
            .map(|sent| sent.at)
    }

    /// The numbers of the changes that the peer has not answered.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = (u64, ChangeId)> {
        let numbered = self.sent.iter().zip(self.first..);
        numbered
            .filter(|(sent, _)| !sent.acknowledged)
            .map(|(sent, sequence)| (sequence, sent.change))
    }
}
