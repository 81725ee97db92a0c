//! A reply that is being fetched.

use std::sync::Arc;

use proxima_wire::message::{Outcome, Reply};

use super::{
    KeyHash, Question, Refusal,
    bytes::Bytes,
    entry::{Entry, Form, Kept},
};
use crate::{
    micros::Micros,
    near::{ERROR, Near, Note, Rule, Terms},
};

/// The right, and the duty, to fetch one reply for all who ask for it. While it lives, nobody else fetches
/// the same unless something has changed.
pub struct Fill {
    near: Arc<Near>,
    hash: KeyHash,
    identity: u64,
    serial: u64,
    note: Note,
    rule: Arc<Rule>,
    /// The number of the rule when the fill began.
    number: u32,
    /// How often some of the rule's entries had been dropped by then.
    drops: u32,
    key: Box<[u8]>,
    form: Box<[u8]>,
}

impl Fill {
    pub(super) fn new(
        near: &Arc<Near>,
        hash: KeyHash,
        identity: u64,
        serial: u64,
        note: Note,
        question: &Question<'_>,
    ) -> Self {
        Self {
            near: Arc::clone(near),
            hash,
            identity,
            serial,
            note,
            rule: Arc::clone(question.rule),
            number: question.rule.number(),
            drops: question.rule.drops(),
            key: question.key.into(),
            form: question.form.into(),
        }
    }

    /// What it fetches, and for which rule.
    pub fn question(&self) -> Question<'_> {
        Question {
            rule: &self.rule,
            key: &self.key,
            form: &self.form,
        }
    }

    /// Is this its question?
    pub fn answers(&self, question: &Question<'_>) -> bool {
        self.number == question.rule.number() && *self.key == *question.key && *self.form == *question.form
    }

    /// May a reader that comes now have its reply? Nothing has changed since it began, and nothing is
    /// changing.
    pub fn may_be_joined(&self) -> bool {
        self.rule.drops() == self.drops && self.near.words.is_same(self.hash, self.note)
    }

    /// Keeps the reply, unless something has changed since it was asked for. `chance`: by which its time is
    /// shortened.
    ///
    /// # Errors
    /// The reply is not kept; the error says why.
    pub fn keep(
        self,
        reply: &Reply,
        bytes: Arc<[u8]>,
        is_miss: bool,
        now: Micros,
        chance: u8,
    ) -> Result<(), Refusal> {
        let kept = self.kept(reply, Some(bytes), is_miss, now, chance);
        self.insert(kept, now)
    }

    /// Keeps what an origin has for the key, on these terms. `None`: there is nothing.
    ///
    /// # Errors
    /// It is not kept; the error says why.
    pub fn keep_value(
        self,
        value: Option<Arc<[u8]>>,
        terms: Terms,
        now: Micros,
        chance: u8,
    ) -> Result<(), Refusal> {
        let (outcome, is_miss) = match value {
            Some(_) => (Outcome::Found, false),
            None => (Outcome::NotFound, true),
        };
        let reply = Reply::new(outcome, 0);
        let bytes = value.unwrap_or_else(|| [].into());
        let mut kept = self.kept(&reply, Some(bytes), is_miss, now, chance);
        kept.terms = Some(Box::new(terms));
        self.insert(kept, now)
    }

    /// Keeps that the origin has failed, beside the value that there may be.
    pub fn keep_failure(self, outcome: Outcome, text: &str, now: Micros) {
        let reply = Reply::new(outcome, 0);
        let mut kept = self.kept(&reply, Some(text.as_bytes().into()), false, now, 0);
        kept.form = Form::from_slice(ERROR);
        kept.terms = Some(Box::new(Terms::FAILED));
        // Where this is refused, the next reader asks the origin.
        let _ = self.insert(kept, now);
    }

    /// Keeps nothing, and forgets what was kept before: it is gone.
    pub fn keep_nothing(self) {
        self.near.forget(&self.question());
    }

    /// Keeps that the reply to this question cannot be kept: who asks for it waits for nobody else.
    pub fn keep_none(self, now: Micros, chance: u8) {
        let reply = Reply::new(Outcome::Found, 0);
        let kept = self.kept(&reply, None, false, now, chance);
        // Where this is refused, the next reader finds out by itself.
        let _ = self.insert(kept, now);
    }

    fn kept(&self, reply: &Reply, bytes: Option<Arc<[u8]>>, is_miss: bool, now: Micros, chance: u8) -> Kept {
        Kept {
            rule: Arc::clone(&self.rule),
            number: self.number,
            form: Form::from_slice(&self.form),
            bytes: bytes.map(|bytes| Bytes::new(bytes, &self.near.store.blocks)),
            reply: *reply,
            filled: now,
            everything: self.note.everything(),
            is_miss,
            terms: None,
            chance,
            hits: 0,
        }
    }

    fn insert(&self, kept: Kept, now: Micros) -> Result<(), Refusal> {
        if self.rule.number() != self.number || !self.rule.is_on() {
            return Err(Refusal::Off);
        }
        // A reply that took most of the memory would push out all others.
        if kept.memory() > self.near.store.memory() / 4 {
            return Err(Refusal::TooLarge);
        }
        self.near
            .store
            .make_room(Entry::around(self.key.len()) + kept.memory(), now);
        let mut shard = self.near.store.shard(self.hash);
        // A drop of some entries is counted by the rule before it comes to this shard.
        if self.rule.drops() != self.drops {
            return Err(Refusal::Changed);
        }
        let kept = shard.insert(self.hash, &self.key, kept, self.note, now);
        drop(shard);
        // What finds entries has grown with them.
        self.near.store.make_room(0, now);
        kept
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        self.near
            .store
            .shard(self.hash)
            .end_fill(self.identity, self.serial);
    }
}
