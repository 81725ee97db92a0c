//! The state of reading a reply that has begun.

use crate::message::Parse;

/// The most values that may be due at a time. The bits above them are flags.
pub(super) const MOST_DUE: u32 = (1 << 28) - 1;

const PUSH: u32 = 1 << 31;
const STREAM: u32 = 1 << 30;
const BEGUN: u32 = 1 << 29;
const CHUNKS: u32 = 1 << 28;

/// A reply under way. One count suffices for nested values: a list adds its elements to those that are due. A
/// list without a count (a streamed one) sets the count aside until its end, and so does a push in the middle
/// of a reply.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// Bytes of this message that were read.
    pub(super) seen: u32,
    /// Values that are still to come.
    pub(super) due: u32,
    /// Bytes of a large string's content that are still to come, plus 1; its CR LF follows them. 0: none.
    pub(super) content: u32,
    /// The count that was set aside.
    pub(super) aside: u32,
    /// The values that come belong to a push.
    pub(super) is_push: bool,
    /// The values that come belong to a streamed list.
    pub(super) is_stream: bool,
    /// The values that come belong to a list.
    pub(super) has_begun: bool,
    /// The chunks of a streamed string come.
    pub(super) is_chunks: bool,
}

impl State {
    #[inline]
    pub(super) fn of(parse: &Parse) -> Self {
        let [content, packed] = parse.progress;
        Self {
            seen: parse.seen,
            due: parse.left,
            content,
            aside: packed & MOST_DUE,
            is_push: packed & PUSH != 0,
            is_stream: packed & STREAM != 0,
            has_begun: packed & BEGUN != 0,
            is_chunks: packed & CHUNKS != 0,
        }
    }

    #[inline]
    pub(super) fn keep(&self, parse: &mut Parse) {
        let flag = |is: bool, flag: u32| if is { flag } else { 0 };
        *parse = Parse {
            seen: self.seen,
            left: self.due,
            progress: [
                self.content,
                self.aside
                    | flag(self.is_push, PUSH)
                    | flag(self.is_stream, STREAM)
                    | flag(self.has_begun, BEGUN)
                    | flag(self.is_chunks, CHUNKS),
            ],
        };
    }

    /// Is the next value a reply itself, and not a part of one?
    #[inline]
    pub(super) fn is_top(&self) -> bool {
        self.due == 1 && !self.has_begun && !self.is_push && !self.is_stream
    }
}
