//! The entries of one key.

use std::sync::Arc;

use proxima_wire::message::Reply;

use super::{Gone, KeyHash, Question};
use crate::{
    micros::Micros,
    near::{Rule, RuleSettings},
};

/// The most replies that are kept for one key. A form is chosen by the client: without a limit, one key could
/// have any number.
pub(super) const MOST_FORMS: usize = 64;

/// One kept reply.
pub(super) struct Kept {
    pub(super) rule: Arc<Rule>,
    /// The number that its rule had.
    pub(super) number: u32,
    pub(super) form: Box<[u8]>,
    /// `None`: the reply is known not to be kept.
    pub(super) bytes: Option<Arc<[u8]>>,
    pub(super) reply: Reply,
    pub(super) filled: Micros,
    /// The version of everything by then.
    pub(super) everything: u64,
    pub(super) is_miss: bool,
    /// By which its time is shortened.
    pub(super) chance: u8,
    pub(super) hits: u32,
}

impl Kept {
    /// Is it an answer to this question, as far as nothing has ended it?
    #[inline]
    pub(super) fn answers(&self, question: &Question<'_>, number: u32) -> bool {
        self.number == number && *self.form == *question.form
    }

    /// Why it is of no use to anybody any more. `None`: it still is, unless everything was changed.
    pub(super) fn why_dead(&self, now: Micros) -> Option<Gone> {
        let settings = self.rule.settings();
        let is_emptied = self.number != self.rule.number() || settings.ttl == Micros::ZERO;
        let is_over = || now - self.filled >= settings.useful(self.is_miss, self.chance);
        match is_emptied {
            true => Some(Gone::Dropped),
            false => is_over().then_some(Gone::Expired),
        }
    }

    /// The span for which it is fresh.
    #[inline]
    pub(super) fn fresh(&self, settings: &RuleSettings) -> Micros {
        settings.fresh(self.is_miss, self.chance)
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        let bytes = self
            .bytes
            .as_ref()
            .map_or(0, |bytes| allocated(bytes.len() + COUNTS));
        size_of::<Self>() + allocated(self.form.len()) + bytes
    }
}

/// All that is kept for one key.
pub(super) struct Entry {
    pub(super) hash: KeyHash,
    pub(super) key: Box<[u8]>,
    /// When it was last used, in operations of its shard.
    pub(super) used: u32,
    pub(super) hits: u8,
    pub(super) kept: Vec<Kept>,
}

impl Entry {
    /// Bytes of memory, with what finds it.
    pub(super) fn memory(&self) -> usize {
        let kept: usize = self.kept.iter().map(Kept::memory).sum();
        let spare = (self.kept.capacity() - self.kept.len()) * size_of::<Kept>();
        size_of::<Option<Self>>() + INDEX + allocated(self.key.len()) + kept + spare
    }
}

/// The counts of an [`Arc`], beside its bytes.
const COUNTS: usize = 16;
/// A place in the table that finds entries by hash, and its share of the places that are empty.
const INDEX: usize = 28;

/// Bytes that the allocator takes for this many: its sizes are an eighth of a power of two apart.
fn allocated(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        _ => {
            let step = (bytes.next_power_of_two() / 16).max(8);
            bytes.next_multiple_of(step)
        }
    }
}
