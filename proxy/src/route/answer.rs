//! Answers on their way back up the tree, and how a flight keeps them.

use std::{borrow::Cow, ops::Range};

use proxima_wire::message::{Outcome, Reply};

use crate::protocol::{Failed, Fate};

/// The answer to a request.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// A server, or a part of the proxy in its place, has answered with these bytes.
    Reply(&'a Reply, &'a [u8]),
    /// No server has answered.
    Failed(Failed<'a>),
}

impl Answer<'_> {
    /// The answer of an ejected child, which is not asked.
    pub const EJECTED: Self = Self::Failed(Failed::here(Outcome::Ejected, "ejected"));

    /// The kind of answer.
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Reply(reply, _) => reply.outcome,
            Self::Failed(failed) => failed.outcome,
        }
    }

    /// The bytes of a reply; empty for a failure.
    pub const fn bytes(&self) -> &[u8] {
        match self {
            Self::Reply(_, bytes) => bytes,
            Self::Failed(_) => b"",
        }
    }

    /// Is there a value in it?
    pub(super) fn has_value(&self) -> bool {
        self.outcome() == Outcome::Found
    }

    /// What has become of the request, if no server has answered it.
    pub const fn fate(&self) -> Fate {
        match self {
            Self::Failed(failed) => failed.fate,
            Self::Reply(..) => Fate::Unsent,
        }
    }

    /// The text of an error.
    pub fn what(&self) -> Cow<'_, str> {
        match self {
            Self::Reply(_, bytes) => String::from_utf8_lossy(bytes.trim_ascii_end()),
            Self::Failed(failed) => Cow::Borrowed(failed.what),
        }
    }
}

/// Answers that a flight may still need: the first one of each outcome.
#[derive(Debug, Default)]
pub struct Answers {
    all: Vec<AnswerRecord>,
    /// The bytes of all replies in `all`, one after the other.
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct AnswerRecord {
    outcome: Outcome,
    /// The number of answers that had this outcome.
    count: u32,
    /// What the answer counts.
    number: i64,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Reply(Reply, Range<usize>),
    Failed {
        server: String,
        what: String,
        fate: Fate,
    },
}

impl Answers {
    /// This answer alone.
    pub(super) fn of_one(answer: &Answer<'_>) -> Self {
        let mut answers = Self::default();
        answers.keep(answer);
        answers
    }

    /// Counts an outcome and keeps the first answer that had it. Returns how many answers have had it by now.
    pub fn keep(&mut self, answer: &Answer<'_>) -> u32 {
        self.keep_greatest(answer, 0)
    }

    /// The same, but keeps the answer that counts the most of those that had this outcome.
    pub(super) fn keep_greatest(&mut self, answer: &Answer<'_>, number: i64) -> u32 {
        let outcome = answer.outcome();
        let known = self.all.iter().position(|kept| kept.outcome == outcome);
        let count = known
            .and_then(|at| self.all.get(at))
            .map_or(1, |kept| kept.count + 1);
        if let Some(kept) = known.and_then(|at| self.all.get_mut(at)) {
            kept.count = count;
            if number <= kept.number {
                return count;
            }
        }
        let form = match answer {
            Answer::Reply(reply, bytes) => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                Form::Reply(**reply, start..self.bytes.len())
            }
            Answer::Failed(failed) => Form::Failed {
                server: failed.server.to_owned(),
                what: failed.what.to_owned(),
                fate: failed.fate,
            },
        };
        let kept = AnswerRecord {
            outcome,
            count,
            number,
            form,
        };
        match known.and_then(|at| self.all.get_mut(at)) {
            Some(known) => *known = kept,
            None => self.all.push(kept),
        }
        count
    }

    /// The number of answers that were kept or counted.
    pub fn count(&self) -> u32 {
        self.all.iter().map(|kept| kept.count).sum()
    }

    /// The outcomes of the answers that are kept.
    pub fn outcomes(&self) -> impl Iterator<Item = Outcome> {
        self.all.iter().map(|kept| kept.outcome)
    }

    /// The answer whose outcome and count `better` prefers to all others'.
    pub fn pick(&self, better: impl Fn((Outcome, u32), (Outcome, u32)) -> bool) -> Option<Answer<'_>> {
        let facts = |kept: &AnswerRecord| (kept.outcome, kept.count);
        let mut all = self.all.iter();
        let first = all.next()?;
        let best = all.fold(first, |best, kept| {
            if better(facts(kept), facts(best)) {
                kept
            } else {
                best
            }
        });
        Some(match &best.form {
            Form::Reply(reply, at) => Answer::Reply(reply, self.bytes.get(at.clone()).unwrap_or_default()),
            Form::Failed { server, what, fate } => Answer::Failed(Failed {
                outcome: best.outcome,
                server,
                what,
                fate: *fate,
            }),
        })
    }

    /// The answer that has this outcome.
    pub fn of(&self, outcome: Outcome) -> Option<Answer<'_>> {
        self.pick(|(a, _), _| a == outcome)
    }

    /// The answer with the worst outcome, in mcrouter's order.
    pub fn worst(&self) -> Option<Answer<'_>> {
        self.pick(|(a, _), (b, _)| a > b)
    }

    /// The answer with the best outcome, in mcrouter's order.
    pub fn best(&self) -> Option<Answer<'_>> {
        self.pick(|(a, _), (b, _)| a < b)
    }

    /// The answer with the most frequent outcome; between equals, the worst.
    pub(super) fn most_frequent(&self) -> Option<Answer<'_>> {
        self.pick(|(a, a_count), (b, b_count)| (a_count, a) > (b_count, b))
    }

    /// Bytes of memory that the answers take.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Forgets the answers, and keeps their buffers.
    pub fn clear(&mut self) {
        self.all.clear();
        self.bytes.clear();
    }
}
