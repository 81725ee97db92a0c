//! Answers, and lanes to be given out, that wait until the walk in which they were made or freed is over.

use std::{ops::Range, sync::Arc};

use proxima_wire::message::{Outcome, Reply};

use super::ReplyTo;
use crate::{
    members::Member,
    protocol::{Failed, Fate},
    route::Answer,
};

/// Buffers of more bytes, or for more entries, than this are freed when nothing waits in them.
const KEPT: usize = 64 * 1024;
const KEPT_ENTRIES: usize = 1024;

/// The answers that wait, in the order in which they came. The buffers are used again, so that an answer that
/// waits takes no allocation.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    entries: Vec<Entry>,
    /// The bytes of the replies, one after the other.
    bytes: Vec<u8>,
    /// The texts of the failures, one after the other.
    text: String,
}

/// The work that is due when the walk is over.
pub(super) enum Due<'a> {
    /// This receiver is answered.
    Answer(ReplyTo, Answer<'a>),
    /// Free lanes to this member are given to clients that wait for one.
    Lanes(&'a Arc<Member>),
}

#[derive(Debug)]
enum Entry {
    Answer(ReplyTo, Form),
    Lanes(Arc<Member>),
}

/// The parts of an answer, of which the ranges are in the buffers.
#[derive(Debug)]
enum Form {
    Reply(Reply, Range<usize>),
    Failed {
        outcome: Outcome,
        fate: Fate,
        server: Range<usize>,
        what: Range<usize>,
    },
}

impl Waiting {
    /// Returns whether nothing waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns whether an answer to this receiver waits.
    pub(super) fn has(&self, to: ReplyTo) -> bool {
        let is_its = |entry: &Entry| matches!(entry, Entry::Answer(other, _) if *other == to);
        self.entries.iter().any(is_its)
    }

    /// Adds the free lanes to this member.
    pub(super) fn push_lanes(&mut self, member: &Arc<Member>) {
        self.entries.push(Entry::Lanes(Arc::clone(member)));
    }

    /// Adds a copy of this answer.
    pub(super) fn push(&mut self, to: ReplyTo, answer: &Answer<'_>) {
        let form = match *answer {
            Answer::Reply(reply, bytes) => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                Form::Reply(*reply, start..self.bytes.len())
            }
            Answer::Failed(failed) => Form::Failed {
                outcome: failed.outcome,
                fate: failed.fate,
                server: self.add(failed.server),
                what: self.add(failed.what),
            },
        };
        self.entries.push(Entry::Answer(to, form));
    }

    fn add(&mut self, text: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(text);
        start..self.text.len()
    }

    /// All that waits.
    pub(super) fn iter(&self) -> impl Iterator<Item = Due<'_>> {
        self.entries.iter().map(|entry| match entry {
            Entry::Answer(to, form) => Due::Answer(*to, self.answer(form)),
            Entry::Lanes(member) => Due::Lanes(member),
        })
    }

    fn answer<'a>(&'a self, form: &'a Form) -> Answer<'a> {
        let text = |range: &Range<usize>| self.text.get(range.clone()).unwrap_or_default();
        match form {
            Form::Reply(reply, range) => {
                Answer::Reply(reply, self.bytes.get(range.clone()).unwrap_or_default())
            }
            Form::Failed {
                outcome,
                fate,
                server,
                what,
            } => Answer::Failed(Failed {
                outcome: *outcome,
                server: text(server),
                what: text(what),
                fate: *fate,
            }),
        }
    }

    /// Forgets what has waited, and keeps small buffers.
    pub(super) fn clear(&mut self) {
        if self.bytes.capacity() + self.text.capacity() > KEPT || self.entries.capacity() > KEPT_ENTRIES {
            *self = Self::default();
        }
        self.entries.clear();
        self.bytes.clear();
        self.text.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_out_as_they_went_in_and_in_that_order() {
        let (flight, peer) = (
            ReplyTo::Nobody,
            ReplyTo::Client {
                client: super::super::ClientId::from_bits(7),
                seq: 3,
            },
        );
        let reply = Reply::new(Outcome::Stored, 8);
        let failed = Failed::at("10.0.0.1:11211", Outcome::Timeout, "timeout");
        let mut waiting = Waiting::default();
        assert!(waiting.is_empty() && !waiting.has(peer));
        waiting.push(flight, &Answer::Reply(&reply, b"STORED\r\n"));
        waiting.push(peer, &Answer::Failed(failed));
        waiting.push(flight, &Answer::Reply(&reply, b""));
        let told: Vec<String> = waiting
            .iter()
            .map(|due| match due {
                Due::Answer(to, answer) => format!("{to:?} {answer:?}"),
                Due::Lanes(member) => format!("lanes to {}", member.name),
            })
            .collect();
        let expected = [
            (flight, Answer::Reply(&reply, b"STORED\r\n")),
            (peer, Answer::Failed(failed)),
            (flight, Answer::Reply(&reply, b"")),
        ];
        assert_eq!(told, expected.map(|(to, answer)| format!("{to:?} {answer:?}")));
        assert!(waiting.has(peer));
        waiting.clear();
        assert!(waiting.is_empty() && waiting.iter().next().is_none());
    }

    #[test]
    fn large_buffers_are_given_back_and_small_ones_are_kept() {
        let reply = Reply::new(Outcome::Ok, 0);
        for (size, is_kept) in [(1024, true), (KEPT + 1, false)] {
            let mut waiting = Waiting::default();
            waiting.push(ReplyTo::Nobody, &Answer::Reply(&reply, &vec![0; size]));
            waiting.clear();
            assert_eq!(waiting.bytes.capacity() >= size, is_kept, "{size}");
        }
    }
}
