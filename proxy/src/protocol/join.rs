//! Joining of several replies into one.

use std::ops::Range;

/// The way in which the replies to the parts of one request become one reply.
#[derive(Clone, Copy, Debug)]
pub enum Join {
    /// The replies follow each other without their trailers, and `end` follows the last. After the first
    /// error only that error is written.
    Concat {
        /// The bytes that close the joined reply.
        end: &'static [u8],
    },
    /// The replies follow each other, errors included. Their number was written before them.
    List,
    /// The joined reply is the sum of their [numbers](super::Requests::number). The first error is written in
    /// its place.
    Sum {
        /// Appends the reply with this sum.
        total: fn(i64, &mut Vec<u8>),
    },
    /// All replies are buffered, and the joined reply is made of them.
    Parts(fn(&mut Parts<'_>, &mut Assembly<'_>)),
}

/// The replies of several members to the parts of one request.
pub struct Parts<'a> {
    /// The number of replies.
    pub count: usize,
    /// The reply of each key's member, in the order of the keys; empty if the request was split by members
    /// alone. Of a request that [visits](super::Plan::Visit) members: the number of this one plus 1, and that
    /// of the next plus 1, or 0 if there is none.
    pub order: &'a [u32],
    /// A reply's bytes, and whether it is an error.
    pub reply: &'a dyn Fn(usize) -> (&'a [u8], bool),
    /// A position in each reply, 0 at first.
    pub cursors: &'a mut [usize],
}

/// An excerpt of one of the replies, which leaves as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The number of the reply.
    pub part: u32,
    /// The bytes of it.
    pub range: Range<usize>,
}

/// A joined reply while it is made: bytes of its own, and behind them excerpts of the replies. A small reply
/// is written at once. The excerpts of a large one are only noted and leave as the client takes them, so that
/// nothing large is held twice.
pub struct Assembly<'a> {
    out: &'a mut Vec<u8>,
    begin: usize,
    /// `None` to write excerpts at once.
    excerpts: Option<&'a mut Vec<Excerpt>>,
}

impl<'a> Assembly<'a> {
    /// A reply behind what `out` holds. With `excerpts` they are noted there, otherwise written to `out`.
    pub fn new(out: &'a mut Vec<u8>, excerpts: Option<&'a mut Vec<Excerpt>>) -> Self {
        let begin = out.len();
        Self { out, begin, excerpts }
    }

    /// The buffer for bytes of the reply's own. All of them come before the first excerpt.
    pub fn own(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Appends an excerpt of this reply.
    pub fn excerpt(&mut self, parts: &Parts<'_>, part: usize, range: Range<usize>) {
        match &mut self.excerpts {
            None => {
                let reply = (parts.reply)(part).0;
                self.out.extend_from_slice(reply.get(range).unwrap_or_default());
            }
            Some(excerpts) => match excerpts.last_mut() {
                Some(last) if last.part as usize == part && last.range.end == range.start => {
                    last.range.end = range.end;
                }
                _ => excerpts.push(Excerpt {
                    part: part as u32,
                    range,
                }),
            },
        }
    }

    /// Appends a reply as it is.
    pub fn whole(&mut self, parts: &Parts<'_>, part: usize) {
        self.excerpt(parts, part, 0..(parts.reply)(part).0.len());
    }

    /// Forgets what was appended.
    pub fn restart(&mut self) {
        self.out.truncate(self.begin);
        if let Some(excerpts) = &mut self.excerpts {
            excerpts.clear();
        }
    }
}
