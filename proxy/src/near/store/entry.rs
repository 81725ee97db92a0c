//! The entries of one key.

use std::sync::Arc;

use proxima_wire::message::Reply;
use smallvec::SmallVec;

use super::{Gone, KeyHash, Question, blocks::Block, bytes::Bytes};
use crate::{
    micros::Micros,
    near::{Rule, RuleSettings, Terms},
    size_class::size_class,
};

/// The most replies that are kept for one key. A form is chosen by the client: without a limit, one key could
/// have any number.
pub(super) const MOST_FORMS: usize = 64;

/// All else of a request that decides the bytes of its reply.
pub(super) type Form = SmallVec<[u8; 16]>;

/// One kept reply.
pub(super) struct Kept {
    pub(super) rule: Arc<Rule>,
    /// The number that its rule had.
    pub(super) number: u32,
    pub(super) form: Form,
    /// `None`: the reply is known not to be kept.
    pub(super) bytes: Option<Bytes>,
    pub(super) reply: Reply,
    pub(super) filled: Micros,
    /// The version of everything by then.
    pub(super) everything: u64,
    pub(super) is_miss: bool,
    /// What an origin says of it. `None`: the rule alone decides.
    pub(super) terms: Option<Box<Terms>>,
    /// By which its time is shortened.
    pub(super) chance: u8,
    pub(super) hits: u32,
}

impl Kept {
    /// Is it an answer to this question, as far as nothing has ended it?
    #[inline]
    pub(super) fn answers(&self, question: &Question<'_>, number: u32) -> bool {
        self.number == number && self.form[..] == *question.form
    }

    /// Why it is of no use to anybody any more. `None`: it still is, unless everything was changed.
    pub(super) fn why_dead(&self, now: Micros) -> Option<Gone> {
        let settings = self.rule.settings();
        let is_emptied = self.number != self.rule.number() || settings.ttl == Micros::ZERO;
        let is_over = || now - self.filled >= self.useful(&settings);
        match is_emptied {
            true => Some(Gone::Dropped),
            false => is_over().then_some(Gone::Expired),
        }
    }

    /// The span for which it is fresh.
    #[inline]
    pub(super) fn fresh(&self, settings: &RuleSettings) -> Micros {
        let fresh = settings.fresh(self.is_miss, self.chance);
        match &self.terms {
            None => fresh,
            Some(terms) => terms.fresh(fresh),
        }
    }

    /// The span after which it is of no use any more.
    fn useful(&self, settings: &RuleSettings) -> Micros {
        match &self.terms {
            None => settings.useful(self.is_miss, self.chance),
            Some(terms) => terms.useful(settings.fresh(self.is_miss, self.chance), settings),
        }
    }

    /// May it be given after its time, where the rule allows that?
    #[inline]
    pub(super) fn may_be_stale(&self) -> bool {
        !self.is_miss && self.terms.as_ref().is_none_or(|terms| !terms.is_strict)
    }

    /// Is it an origin's failure?
    pub(super) fn is_error(&self) -> bool {
        self.terms.as_ref().is_some_and(|terms| terms.is_error)
    }

    /// Bytes of memory, beside the reply's place in its list.
    pub(super) fn memory(&self) -> usize {
        let bytes = self.bytes.as_ref().map_or(0, |bytes| bytes.memory());
        let terms = self.terms.as_ref().map_or(0, |terms| terms.memory());
        let form = match self.form.spilled() {
            true => size_class(self.form.capacity()),
            false => 0,
        };
        form + bytes + terms
    }
}

/// All that is kept for one key.
pub(super) struct Entry {
    pub(super) hash: KeyHash,
    pub(super) key: Block,
    /// When it was last used, in operations of its shard.
    pub(super) used: u32,
    pub(super) hits: u8,
    /// Most keys have one reply.
    pub(super) kept: SmallVec<[Kept; 1]>,
}

impl Entry {
    /// Bytes of memory, with what finds it.
    pub(super) fn memory(&self) -> usize {
        let kept: usize = self.kept.iter().map(Kept::memory).sum();
        let list = match self.kept.spilled() {
            true => size_class(self.kept.capacity() * size_of::<Kept>()),
            false => 0,
        };
        Self::around(self.key.len()) + list + kept
    }

    /// Bytes of memory beside what one reply takes.
    pub(super) fn around(key: usize) -> usize {
        size_of::<Option<Self>>() + INDEX + size_class(key)
    }
}

/// A place in the table that finds entries by hash, and its share of the places that are empty.
const INDEX: usize = 28;
