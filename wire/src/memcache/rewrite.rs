//! A request's head with changes.

use super::command::Form;
use super::key::{KEY, is_word};
use super::line::{self, Words};
use super::{Command, base64, meta};
use crate::message::{Request, Span};
use std::io::Write;

/// What to change. Words that ask for silence always go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rewrite<'a> {
    /// Another key, not encoded; it is encoded where the request's own is.
    pub key: Option<&'a [u8]>,
    /// Another expiry time, in memcached's terms. Requests that set none keep it that way, `ms` excepted, which gets
    /// its `T` flag. `md` is left alone: an item marked stale may live shorter, never longer.
    pub ttl: Option<i64>,
}

/// Appends the head of `request`, which begins `bytes`, to `out` as `change` says. The caller appends the body.
///
/// False, and nothing is appended, when the result would not be a line that memcached reads as meant: the new key is
/// empty, longer than 250 bytes (encoded), holds a blank or line end, or is `noreply` to `delete`, or one flag more is one
/// too many.
#[must_use]
pub fn rewrite(request: &Request, bytes: &[u8], change: &Rewrite<'_>, out: &mut Vec<u8>) -> bool {
    let mut scratch = [0; KEY];
    let key = match change.key {
        Some(key) if request.base64_key => base64::encode(key, &mut scratch).filter(|_| !key.is_empty()),
        Some(b"noreply") if request.command == Command::Delete as u16 => None,
        Some(key) => Some(key).filter(|key| is_word(key)),
        None => Some(request.key.of(bytes)),
    };
    let Some(key) = key else { return false };
    let head = &bytes[..request.head as usize];
    let mut edit = Edit { head, at: 0, out };
    let command = Command::from_number(request.command);
    // What `md` marks as stale may live shorter, never longer.
    let ttl = change.ttl.filter(|_| command != Some(Command::MetaDelete));
    let Some(ttl) = ttl else {
        return edit.without_ttl(request, key);
    };
    if command.is_some_and(|command| command.form() == Form::Flags) {
        let adds = command == Some(Command::MetaSet);
        if adds && !has_room(request, head) {
            return false;
        }
        edit.replace(request.key, key);
        edit.flags(request, ttl, adds);
    } else if request.ttl.start < request.key.start {
        // gat and gats have it in front of the key.
        edit.replace_ttl(request.ttl, ttl);
        edit.replace(request.key, key);
        edit.replace(request.quiet, b"");
    } else {
        edit.replace(request.key, key);
        edit.replace_ttl(request.ttl, ttl);
        edit.replace(request.quiet, b"");
    }
    edit.finish();
    true
}

/// Does an `ms` line have room for the flag `T`, or have it already?
fn has_room(request: &Request, head: &[u8]) -> bool {
    let line = line::text(head);
    let has_ttl = Words::from(line, request.key.end()).any(|word| line[word.start as usize] == b'T');
    let words = Words::from(line, 0).count() - usize::from(request.is_quiet);
    has_ttl || words < meta::WORDS
}

/// A head on its way to `out`, copied up to `at`.
struct Edit<'a> {
    head: &'a [u8],
    at: usize,
    out: &'a mut Vec<u8>,
}

impl Edit<'_> {
    fn copy_to(&mut self, end: usize) {
        self.out.extend_from_slice(&self.head[self.at..end]);
        self.at = end;
    }

    /// Puts `with` in the place of `span`, which is absent or lies behind all that was edited before.
    fn replace(&mut self, span: Span, with: &[u8]) {
        if !span.is_empty() {
            self.copy_to(span.start as usize);
            self.out.extend_from_slice(with);
            self.at = span.end();
        }
    }

    fn replace_ttl(&mut self, span: Span, ttl: i64) {
        if !span.is_empty() {
            self.replace(span, b"");
            self.number(ttl);
        }
    }

    fn number(&mut self, ttl: i64) {
        // Newer servers refuse a time that exceeds 32 bits, and older ones drop the higher ones.
        let ttl = ttl.clamp(i32::MIN.into(), i32::MAX.into());
        // Writing to a Vec cannot fail.
        let _ = write!(self.out, "{ttl}");
    }

    /// Drops `q`, changes `T` and `N`, and adds `T` where `adds` says so and none stands.
    fn flags(&mut self, request: &Request, ttl: i64, mut adds: bool) {
        let line = line::text(self.head);
        for word in Words::from(line, self.at) {
            let flag = line[word.start as usize];
            if word.end() == request.quiet.end() {
                self.replace(request.quiet, b"");
            } else if matches!(flag, b'T' | b'N') {
                self.replace_ttl(Span::new(word.start as usize + 1, word.end()), ttl);
                adds &= flag != b'T';
            }
        }
        if adds {
            self.copy_to(line.len());
            self.out.extend_from_slice(b" T");
            self.number(ttl);
        }
    }

    /// The head with this key and an answer, and all else as it stands.
    fn without_ttl(mut self, request: &Request, key: &[u8]) -> bool {
        self.replace(request.key, key);
        self.replace(request.quiet, b"");
        self.finish();
        true
    }

    fn finish(mut self) {
        self.copy_to(self.head.len());
    }
}
