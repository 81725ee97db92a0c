//! A question that waits for its answer.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Question;
use crate::near::Rule;

/// A question of its own: of a fill, or of readers that wait for another worker's.
pub struct OwnedQuestion {
    rule: Arc<Rule>,
    /// The number of the rule by then.
    number: u32,
    key_length: usize,
    /// The key, then the form.
    text: SmallVec<[u8; 64]>,
}

impl OwnedQuestion {
    /// A copy of this question.
    pub fn new(question: &Question<'_>) -> Self {
        let mut text = SmallVec::from_slice(question.key);
        text.extend_from_slice(question.form);
        Self {
            rule: Arc::clone(question.rule),
            number: question.rule.number(),
            key_length: question.key.len(),
            text,
        }
    }

    /// The question, with its rule.
    pub fn question(&self) -> Question<'_> {
        let (key, form) = self.text.split_at_checked(self.key_length).unwrap_or_default();
        Question {
            rule: &self.rule,
            key,
            form,
        }
    }

    /// The number of the rule when it was asked.
    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// Is this the same question?
    pub fn is(&self, question: &Question<'_>) -> bool {
        let own = self.question();
        self.number == question.rule.number() && own.key == question.key && own.form == question.form
    }

    /// Bytes of memory beside itself.
    pub fn memory(&self) -> usize {
        match self.text.spilled() {
            true => self.text.capacity(),
            false => 0,
        }
    }
}
