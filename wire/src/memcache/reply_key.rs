//! Keys in replies.

use super::command::Form;
use super::line::{self, Words};
use super::{Command, base64, key::KEY};
use crate::message::Span;
use memchr::{memchr, memchr2};

/// The key in the first line of `reply`, which was sent to `command`: after `VALUE`, after `ME` or in the
/// meta flag `k`. `None`: the reply has no key.
#[inline]
pub fn reply_key(command: Command, reply: &[u8]) -> Option<Span> {
    match command.form() {
        Form::Retrieval if command == Command::LeaseGet => {
            let words: [&[u8]; 2] = [b"VALUE ", b"LVALUE "];
            words
                .into_iter()
                .find_map(|word| after(word, reply))
                .or_else(|| last(b"NOT_FOUND_HOT ", reply))
        }
        Form::Retrieval => after(b"VALUE ", reply),
        Form::Metadata => after(b"META ", reply),
        Form::Flags => flag(reply),
        Form::Meta => after(b"ME ", reply),
        Form::Text => None,
    }
}

fn after(word: &[u8], reply: &[u8]) -> Option<Span> {
    let rest = reply.strip_prefix(word)?;
    let len = memchr2(b' ', b'\n', rest).filter(|&len| rest[len] == b' ')?;
    Some(Span::new(word.len(), word.len() + len))
}

/// The rest of the line behind this word.
fn last(word: &[u8], reply: &[u8]) -> Option<Span> {
    let line = line::text(&reply[..=memchr(b'\n', reply)?]);
    let len = line.strip_prefix(word)?.len();
    (len > 0).then(|| Span::new(word.len(), line.len()))
}

fn flag(reply: &[u8]) -> Option<Span> {
    let line = line::text(&reply[..=memchr(b'\n', reply)?]);
    if !matches!(line.first_chunk()?, b"HD" | b"VA" | b"EN" | b"NF" | b"NS" | b"EX") {
        return None;
    }
    let word = Words::from(line, 2).find(|word| word.of(line).first() == Some(&b'k'))?;
    Some(Span::new(word.start as usize + 1, word.end()))
}

/// Whether `reply` (its head, or more of it) names another key than the one that was asked for.
pub fn is_foreign(command: Command, asked: &[u8], reply: &[u8]) -> bool {
    if asked.is_empty() {
        return false;
    }
    let Some(key) = reply_key(command, reply).map(|key| key.of(reply)) else {
        return false;
    };
    if key == asked {
        return false;
    }
    // The client or the server may have said the key in base64.
    let (mut said, mut meant) = ([0; KEY], [0; KEY]);
    let said = base64::decode(key, &mut said).unwrap_or(key);
    let meant = base64::decode(asked, &mut meant).unwrap_or(asked);
    command.form() != Form::Flags || (said != asked && said != meant && key != meant)
}

/// Appends `reply` to `out`, with its key, if it has one, replaced by `request_key`: the client's own, as it
/// stands in the request (base64 stays base64). `reply` may be the head alone or more.
pub fn rewrite_reply_key(command: Command, request_key: &[u8], reply: &[u8], out: &mut Vec<u8>) {
    let Some(key) = reply_key(command, reply) else {
        return out.extend_from_slice(reply);
    };
    out.extend_from_slice(&reply[..key.start as usize]);
    out.extend_from_slice(request_key);
    out.extend_from_slice(&reply[key.end()..]);
}
