//! Lines and their words.

use crate::{
    eight,
    message::{Bad, Parsed, Span},
};
use memchr::{memchr, memchr2, memchr3};

/// Bytes within which a line must end. memcached closes the connection without a reply when it has more than
/// this without a line end. The lines of retrieval commands (`get` and its kin) have no limit, as for memcached: a
/// server with more of such a line takes its keys [one by one](super::take_key).
pub const LINE: usize = 2048;

/// A line without its line end.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// The bytes before the line end.
    pub(super) text: &'a [u8],
    /// Bytes of text and line end.
    pub(super) head: usize,
    /// Whether it has neither CR nor NUL before its end. Servers treat those differently.
    pub(super) is_clean: bool,
    /// Whether it is longer than [`LINE`]. Only a retrieval command's line may be, and is then read before it
    /// has ended.
    pub(super) is_long: bool,
}

impl Line<'_> {
    /// Whether its end has come.
    #[cold]
    pub(super) fn is_ended(&self) -> bool {
        self.text.len() < self.head
    }

    /// A long line with no more text than it had when it was found to be long, up to a CR or NUL.
    #[cold]
    pub(super) fn beginning(self) -> Self {
        let text = &self.text[..self.text.len().min(LINE + 1)];
        Self {
            text: &text[..memchr2(b'\r', 0, text).unwrap_or(text.len())],
            ..self
        }
    }
}

impl<'a> Line<'a> {
    /// The last word. `None`: there is no word.
    #[cold]
    pub(super) fn last_word(&self) -> Option<&'a [u8]> {
        let mut words = self.text.rsplit(|&byte| byte == b' ');
        words.find(|word| !word.is_empty())
    }
}

/// The first line of `bytes`. It ends with LF or CR LF. `mcrouters`: it may have one of mcrouter's own commands.
#[inline]
pub(super) fn first(bytes: &[u8], mcrouters: bool) -> Parsed<Line<'_>> {
    let within = &bytes[..bytes.len().min(LINE + 1)];
    let end = memchr3(b'\n', b'\r', 0, within).unwrap_or(within.len());
    let (end, head) = match &within[end..] {
        [b'\r', b'\n', ..] => (end, end + 2),
        [b'\n', ..] => (end, end + 1),
        _ => return unusual(bytes, mcrouters),
    };
    Parsed::Head(Line {
        text: &bytes[..end],
        head,
        is_clean: true,
        is_long: false,
    })
}

/// A head without its line end.
#[inline]
pub(super) fn text(head: &[u8]) -> &[u8] {
    let line = head.strip_suffix(b"\n").unwrap_or(head);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The first line where its end is not known yet, is far away, or stands behind a CR or NUL.
#[cold]
fn unusual(bytes: &[u8], mcrouters: bool) -> Parsed<Line<'_>> {
    let may_be_long = may_be_long(bytes, mcrouters);
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
                is_long: end > LINE,
            })
        }
        None if bytes.len() <= LINE => Parsed::More,
        None if may_be_long => Parsed::Head(Line {
            text: bytes,
            head: bytes.len(),
            is_clean: true,
            is_long: true,
        }),
        None => Parsed::Bad(Bad::fatal(b"")),
    }
}

fn may_be_long(bytes: &[u8], mcrouters: bool) -> bool {
    match first_word(bytes) {
        b"get" | b"gets" | b"gat" | b"gats" => true,
        b"lease-get" | b"metaget" => mcrouters,
        _ => false,
    }
}

fn first_word(bytes: &[u8]) -> &[u8] {
    &bytes[..word_end(&bytes[..bytes.len().min(LINE)], 0)]
}

/// The words of a line. Only blanks separate them, as for memcached; a tab is part of a word.
#[derive(Clone)]
pub(super) struct Words<'a> {
    text: &'a [u8],
    /// The end of the last word.
    at: usize,
}

impl<'a> Words<'a> {
    /// The words of `text` that begin at `at` or later.
    #[inline]
    pub(super) fn from(text: &'a [u8], at: usize) -> Self {
        Self { text, at }
    }

    /// The position after the last word, where the blank before the next one begins.
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

/// The end of the word that begins at `start`: the next blank, or the end of `text`.
#[inline]
pub(super) fn word_end(text: &[u8], start: usize) -> usize {
    eight::find(text, start, |bytes| eight::equal(bytes, b' '))
}

/// The end of the plain part of the word that begins at `start`: the next blank or control character, or the
/// end of `text`. It serves lines whose end is not known yet.
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
