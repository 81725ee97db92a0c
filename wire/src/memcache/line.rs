//! A line and its words.

use super::error;
use super::request::refuse;
use crate::message::{Bad, Parsed, Span};
use memchr::memchr;

/// Bytes in which a line must end, the retrieval commands' excepted. memcached closes the connection without a word
/// when it holds more than this without a line end.
pub const LINE: usize = 2048;

/// The same for `get`, `gets`, `gat` and `gats` with many keys. memcached sets no limit to `get` and `gets`; this one
/// bounds memory and still takes more than 4,000 keys of the largest size.
pub const MULTIGET_LINE: usize = 1 << 20;

/// A line without its line end.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// The bytes before the line end.
    pub(super) text: &'a [u8],
    /// Bytes of text and line end.
    pub(super) head: u32,
}

/// The first line of `bytes`. It ends with LF; one CR before it belongs to the line end, unless the line holds nothing
/// else (memcached's reading).
#[inline]
pub(super) fn first(bytes: &[u8]) -> Parsed<Line<'_>> {
    let Some(end) = memchr(b'\n', &bytes[..bytes.len().min(LINE + 1)]) else {
        return unended(bytes);
    };
    ended(bytes, end)
}

#[inline]
fn ended(bytes: &[u8], end: usize) -> Parsed<Line<'_>> {
    let head = (end + 1) as u32;
    let text = text(&bytes[..=end]);
    if memchr(0, text).is_some() {
        return Parsed::Bad(refuse(head, error::BAD_FORMAT));
    }
    Parsed::Head(Line { text, head })
}

/// A head without its line end.
#[inline]
pub(super) fn text(head: &[u8]) -> &[u8] {
    match head {
        [text @ .., b'\r', b'\n'] if !text.is_empty() => text,
        [text @ .., b'\n'] => text,
        text => text,
    }
}

#[cold]
fn unended(bytes: &[u8]) -> Parsed<Line<'_>> {
    if bytes.len() <= LINE {
        return Parsed::More;
    }
    let close = |reply| {
        Parsed::Bad(Bad {
            reply,
            head: LINE as u32,
            swallow: 0,
            close: true,
        })
    };
    if !matches!(
        Words::new(bytes).next().map(|word| word.of(bytes)),
        Some(b"get" | b"gets" | b"gat" | b"gats")
    ) {
        return close(b"");
    }
    match memchr(b'\n', &bytes[..bytes.len().min(MULTIGET_LINE + 1)]) {
        Some(end) => ended(bytes, end),
        None if bytes.len() <= MULTIGET_LINE => Parsed::More,
        None => close(error::LINE_TOO_LONG),
    }
}

/// The words of a line: what stands between blanks. Only the blank separates, as for memcached; a tab is part of a word.
#[derive(Clone)]
pub(super) struct Words<'a> {
    text: &'a [u8],
    /// Where the last word ended.
    at: usize,
}

impl<'a> Words<'a> {
    #[inline]
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// The words that begin at `at` or later.
    #[inline]
    pub(super) fn from(text: &'a [u8], at: usize) -> Self {
        Self { text, at }
    }

    /// One past the last word returned: here begins the blank before the next one.
    #[inline]
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The next word, which is probably as long as a key is: found with vector instructions.
    #[inline]
    pub(super) fn next_long(&mut self) -> Option<Span> {
        self.next_by(|rest| memchr(b' ', rest))
    }

    #[inline]
    fn next_by(&mut self, blank: impl Fn(&[u8]) -> Option<usize>) -> Option<Span> {
        let rest = self.text.get(self.at..)?;
        let start = self.at + rest.iter().position(|&byte| byte != b' ')?;
        let rest = &self.text[start..];
        self.at = start + blank(rest).unwrap_or(rest.len());
        Some(Span::new(start, self.at))
    }
}

impl Iterator for Words<'_> {
    type Item = Span;

    /// The next word, which is probably short.
    #[inline]
    fn next(&mut self) -> Option<Span> {
        self.next_by(|rest| rest.iter().position(|&byte| byte == b' '))
    }
}
