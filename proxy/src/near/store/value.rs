//! Questions to the store about the values of origins, beside lookups and fills.

use std::sync::Arc;

use super::{Question, RemovalReason, entry::EntryKind, shard::ShardLookup};
use crate::{
    micros::Micros,
    near::{ERROR, Failure, Near, Rule, Validator},
};

/// A kept value that its origin may confirm.
#[derive(Clone, Debug)]
pub struct StoredValue {
    /// The value.
    pub bytes: Arc<[u8]>,
    /// The validator that tells its version from others.
    pub validator: Arc<Validator>,
}

impl Near {
    /// The kept value, of any age, that the origin may confirm. `None` if no such value is kept.
    pub fn old(&self, question: &Question<'_>) -> Option<StoredValue> {
        let hash = self.store.hash(question.key);
        let shard = self.store.shard(hash);
        let entry = shard.find(hash, question).filter(|entry| !entry.is_unkept())?;
        Some(StoredValue {
            bytes: entry.share(),
            validator: Arc::clone(entry.terms()?.validator.as_ref()?),
        })
    }

    /// The recent failure of the origin for this key. `None` if it has not failed recently.
    pub fn failure(&self, question: &Question<'_>, now: Micros) -> Option<Failure> {
        let hash = self.store.hash(question.key);
        let question = Question {
            form: ERROR,
            ..*question
        };
        let mut text = Vec::new();
        let mut shard = self.store.shard(hash);
        let ShardLookup::Answer(found) = shard.look(hash, &question, now, &mut text) else {
            return None;
        };
        Some(Failure {
            outcome: found.reply.outcome,
            text: String::from_utf8_lossy(&text).into_owned(),
            is_origins: true,
        })
    }

    /// Forgets what is kept for this question: the origin has something else now that may not be kept.
    pub fn forget(&self, question: &Question<'_>) {
        let hash = self.store.hash(question.key);
        let number = question.rule.number();
        let mut shard = self.store.shard(hash);
        shard.remove_of(hash, question.key, |entry| {
            entry.answers(question, number).then_some(RemovalReason::Expired)
        });
    }

    /// Drops this key in all rules, and refuses the fills that are under way. Returns whether a reader under
    /// one of these rules would have got a value.
    pub fn drop_value<'a>(
        &self,
        rules: impl Iterator<Item = &'a Arc<Rule>> + Clone,
        key: &[u8],
        now: Micros,
    ) -> bool {
        let hash = self.store.hash(key);
        self.words.begin(hash);
        let mut shard = self.store.shard(hash);
        let has_value = shard.table().of_key(hash, key).any(|(_, entry)| {
            let mut its = rules.clone().filter(|rule| rule.number() == entry.number);
            let is_value = entry.kind == EntryKind::Reply && !entry.is_error();
            let is_current = self.words.is_current(entry.everything);
            its.next().is_some_and(|rule| {
                let settings = rule.settings();
                let stale = match entry.may_be_stale() {
                    true => settings.stale,
                    false => Micros::ZERO,
                };
                is_value && is_current && now - entry.filled < entry.fresh(&settings) + stale
            })
        });
        shard.remove_changed(hash, key);
        drop(shard);
        self.words.end(hash.word() as u16);
        has_value
    }
}
