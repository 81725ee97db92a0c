//! Changes heads of requests.

use super::command::Form;
use super::key::{KEY, is_word};
use super::line::{self, Words};
use super::{Command, base64, meta};
use crate::message::{Request, Span};
use std::io::Write;

/// The changes of a head. Words that ask for silence are always dropped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rewrite<'a> {
    /// The new key, not encoded. It is encoded where the request's own is.
    pub key: Option<&'a [u8]>,
    /// The new expiry time, in memcached's terms. Requests without one stay without one, except `ms`, which
    /// gets its `T` flag. `md` is left alone: an item marked stale may live shorter, never longer.
    pub ttl: Option<i64>,
}

/// Appends the head of `request`, which begins `bytes`, to `out` with this change. The caller appends the
/// body.
///
/// Returns false and appends nothing if memcached would not read the result as meant: the new key is empty,
/// longer than 250 bytes (encoded), has a blank or a line end, or is `noreply` to `delete`, or the new flag
/// is one too many.
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
    // An item that `md` marks as stale may live shorter, never longer.
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
        // gat and gats have the time before the key.
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

/// Whether an `ms` line has room for the flag `T`, or has it already.
fn has_room(request: &Request, head: &[u8]) -> bool {
    let line = line::text(head);
    let has_ttl = Words::from(line, request.key.end()).any(|word| line[word.start as usize] == b'T');
    let words = Words::from(line, 0).count() - usize::from(request.is_quiet);
    has_ttl || words < meta::WORDS
}

/// A head that is being copied to `out`; the copy has reached `at`.
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

    /// Writes `with` in place of `span`, which is absent or lies behind all earlier edits.
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
        // Newer servers refuse a time of more than 32 bits, and older ones drop the higher bits.
        let ttl = ttl.clamp(i32::MIN.into(), i32::MAX.into());
        // Writing to a Vec cannot fail.
        let _ = write!(self.out, "{ttl}");
    }

    /// Drops `q`, changes `T` and `N`, and adds `T` if `adds` is set and the line has none.
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

    /// The head with this key and with a reply; the rest is unchanged.
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
