//! The classic commands: what stands on their lines.
//!
//! The order of the checks is memcached's, because it decides which error a line with several of them gets: the number
//! of words, the length of the key, the numbers.

use super::key::KEY;
use super::line::{Line, Words};
use super::number::{self, number, time};
use super::{Limits, error};
use crate::message::{Bad, Class, Parsed, Request, Span};

/// `get KEY…`, `gets KEY…`, and with an expiry time before the keys `gat TTL KEY…`, `gats TTL KEY…`
#[inline]
pub(super) fn get(
    line: Line<'_>,
    mut words: Words<'_>,
    request: &mut Request,
    has_ttl: bool,
) -> Result<(), Bad> {
    if has_ttl {
        request.ttl = required(line, &mut words)?;
        if time(request.ttl.of(line.text)).is_none() {
            return Err(Bad::refused(line.head, error::BAD_TTL));
        }
    }
    let Some(first) = words.next() else {
        return Err(Bad::refused(
            line.head,
            if has_ttl { error::NO_KEYS } else { error::ERROR },
        ));
    };
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
        Err(Bad::refused(line.head, error::BAD_FORMAT))
    } else {
        Ok(())
    }
}

/// The same where the line has not ended: the first key is where keys are to be taken from, one by one. What can be known of
/// the others is found then.
#[cold]
pub(super) fn begun_get(line: Line<'_>, mut words: Words<'_>, mut request: Request) -> Parsed<Request> {
    if matches!(request.class, Class::Touch) {
        request.ttl = words.next().unwrap_or_default();
        if time(request.ttl.of(line.text)).is_none() {
            return Parsed::Bad(Bad::fatal(error::BAD_TTL));
        }
    }
    let more = |first: &Span| Span::new(first.start as usize + 1, line.head);
    match words.next() {
        Some(first) if !more(&first).is_empty() => {
            // Where the first key ends may still be unknown.
            (request.key, request.more_keys) = (Span { len: 1, ..first }, more(&first));
            Parsed::Head(request)
        }
        _ => Parsed::Bad(Bad::fatal(error::LINE_TOO_LONG)),
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
    request.quiet = quiet(line, words)?;
    check_key(line, request.key)?;
    let good = number(flags.of(line.text)).is_some()
        && time(request.ttl.of(line.text)).is_some()
        && id.is_none_or(|id| number(id.of(line.text)).is_some());
    let length = number::length(length.of(line.text)).filter(|_| good);
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
#[inline]
pub(super) fn arithmetic(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    request.key = required(line, &mut words)?;
    let delta = required(line, &mut words)?;
    request.quiet = quiet(line, words)?;
    check_key(line, request.key)?;
    check(line, number(delta.of(line.text)).is_some(), error::BAD_DELTA)?;
    Ok(())
}

/// `touch KEY TTL [noreply]`
#[inline]
pub(super) fn touch(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    request.key = required(line, &mut words)?;
    request.ttl = required(line, &mut words)?;
    request.quiet = quiet(line, words)?;
    check_key(line, request.key)?;
    check(line, time(request.ttl.of(line.text)).is_some(), error::BAD_TTL)?;
    Ok(())
}

/// `delete KEY [0] [noreply]`; the `0` is a delay of old times. A key `noreply` needs one: where it is the last word, newer
/// servers delete it and do not answer. Whoever sends that waits for an answer, and is told.
#[inline]
pub(super) fn delete(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    request.key = required(line, &mut words)?;
    let mut after = words.clone();
    let is_delay = |word: Span| word.of(line.text) == b"0";
    let good = match (after.next(), after.next(), after.next()) {
        (None, ..) if request.key.of(line.text) == b"noreply" => {
            return Err(Bad::refused(line.head, error::DELETE_USAGE));
        }
        (None, ..) => true,
        (Some(only), None, _) => {
            let is_delay = is_delay(only);
            request.quiet = quiet(line, if is_delay { after } else { words })?;
            is_delay || !request.quiet.is_empty() && request.key.of(line.text) != b"noreply"
        }
        (Some(delay), Some(_), None) => {
            words.next();
            request.quiet = quiet(line, words)?;
            is_delay(delay) && !request.quiet.is_empty()
        }
        (Some(_), Some(_), Some(_)) => return Err(Bad::refused(line.head, error::ERROR)),
    };
    check(line, good, error::DELETE_USAGE)?;
    check_key(line, request.key)?;
    Ok(())
}

/// `flush_all [DELAY] [noreply]`
#[inline]
pub(super) fn flush_all(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    let after_command = words.clone();
    let Some(delay) = words.next() else {
        return Ok(());
    };
    if delay.of(line.text) == b"noreply" && words.clone().next().is_none() {
        request.quiet = quiet(line, after_command)?;
        return Ok(());
    }
    request.quiet = quiet(line, words)?;
    check(line, time(delay.of(line.text)).is_some(), error::BAD_TTL)?;
    Ok(())
}

/// `verbosity LEVEL [noreply]`
#[inline]
pub(super) fn verbosity(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    let level = required(line, &mut words)?;
    request.quiet = quiet(line, words)?;
    check(line, number(level.of(line.text)).is_some(), error::BAD_FORMAT)?;
    Ok(())
}

/// The next word; a line without it is none of this command.
#[inline]
fn required(line: Line<'_>, words: &mut Words<'_>) -> Result<Span, Bad> {
    words.next().ok_or_else(|| Bad::refused(line.head, error::ERROR))
}

/// Takes the one word that may follow what a command needs: `noreply` with the blank before it. memcached ignores any
/// other.
#[inline]
fn quiet(line: Line<'_>, mut words: Words<'_>) -> Result<Span, Bad> {
    let blank = words.position();
    let Some(word) = words.next() else {
        return Ok(Span::default());
    };
    if words.next().is_some() {
        return Err(Bad::refused(line.head, error::ERROR));
    }
    let is_quiet = word.of(line.text) == b"noreply";
    Ok(if is_quiet {
        Span::new(blank, word.end())
    } else {
        Span::default()
    })
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
    Bad::refused(line.head, if last == Some(b"noreply") { b"" } else { reply })
}
