//! The classic commands: the contents of their lines.
//!
//! The order of the checks is the newest server's. It decides which error a line with several of them gets,
//! and how many bytes after it are swallowed: first missing words and the length of the value, then the
//! length of the key, then the numbers.

use super::key::KEY;
use super::line::{LINE, Line, Words};
use super::number::{self, number, seconds, time};
use super::{Command, Limits, error};
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
    }
    request.key = required(line, &mut words)?;
    request.names_key = true;
    if has_ttl && seconds(request.ttl.of(line.text)).is_none() {
        return Err(Bad::refused(line.head, error::BAD_TTL));
    }
    let mut too_long = request.key.len as usize > KEY;
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

/// Reads the beginning of a line that is longer than others may be. Keys are then taken one by one from the
/// first key on, and errors in the others are found at that time.
///
/// Only bytes that were there when the line could be no other decide, so that the same line is taken or
/// refused however it was cut on its way.
#[cold]
pub(super) fn begun_get(line: Line<'_>, mut words: Words<'_>, mut request: Request) -> Parsed<Request> {
    if matches!(request.class, Class::Touch) {
        request.ttl = words.next().unwrap_or_default();
        if seconds(request.ttl.of(line.text)).is_none() {
            return Parsed::Bad(Bad::fatal(error::BAD_TTL));
        }
    }
    match words.next() {
        // The end of the first key may still be unknown.
        Some(first) if (first.start as usize) < LINE => {
            request.key = Span { len: 1, ..first };
            request.more_keys = Span::new(first.start as usize + 1, line.head);
            Parsed::Head(request)
        }
        _ => Parsed::Bad(Bad::fatal(error::LINE_TOO_LONG)),
    }
}

/// `set KEY FLAGS TTL LENGTH [noreply]` and its kin; `cas` has its id after the length, and `lease-set` its
/// token before the flags.
#[inline]
pub(super) fn store(
    line: Line<'_>,
    mut words: Words<'_>,
    request: &mut Request,
    limits: &Limits,
    command: Command,
) -> Result<(), Bad> {
    request.key = required(line, &mut words)?;
    let token = match command {
        Command::LeaseSet => Some(required(line, &mut words)?),
        _ => None,
    };
    let flags = required(line, &mut words)?;
    request.ttl = required(line, &mut words)?;
    let length = required(line, &mut words)?.of(line.text);
    let has_id = command == Command::Cas;
    let id = if has_id { words.next() } else { None };
    let quiet = optional(line, words);
    let good = request.key.len as usize <= KEY
        && number(flags.of(line.text)).is_some()
        && time(request.ttl.of(line.text)).is_some()
        && token.is_none_or(|token| number::plain(token.of(line.text)).is_some())
        && (!has_id || id.is_some_and(|id| number::plain(id.of(line.text)).is_some()));
    match (number::length(length), quiet) {
        (Some(length), Ok(quiet)) if good && length <= limits.value => {
            request.quiet = quiet;
            request.body = length + 2;
            Ok(())
        }
        (Some(_), Ok(_)) if good => Err(swallowing(line, length, error::TOO_LARGE)),
        (_, Err(_)) if good => Err(swallowing(line, length, error::ERROR)),
        _ => Err(swallowing(line, length, error::BAD_FORMAT)),
    }
}

/// Refuses the line of a value. The newest server swallows the value of a line that it refuses, if it can
/// read the length. A proxy that refuses it must do the same: the bytes would be read as commands.
#[cold]
fn swallowing(line: Line<'_>, length: &[u8], reply: &'static [u8]) -> Bad {
    match number::lenient_length(length) {
        Some(length) => Bad {
            swallow: length + 2,
            ..refuse_unless_quiet(line, reply)
        },
        // The server has not looked for `noreply` yet.
        None => Bad::refused(line.head, error::BAD_FORMAT),
    }
}

/// `incr KEY DELTA [noreply]`, `decr KEY DELTA [noreply]`
#[inline]
pub(super) fn arithmetic(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    request.key = required(line, &mut words)?;
    let delta = required(line, &mut words)?;
    check_key(line, request.key)?;
    check(
        line,
        number::plain(delta.of(line.text)).is_some(),
        error::BAD_DELTA,
    )?;
    request.quiet = optional(line, words)?;
    Ok(())
}

/// `touch KEY TTL [noreply]`
#[inline]
pub(super) fn touch(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    request.key = required(line, &mut words)?;
    request.ttl = required(line, &mut words)?;
    check_key(line, request.key)?;
    check(line, seconds(request.ttl.of(line.text)).is_some(), error::BAD_TTL)?;
    request.quiet = optional(line, words)?;
    Ok(())
}

/// `delete KEY [0] [noreply]`. The `0` is a delay of old times, and older servers take no other word there. A
/// key `noreply` needs it: if it is the last word, newer servers delete it and do not answer. A client that
/// sends that waits for an answer, and gets an error.
#[inline]
pub(super) fn delete(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    request.key = required(line, &mut words)?;
    check_key(line, request.key)?;
    let mut after = words.clone();
    let is_delay = |word: Span| word.of(line.text) == b"0";
    let good = match (after.next(), after.next(), after.next()) {
        (None, ..) if request.key.of(line.text) == b"noreply" => {
            return Err(Bad::refused(line.head, error::DELETE_USAGE));
        }
        (None, ..) => true,
        (Some(only), None, _) => {
            let is_delay = is_delay(only);
            request.quiet = optional(line, if is_delay { after } else { words })?;
            is_delay || !request.quiet.is_empty() && request.key.of(line.text) != b"noreply"
        }
        (Some(delay), Some(_), None) => {
            words.next();
            request.quiet = optional(line, words)?;
            is_delay(delay) && !request.quiet.is_empty()
        }
        (Some(_), Some(_), Some(_)) => return Err(refuse_unless_quiet(line, error::ERROR)),
    };
    check(line, good, error::DELETE_USAGE)
}

/// `flush_all [DELAY] [noreply]`
#[inline]
pub(super) fn flush_all(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    let after_command = words.clone();
    let Some(delay) = words.next() else {
        return Ok(());
    };
    if delay.of(line.text) == b"noreply" && words.clone().next().is_none() {
        request.quiet = optional(line, after_command)?;
        return Ok(());
    }
    check(line, seconds(delay.of(line.text)).is_some(), error::BAD_TTL)?;
    request.quiet = optional(line, words)?;
    Ok(())
}

/// `verbosity LEVEL [noreply]`. Further words are ignored, but each `noreply` at the end asks for quiet: the
/// server looks at the last word alone, and would be silent for one that were left. The command never reaches
/// a server.
#[inline]
pub(super) fn verbosity(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    let level = words.next().filter(|word| word.len <= 11);
    let level = level.and_then(|word| number::plain(word.of(line.text)));
    let is_level = level.is_some_and(|level| u32::try_from(level).is_ok());
    check(line, is_level, error::BAD_FORMAT)?;
    let mut blank = words.position();
    while let Some(word) = words.next() {
        if word.of(line.text) == b"noreply" {
            request.quiet = Span::new(blank, word.end());
        } else {
            request.quiet = Span::default();
            blank = words.position();
        }
    }
    Ok(())
}

/// The next word. A line without it is no line of this command.
#[inline]
fn required(line: Line<'_>, words: &mut Words<'_>) -> Result<Span, Bad> {
    words
        .next()
        .ok_or_else(|| Bad::refused(line.head, error::BAD_FORMAT))
}

/// Takes the one word that may follow the arguments: `noreply` with the blank before it. All servers ignore
/// any other word, but older ones refuse a line with two.
#[inline]
fn optional(line: Line<'_>, mut words: Words<'_>) -> Result<Span, Bad> {
    let blank = words.position();
    let Some(word) = words.next() else {
        return Ok(Span::default());
    };
    if words.next().is_some() {
        return Err(refuse_unless_quiet(line, error::ERROR));
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

/// Refuses a line as memcached does, which sends no reply if the line ends with `noreply`, even where that
/// word stands in the place of another.
#[cold]
pub(super) fn refuse_unless_quiet(line: Line<'_>, reply: &'static [u8]) -> Bad {
    let is_quiet = line.last_word() == Some(b"noreply");
    Bad::refused(line.head, if is_quiet { b"" } else { reply })
}
