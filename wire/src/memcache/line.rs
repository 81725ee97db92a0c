//! A line and its words.

use crate::{
    eight,
    message::{Bad, Parsed, Span},
};
use memchr::{memchr, memchr2, memchr3};

/// Bytes in which a line must end, the retrieval commands' excepted. memcached closes the connection without a word
/// when it holds more than this without a line end. Those of `get`, `gets`, `gat` and `gats` have no limit, as memcached's:
/// what holds more of one without a line end takes its keys [one by one](super::take_key).
pub const LINE: usize = 2048;

/// A line without its line end.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// The bytes before the line end.
    pub(super) text: &'a [u8],
    /// Bytes of text and line end.
    pub(super) head: usize,
    /// It has neither CR nor NUL before its end. Servers differ in what they make of those.
    pub(super) is_clean: bool,
    /// Has it ended? Only a retrieval command's line may be read before that.
    pub(super) is_ended: bool,
}

impl<'a> Line<'a> {
    /// The last word; none if there is none.
    #[cold]
    pub(super) fn last_word(&self) -> Option<&'a [u8]> {
        let mut words = self.text.rsplit(|&byte| byte == b' ');
        words.find(|word| !word.is_empty())
    }
}

/// The first line of `bytes`. It ends with LF or CR LF.
#[inline]
pub(super) fn first(bytes: &[u8]) -> Parsed<Line<'_>> {
    let within = &bytes[..bytes.len().min(LINE + 1)];
    let end = memchr3(b'\n', b'\r', 0, within).unwrap_or(within.len());
    let (end, head) = match &within[end..] {
        [b'\r', b'\n', ..] => (end, end + 2),
        [b'\n', ..] => (end, end + 1),
        _ => return unusual(bytes),
    };
    Parsed::Head(Line {
        text: &bytes[..end],
        head,
        is_clean: true,
        is_ended: true,
    })
}

/// A head without its line end.
#[inline]
pub(super) fn text(head: &[u8]) -> &[u8] {
    let line = head.strip_suffix(b"\n").unwrap_or(head);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The first line when its end is not known yet, or far away, or stands behind a CR or NUL.
#[cold]
fn unusual(bytes: &[u8]) -> Parsed<Line<'_>> {
    let may_be_long = may_be_long(bytes);
    let within = match may_be_long {
        true => bytes,
        false => &bytes[..bytes.len().min(LINE + 1)],
    };
    match memchr(b'\n', within) {
        Some(end) => {
            let text = text(&bytes[..=end]);
            Parsed::Head(Line {
                text,
                head: end + 1,
                is_clean: memchr2(b'\r', 0, text).is_none(),
                is_ended: true,
            })
        }
        None if bytes.len() <= LINE => Parsed::More,
        None if may_be_long => Parsed::Head(Line {
            text: &bytes[..memchr2(b'\r', 0, bytes).unwrap_or(bytes.len())],
            head: bytes.len(),
            is_clean: true,
            is_ended: false,
        }),
        None => Parsed::Bad(Bad::fatal(b"")),
    }
}

fn may_be_long(bytes: &[u8]) -> bool {
    matches!(first_word(bytes), b"get" | b"gets" | b"gat" | b"gats")
}

fn first_word(bytes: &[u8]) -> &[u8] {
    &bytes[..word_end(&bytes[..bytes.len().min(LINE)], 0)]
}

/// The words of a line: what stands between blanks. Only the blank separates, as for memcached; a tab is part of a word.
#[derive(Clone)]
pub(super) struct Words<'a> {
    text: &'a [u8],
    /// Where the last word ended.
    at: usize,
}

impl<'a> Words<'a> {
    /// The words of `text` that begin at `at` or later.
    #[inline]
    pub(super) fn from(text: &'a [u8], at: usize) -> Self {
        Self { text, at }
    }

    /// One past the last word returned: here begins the blank before the next one.
    #[inline]
    pub(super) fn position(&self) -> usize {
        self.at
    }
}

impl Iterator for Words<'_> {
    type Item = Span;

    #[inline]
    fn next(&mut self) -> Option<Span> {
        let mut start = self.at;
        while *self.text.get(start)? == b' ' {
            start += 1;
        }
        self.at = word_end(self.text, start);
        Some(Span::new(start, self.at))
    }
}

/// Where the word that begins at `start` ends: at the next blank, or where `text` does.
#[inline]
pub(super) fn word_end(text: &[u8], start: usize) -> usize {
    eight::find(text, start, |bytes| eight::equal(bytes, b' '))
}

/// Where the word that begins at `start` ends, or its plain part: at the next blank or control character, or where
/// `text` does. For lines whose end is not known yet.
#[inline]
pub(super) fn plain_end(text: &[u8], start: usize) -> usize {
    eight::find(text, start, |bytes| eight::below(bytes, b' ' + 1))
}

#[cfg(test)]
mod tests {
    use super::{plain_end, word_end};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_plain_word_ends_at_the_next_blank_or_control(text in "[ \t\r\n\0!\\xa0\u{7f}a]{0,40}", start in 0_usize..60) {
            let text = text.as_bytes();
            let start = start.min(text.len());
            let end = text[start..].iter().position(|&byte| byte <= b' ');
            prop_assert_eq!(plain_end(text, start), end.map_or(text.len(), |len| start + len));
        }

        #[test]
        fn a_word_ends_at_the_next_blank(text in "[ !\\xa0\u{21}a]{0,40}", start in 0_usize..60) {
            let text = text.as_bytes();
            let start = start.min(text.len());
            let expected = text[start..].iter().position(|&byte| byte == b' ').map_or(text.len(), |len| start + len);
            prop_assert_eq!(word_end(text, start), expected);
        }
    }
}
