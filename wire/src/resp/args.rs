//! The arguments of a request.

use super::number::{Line, line};
use crate::message::Span;

/// The arguments of an array that [`frame`](super::frame()) has accepted, or of its beginning: those whose
/// bytes are there.
#[derive(Clone, Debug)]
pub struct Args<'a> {
    message: &'a [u8],
    at: usize,
    left: u32,
}

impl<'a> Args<'a> {
    /// The arguments of this message, the command's name first. A message that is no array has none.
    #[inline]
    pub fn of(message: &'a [u8]) -> Self {
        match (message.first(), line(message, 1)) {
            (Some(b'*'), Line::Number(count, at)) => Self {
                message,
                at,
                left: count.clamp(0, i64::from(u32::MAX)) as u32,
            },
            _ => Self {
                message,
                at: 0,
                left: 0,
            },
        }
    }

    /// The next `count` arguments of this message, beginning with `first`.
    pub(super) fn from_argument(message: &'a [u8], first: Span, count: u32) -> Self {
        let before = message.get(..first.start as usize).unwrap_or_default();
        // `$LENGTH\r\n` stands before it.
        let at = memchr::memrchr(b'$', before).unwrap_or_default();
        Self {
            message,
            at,
            left: count,
        }
    }

    /// The length of the argument at this place, whose bytes may still be to come. `None`: it is not announced.
    pub(super) fn length(message: &'a [u8], at: usize) -> Option<i64> {
        let mut args = Self::of(message);
        for _ in 0..at {
            args.next()?;
        }
        match line(message, args.at + 1) {
            Line::Number(len, _) if args.left > 0 => Some(len),
            _ => None,
        }
    }

    /// The number of arguments that were not taken, those that have not come included.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// The position behind the arguments that were taken.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The bytes of the next argument.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        self.next().map(|span| span.of(self.message))
    }
}

impl Iterator for Args<'_> {
    type Item = Span;

    #[inline]
    fn next(&mut self) -> Option<Span> {
        self.left = self.left.checked_sub(1)?;
        let Line::Number(len, start) = line(self.message, self.at + 1) else {
            self.left = 0;
            return None;
        };
        let end = start + len as usize;
        if end > self.message.len() {
            self.left = 0;
            return None;
        }
        self.at = end + 2;
        Some(Span::new(start, end))
    }
}
