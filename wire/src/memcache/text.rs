//! The classic commands: what stands on their lines.
//!
//! The order of the checks is memcached's, because it decides which error a line with several of them gets: the number
//! of words, the length of the key, the numbers.

use super::key::KEY;
use super::line::{Line, Words};
use super::number::{self, LENGTH, is_signed, is_unsigned};
use super::request::refuse;
use super::{Limits, error};
use crate::message::{Bad, Request, Span};

/// `get KEY…`, `gets KEY…`
#[inline]
pub(super) fn get(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    match words.next() {
        Some(key) => keys(line, words, key, request),
        None => Err(refuse(line.head, error::ERROR)),
    }
}

/// `gat TTL KEY…`, `gats TTL KEY…`
pub(super) fn get_and_touch(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    request.ttl = required(line, &mut words)?;
    if !is_signed(request.ttl.of(line.text)) {
        return Err(refuse(line.head, error::BAD_TTL));
    }
    match words.next() {
        Some(key) => keys(line, words, key, request),
        None => Err(refuse(line.head, error::NO_KEYS)),
    }
}

/// The keys from the first one, already taken, to the end of the line.
#[inline]
fn keys(line: Line<'_>, words: Words<'_>, first: Span, request: &mut Request) -> Result<(), Bad> {
    request.key = first;
    let mut too_long = first.len as usize > KEY;
    for key in words {
        too_long |= key.len as usize > KEY;
        let start = if request.more_keys.is_empty() {
            key.start
        } else {
            request.more_keys.start
        };
        request.more_keys = Span::new(start as usize, key.end());
    }
    if too_long {
        Err(refuse(line.head, error::BAD_FORMAT))
    } else {
        Ok(())
    }
}

/// `set KEY FLAGS TTL LENGTH [noreply]` and its kin; `cas` has its id after the length.
#[inline]
pub(super) fn store(
    line: Line<'_>,
    mut words: Words<'_>,
    request: &mut Request,
    limits: &Limits,
    has_id: bool,
) -> Result<(), Bad> {
    request.key = required(line, &mut words)?;
    let flags = required(line, &mut words)?;
    request.ttl = required(line, &mut words)?;
    let length = required(line, &mut words)?;
    let id = if has_id {
        Some(required(line, &mut words)?)
    } else {
        None
    };
    option(line, words, request)?;
    check_key(line, request.key)?;
    let good = is_unsigned(flags.of(line.text))
        && is_signed(request.ttl.of(line.text))
        && id.is_none_or(|id| is_unsigned(id.of(line.text)));
    let length = number::length(length.of(line.text)).filter(|&length| good && length <= LENGTH);
    let Some(length) = length else {
        return Err(refuse_unless_quiet(line, error::BAD_FORMAT));
    };
    if length > limits.value {
        return Err(Bad {
            swallow: length + 2,
            ..refuse_unless_quiet(line, error::TOO_LARGE)
        });
    }
    request.body = length + 2;
    Ok(())
}

/// `incr KEY DELTA [noreply]`, `decr KEY DELTA [noreply]`
pub(super) fn arithmetic(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    request.key = required(line, &mut words)?;
    let delta = required(line, &mut words)?;
    option(line, words, request)?;
    check_key(line, request.key)?;
    check(line, is_unsigned(delta.of(line.text)), error::BAD_DELTA)?;
    Ok(())
}

/// `touch KEY TTL [noreply]`
pub(super) fn touch(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    request.key = required(line, &mut words)?;
    request.ttl = required(line, &mut words)?;
    option(line, words, request)?;
    check_key(line, request.key)?;
    check(line, is_signed(request.ttl.of(line.text)), error::BAD_TTL)?;
    Ok(())
}

/// `delete KEY [0] [noreply]`; the `0` is a delay of old times.
pub(super) fn delete(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    request.key = required(line, &mut words)?;
    let mut after = words.clone();
    let is_delay = |word: Span| word.of(line.text) == b"0";
    let good = match (after.next(), after.next(), after.next()) {
        (None, ..) => true,
        (Some(only), None, _) => {
            let is_delay = is_delay(only);
            option(line, if is_delay { after } else { words }, request)?;
            is_delay || request.is_quiet
        }
        (Some(delay), Some(_), None) => {
            words.next();
            option(line, words, request)?;
            is_delay(delay) && request.is_quiet
        }
        (Some(_), Some(_), Some(_)) => return Err(refuse(line.head, error::ERROR)),
    };
    check(line, good, error::DELETE_USAGE)?;
    check_key(line, request.key)?;
    Ok(())
}

/// `flush_all [DELAY] [noreply]`
pub(super) fn flush_all(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    let after_command = words.clone();
    let Some(delay) = words.next() else {
        return Ok(());
    };
    if delay.of(line.text) == b"noreply" && words.clone().next().is_none() {
        option(line, after_command, request)?;
        return Ok(());
    }
    option(line, words, request)?;
    check(line, is_signed(delay.of(line.text)), error::BAD_TTL)?;
    Ok(())
}

/// `verbosity LEVEL [noreply]`
pub(super) fn verbosity(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    let level = required(line, &mut words)?;
    option(line, words, request)?;
    check(line, is_unsigned(level.of(line.text)), error::BAD_FORMAT)?;
    Ok(())
}

/// The next word; a line without it is none of this command.
#[inline]
fn required(line: Line<'_>, words: &mut Words<'_>) -> Result<Span, Bad> {
    words.next().ok_or_else(|| refuse(line.head, error::ERROR))
}

/// Takes the one word that may follow what a command needs. Only `noreply` means anything; memcached ignores any other.
#[inline]
fn option(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    let blank = words.position();
    let Some(word) = words.next() else { return Ok(()) };
    if words.next().is_some() {
        return Err(refuse(line.head, error::ERROR));
    }
    if word.of(line.text) == b"noreply" {
        request.quiet = Span::new(blank, word.end());
        request.is_quiet = true;
    }
    Ok(())
}

#[inline]
fn check_key(line: Line<'_>, key: Span) -> Result<(), Bad> {
    check(line, key.len as usize <= KEY, error::BAD_FORMAT)
}

#[inline]
fn check(line: Line<'_>, good: bool, reply: &'static [u8]) -> Result<(), Bad> {
    if good {
        Ok(())
    } else {
        Err(refuse_unless_quiet(line, reply))
    }
}

/// A refusal that memcached keeps to itself when the line ends with `noreply`, even where that word stands in the place
/// of another.
#[cold]
fn refuse_unless_quiet(line: Line<'_>, reply: &'static [u8]) -> Bad {
    let last = line
        .text
        .split(|&byte| byte == b' ')
        .rfind(|word| !word.is_empty());
    refuse(line.head, if last == Some(b"noreply") { b"" } else { reply })
}
