//! One kept reply, with its key and its end.

use std::sync::Arc;

use proxima_wire::message::Reply;

use super::{
    KeyHash, Question, RemovalReason,
    priority::{Links, Priority},
    record::Record,
    slab_index::SlabIndex,
};
use crate::{
    micros::Micros,
    near::{Rule, RuleSettings, Terms},
};

/// The counts of an [`Arc`], beside its bytes.
const COUNTS: usize = 16;
/// mimalloc gives a larger block whole slices of this size: with huge pages, all of them are resident.
const SLICE: usize = 64 << 10;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// There is something.
    Reply,
    /// There is nothing.
    Miss,
    /// The reply is known not to be kept.
    Unkept,
}

/// One kept reply. A hit reads its two cache lines, which the processor loads together, and its record.
#[repr(align(128))]
pub(super) struct Entry {
    pub(super) hash: KeyHash,
    pub(super) record: Record,
    pub(super) rule: Arc<Rule>,
    /// The parsed reply.
    pub(super) reply: Reply,
    pub(super) filled: Micros,
    /// The version of everything by then.
    pub(super) everything: u64,
    /// Fields that few replies have.
    pub(super) extra: Option<Box<RareFields>>,
    /// The number that its rule had.
    pub(super) number: u32,
    /// The times that it was an answer, for operators.
    pub(super) hits: u32,
    /// The place of the key's next reply.
    pub(super) next: Option<SlabIndex>,
    /// Its neighbours in the order in which replies go.
    pub(super) links: Links,
    pub(super) priority: Priority,
    /// By which its time is shortened.
    pub(super) chance: u8,
    pub(super) kind: EntryKind,
}

const _: () = assert!(size_of::<Entry>() == 128);

/// Fields that few replies have.
pub(super) struct RareFields {
    /// The bytes of a large reply.
    pub(super) large: Option<Arc<[u8]>>,
    /// The origin's terms for it. `None` if the rule alone decides.
    pub(super) terms: Option<Terms>,
}

impl RareFields {
    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        let large = |bytes: &Arc<[u8]>| (bytes.len() + COUNTS).next_multiple_of(SLICE);
        let terms = self.terms.as_ref().map_or(0, Terms::memory);
        size_of::<Self>() + self.large.as_ref().map_or(0, large) + terms
    }
}

/// The number of an entry that no rule has.
const NO_RULE: u32 = 0;

impl Entry {
    /// Bytes of memory around each entry: its slot in the slab, and its part of the index and of the
    /// remembered keys, full or not.
    pub(super) const AROUND: usize = size_of::<Self>() + 16;

    /// Ends it where it lies, and keeps its place and its memory for the next reply to the same question. It
    /// answers nothing and is of no rule.
    pub(super) fn vacate(&mut self) {
        self.number = NO_RULE;
    }

    /// Was it ended where it lies?
    #[inline]
    pub(super) fn is_vacant(&self) -> bool {
        self.number == NO_RULE
    }

    /// Is it an answer to this question, whose key it has, as far as nothing has ended it? `number`: that of
    /// the question's rule.
    #[inline]
    pub(super) fn answers(&self, question: &Question<'_>, number: u32) -> bool {
        self.number == number && self.record.form() == question.form
    }

    /// Is it an answer to the same question as this one of the same key?
    pub(super) fn is_to_same_question(&self, other: &Self) -> bool {
        self.number == other.number && self.record.form() == other.record.form()
    }

    /// Does it take the place of this older one of the same key? A failure stays until any reply comes.
    pub(super) fn replaces(&self, old: &Self) -> bool {
        self.is_to_same_question(old) || self.number == old.number && old.is_error()
    }

    /// Why it is dead. `None` if it is alive, unless everything was changed.
    pub(super) fn why_dead(&self, now: Micros) -> Option<RemovalReason> {
        let settings = self.rule.settings();
        let is_emptied = self.number != self.rule.number() || settings.ttl == Micros::ZERO;
        let is_over = || now - self.filled >= self.useful(&settings);
        match is_emptied {
            true => Some(RemovalReason::Dropped),
            false => is_over().then_some(RemovalReason::Expired),
        }
    }

    #[inline]
    pub(super) fn is_miss(&self) -> bool {
        self.kind == EntryKind::Miss
    }

    #[inline]
    pub(super) fn is_unkept(&self) -> bool {
        self.kind == EntryKind::Unkept
    }

    #[inline]
    pub(super) fn terms(&self) -> Option<&Terms> {
        self.extra.as_ref()?.terms.as_ref()
    }

    /// A large reply, as it lies.
    #[inline]
    pub(super) fn large(&self) -> Option<&Arc<[u8]>> {
        self.extra.as_ref()?.large.as_ref()
    }

    /// Bytes of the reply.
    pub(super) fn len(&self) -> usize {
        self.large()
            .map_or(self.record.reply().len(), |bytes| bytes.len())
    }

    /// The bytes of the reply, for a caller that keeps them.
    pub(super) fn share(&self) -> Arc<[u8]> {
        self.large()
            .cloned()
            .unwrap_or_else(|| self.record.reply().into())
    }

    /// The span for which it is fresh.
    #[inline]
    pub(super) fn fresh(&self, settings: &RuleSettings) -> Micros {
        let fresh = settings.fresh(self.is_miss(), self.chance);
        match self.terms() {
            None => fresh,
            Some(terms) => terms.fresh(fresh),
        }
    }

    /// The span after which it is useless.
    fn useful(&self, settings: &RuleSettings) -> Micros {
        match self.terms() {
            None => settings.useful(self.is_miss(), self.chance),
            Some(terms) => terms.useful(settings.fresh(self.is_miss(), self.chance), settings),
        }
    }

    /// May it be given after its time, where the rule allows that?
    #[inline]
    pub(super) fn may_be_stale(&self) -> bool {
        !self.is_miss() && self.terms().is_none_or(|terms| !terms.is_strict)
    }

    /// Is it an origin's failure?
    pub(super) fn is_error(&self) -> bool {
        self.terms().is_some_and(|terms| terms.is_error)
    }

    /// Bytes of memory, beside its place in the table.
    pub(super) fn memory(&self) -> usize {
        self.record.memory() + self.extra.as_ref().map_or(0, |extra| extra.memory())
    }
}
