//! A reply that is about to be kept.

use std::sync::Arc;

use proxima_wire::message::Reply;

use super::{
    Bytes, KeyHash, Question,
    entry::{Entry, EntryKind, RareFields},
    priority::{Links, Priority},
    record::Record,
};
use crate::{
    micros::Micros,
    near::{Note, Terms},
};

/// A reply that is about to be kept, and what it answers.
pub(super) struct Candidate<'a> {
    pub(super) question: Question<'a>,
    /// The number that its rule had when it was asked for.
    pub(super) number: u32,
    pub(super) reply: Reply,
    pub(super) kind: EntryKind,
    pub(super) now: Micros,
    pub(super) chance: u8,
    /// The bytes that are copied.
    bytes: &'a [u8],
    extra: Option<Box<RareFields>>,
}

impl<'a> Candidate<'a> {
    pub(super) fn new(
        (question, number): (Question<'a>, u32),
        reply: Reply,
        kind: EntryKind,
        (bytes, terms): (Bytes<'a>, Option<Terms>),
        (now, chance): (Micros, u8),
    ) -> Self {
        let (bytes, large) = bytes.split();
        let has_more = large.is_some() || terms.is_some();
        Self {
            question,
            number,
            reply,
            kind,
            now,
            chance,
            bytes,
            extra: has_more.then(|| Box::new(RareFields { large, terms })),
        }
    }

    /// The size of the block that it takes.
    pub(super) fn block(&self) -> usize {
        Record::size(&self.question, self.bytes.len())
    }

    /// Bytes of memory that it will take, with what finds it.
    pub(super) fn memory(&self) -> usize {
        let extra = self.extra.as_ref().map_or(0, |extra| extra.memory());
        Entry::AROUND + self.block() + extra
    }

    /// Is it the reply to the question that this entry, which has its key, answered before, and does it fit
    /// into the same memory?
    pub(super) fn fits(&self, entry: &Entry) -> bool {
        self.extra.is_none()
            && entry.record.memory() == self.block()
            && entry.record.form() == self.question.form
    }

    /// Puts it into an entry that it fits. The reply that was there has been asked for again.
    pub(super) fn revive(self, entry: &mut Entry, note: Note) {
        entry.record.set_reply(self.bytes);
        if !Arc::ptr_eq(&entry.rule, self.question.rule) {
            entry.rule = Arc::clone(self.question.rule);
            entry.hits = 0;
        }
        entry.reply = self.reply;
        entry.filled = self.now;
        entry.everything = note.everything();
        entry.number = self.number;
        entry.chance = self.chance;
        entry.kind = self.kind;
        entry.priority.hit();
    }

    /// The entry, in this block.
    pub(super) fn entry(self, hash: KeyHash, block: Vec<u8>, note: Note) -> Entry {
        // The count is written first: it would wait until the block has taken its bytes.
        let rule = Arc::clone(self.question.rule);
        Entry {
            hash,
            record: Record::new(block, &self.question, self.bytes),
            rule,
            reply: self.reply,
            filled: self.now,
            everything: note.everything(),
            extra: self.extra,
            number: self.number,
            hits: 0,
            next: None,
            links: Links::default(),
            priority: Priority::default(),
            chance: self.chance,
            kind: self.kind,
        }
    }
}
