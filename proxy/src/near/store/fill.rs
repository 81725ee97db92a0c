//! A reply that is being fetched.

use std::sync::Arc;

use proxima_wire::message::{Outcome, Reply};

use super::{Bytes, KeyHash, OwnedQuestion, Question, Refusal, candidate::Candidate, entry::EntryKind};
use crate::{
    micros::Micros,
    near::{ERROR, Near, Note, Terms},
};

/// The right, and the duty, to fetch one reply for all requests that wait for it. While it lives, the same is
/// not fetched again unless something has changed.
pub struct Fill {
    near: Arc<Near>,
    hash: KeyHash,
    identity: u64,
    /// Its number in its shard. `None`: it has ended.
    serial: Option<u64>,
    note: Note,
    /// How often some of the rule's entries had been dropped when it began.
    drops: u32,
    asked: OwnedQuestion,
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
            serial: Some(serial),
            note,
            drops: question.rule.drops(),
            asked: OwnedQuestion::new(question),
        }
    }

    /// The question that it answers, with the rule.
    pub const fn asked(&self) -> &OwnedQuestion {
        &self.asked
    }

    /// Tells its question from all others.
    pub const fn identity(&self) -> u64 {
        self.identity
    }

    /// Begins to load what keeping its reply will read.
    pub fn preload(&self) {
        let Near { words, store, .. } = &*self.near;
        words.preload(self.hash);
        // A lock that another thread holds is not worth waiting for.
        if let Some(shard) = store.try_shard(self.hash) {
            shard.preload_insert(self.hash);
        }
    }

    /// May a reader that comes now have its reply? Nothing has changed since it began, and nothing is
    /// changing.
    pub fn may_be_joined(&self) -> bool {
        self.asked.question().rule.drops() == self.drops && self.near.words.is_same(self.hash, self.note)
    }

    /// Ends, and keeps the reply, unless something has changed since it was asked for. `chance`: by which its
    /// time is shortened.
    ///
    /// # Errors
    /// The reply is not kept; the error says why.
    pub fn keep(
        &mut self,
        reply: &Reply,
        bytes: Bytes<'_>,
        is_miss: bool,
        now: Micros,
        chance: u8,
    ) -> Result<(), Refusal> {
        let kind = if is_miss {
            EntryKind::Miss
        } else {
            EntryKind::Reply
        };
        self.insert(*reply, kind, (bytes, None), (now, chance))
    }

    /// Ends, and keeps the origin's value of the key on these terms. `None`: the origin has no value.
    ///
    /// # Errors
    /// It is not kept; the error says why.
    pub fn keep_value(
        &mut self,
        value: Option<Bytes<'_>>,
        terms: Terms,
        now: Micros,
        chance: u8,
    ) -> Result<(), Refusal> {
        let (outcome, kind) = match value {
            Some(_) => (Outcome::Found, EntryKind::Reply),
            None => (Outcome::NotFound, EntryKind::Miss),
        };
        let bytes = value.unwrap_or(Bytes::Alone(&[]));
        self.insert(Reply::new(outcome, 0), kind, (bytes, Some(terms)), (now, chance))
    }

    /// Ends, and keeps that the origin has failed, beside the value that there may be.
    pub fn keep_failure(&mut self, outcome: Outcome, text: &str, now: Micros) {
        let failed = (Bytes::Alone(text.as_bytes()), Some(Terms::FAILED));
        // Where this is refused, the next reader asks the origin.
        let _ = self.insert(Reply::new(outcome, 0), EntryKind::Reply, failed, (now, 0));
    }

    /// Ends, and forgets what was kept before: it is gone.
    pub fn keep_nothing(&mut self) {
        self.near.forget(&self.asked.question());
        self.end();
    }

    /// Ends, and records that the reply to this question cannot be kept: requests for it do not wait for each
    /// other.
    pub fn keep_none(&mut self, now: Micros, chance: u8) {
        let nothing = (Bytes::Alone(&[]), None);
        // Where this is refused, the next reader finds out by itself.
        let _ = self.insert(
            Reply::new(Outcome::Found, 0),
            EntryKind::Unkept,
            nothing,
            (now, chance),
        );
    }

    /// Ends without a reply. What is fetched is fetched anew for whoever asks next.
    pub fn end(&mut self) {
        if let Some(serial) = self.serial.take() {
            let mut shard = self.near.store.shard(self.hash);
            shard.end_fill(self.identity, serial);
        }
    }

    fn insert(
        &mut self,
        reply: Reply,
        kind: EntryKind,
        bytes: (Bytes<'_>, Option<Terms>),
        at: (Micros, u8),
    ) -> Result<(), Refusal> {
        let kept = self.insert_if_same(reply, kind, bytes, at);
        self.end();
        kept
    }

    fn insert_if_same(
        &mut self,
        reply: Reply,
        kind: EntryKind,
        (bytes, terms): (Bytes<'_>, Option<Terms>),
        (now, chance): (Micros, u8),
    ) -> Result<(), Refusal> {
        if self.serial.is_none() {
            return Err(Refusal::Changed);
        }
        let (store, number) = (&self.near.store, self.asked.number());
        let mut question = self.asked.question();
        if question.rule.number() != number || !question.rule.is_on() {
            return Err(Refusal::Off);
        }
        if terms.as_ref().is_some_and(|terms| terms.is_error) {
            question.form = ERROR;
        }
        let candidate = Candidate::new((question, number), reply, kind, (bytes, terms), (now, chance));
        let memory = candidate.memory();
        // A reply that took most of the memory would push out all others.
        if memory > store.memory() / 4 {
            return Err(Refusal::TooLarge);
        }
        // Records of errors and of replies that are too large keep readers from waiting for each other.
        let is_answer = kind != EntryKind::Unkept && question.form != ERROR;
        let (mut shard, has_room) = store.room_for(self.hash, memory, now, |shard| {
            is_answer && shard.turns_away(self.hash, self.identity)
        });
        if let Some(serial) = self.serial.take() {
            shard.end_fill(self.identity, serial);
        }
        if !has_room {
            shard.tell();
            return Err(Refusal::Unasked);
        }
        // A drop of some entries is counted by the rule before it comes to this shard.
        if question.rule.drops() != self.drops {
            shard.tell();
            return Err(Refusal::Changed);
        }
        let kept = shard.insert(self.hash, candidate, self.note);
        drop(shard);
        // What finds entries has grown with them.
        store.make_room(0, now);
        kept
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        self.end();
    }
}
