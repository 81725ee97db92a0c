//! The meta commands: the contents of their lines.
//!
//! The newest server reads a line in two steps, and an error in the first one decides about the bytes behind
//! it:
//!
//! 1. It finds the words. One in a flag's place that begins with neither a letter nor a digit makes it stop
//!    **before** it has read how long the value is: the value would be commands. A missing word or an
//!    unreadable length makes it stop as well.
//! 2. It reads the flags. From here on it swallows the value of a line that it refuses.
//!
//! Older servers take any byte below 127 for a flag in the first step, but refuse more words, or more than
//! one letter of a mode, without reading the length. Only lines that all of them take alike are accepted. A
//! flag that none knows passes and is refused by the server, so that the flags of newer ones work.

use super::key::{KEY, is_base64_key};
use super::line::{Line, Words};
use super::number::{self, plain, seconds};
use super::{Command, Limits, error};
use crate::message::{Bad, Class, Request, Span};

/// Words of a line at most, command and key included. memcached 1.6.18 does not read the length of the value
/// from a longer `ms` line.
pub(super) const WORDS: usize = 19;

/// Words of a line at most for the newest server.
const NEWEST_WORDS: usize = 20;

/// Words that the newest server finds. It ignores those after them.
const FOUND: usize = 23;

/// The meaning of the flags.
#[derive(Clone, Copy)]
struct Flags {
    ttl: Span,
    quiet: Span,
    base64: bool,
    /// The reply names the key.
    names_key: bool,
    /// The class of an `mg` with these flags. `N` stores an item where there is none, which a route for reads
    /// must not do, and `T` changes an expiry time. `R`, and any `mg` of a stale item, marks that a client is
    /// refilling it; this stays a read, as the data stays the same.
    class: Class,
}

/// `mg KEY FLAG…`, `md KEY FLAG…`, `ma KEY FLAG…`
#[inline]
pub(super) fn keyed(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    request.key = key(line, &mut words)?;
    check_words(line, words.clone(), 2)?;
    match flags(line, words, 2, request) {
        Ok(flags) => {
            (request.ttl, request.quiet, request.base64_key) = (flags.ttl, flags.quiet, flags.base64);
            request.names_key = flags.names_key;
            if request.command == Command::MetaGet as u16 {
                request.class = flags.class;
            }
            Ok(())
        }
        Err(reply) => Err(Bad::refused(line.head, reply)),
    }
}

/// `ms KEY LENGTH FLAG…`
#[inline]
pub(super) fn set(
    line: Line<'_>,
    mut words: Words<'_>,
    request: &mut Request,
    limits: &Limits,
) -> Result<(), Bad> {
    request.key = key(line, &mut words)?;
    let word = words.next().unwrap_or_default().of(line.text);
    let swallow = number::lenient_length(word)
        .filter(|_| !word.is_empty())
        .ok_or_else(|| Bad::refused(line.head, error::BAD_FORMAT))?;
    check_words(line, words.clone(), 3)?;
    let reply = match (flags(line, words, 3, request), number::length(word)) {
        (Ok(flags), Some(length)) if length <= limits.value => {
            (request.ttl, request.quiet, request.base64_key) = (flags.ttl, flags.quiet, flags.base64);
            request.names_key = flags.names_key;
            request.body = length + 2;
            return Ok(());
        }
        (Ok(_), Some(_)) => error::TOO_LARGE,
        (Ok(_), None) => error::BAD_FORMAT,
        (Err(reply), _) => reply,
    };
    Err(Bad {
        swallow: swallow + 2,
        ..Bad::refused(line.head, reply)
    })
}

/// `me KEY [b]`; further words are ignored, and so is a `b` among them.
#[inline]
pub(super) fn debug(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    request.key = key(line, &mut words)?;
    check_words(line, words.clone(), 2)?;
    request.base64_key = words.next().is_some_and(|word| word.of(line.text) == b"b");
    let good =
        request.key.len as usize <= KEY && (!request.base64_key || is_base64_key(request.key.of(line.text)));
    if good {
        Ok(())
    } else {
        Err(Bad::refused(line.head, error::BAD_FORMAT))
    }
}

fn key(line: Line<'_>, words: &mut Words<'_>) -> Result<Span, Bad> {
    words
        .next()
        .ok_or_else(|| Bad::refused(line.head, error::BAD_FORMAT))
}

/// Whether every word in a flag's place begins as the newest server's first step wants it. `taken` words of
/// the line have been read.
#[inline]
fn check_words(line: Line<'_>, words: Words<'_>, taken: usize) -> Result<(), Bad> {
    let is_flag = |word: Span| matches!(line.text[word.start as usize], b'A'..=b'z' | b'0'..=b'9');
    if words.take(FOUND - taken).all(is_flag) {
        Ok(())
    } else {
        Err(Bad::refused(line.head, error::BAD_FORMAT))
    }
}

/// Reads the flags, `taken` words of the line being read already. It is long because each flag has its rule.
///
/// # Errors
/// Answers as the newest server does: it stops at a flag that it does not know or has seen, and names the
/// last one of several wrong arguments.
fn flags(line: Line<'_>, words: Words<'_>, taken: usize, request: &Request) -> Result<Flags, &'static [u8]> {
    let key = request.key.of(line.text);
    let is_arithmetic = request.command == Command::MetaArithmetic as u16;
    let fail = |reply| Err(if is_arithmetic { error::BAD_FLAG } else { reply });
    if key.len() > KEY {
        return fail(error::BAD_FORMAT);
    }
    if words.clone().nth(NEWEST_WORDS - taken).is_some() {
        return fail(error::TOO_MANY_FLAGS);
    }
    let (ttl, quiet) = (Span::default(), Span::default());
    let mut flags = Flags {
        ttl,
        quiet,
        base64: false,
        names_key: false,
        class: Class::Read,
    };
    // A bit for each letter.
    let mut seen = 0_u64;
    let mut mode: Option<&[u8]> = None;
    // Where the newest server stops, and the error that it has found until then.
    let (mut stop, mut fault) = (None, None);
    let mut blank = words.position();
    let mut count = taken;
    for word in words {
        count += 1;
        let [flag, argument @ ..] = word.of(line.text) else {
            continue;
        };
        let bit = 1 << (flag & 63);
        match flag {
            b'[' | b'\\' | b']' | b'^' | b'_' | b'`' => return fail(stop.unwrap_or(error::INVALID_FLAG)),
            b'0'..=b'9' => {}
            _ if seen & bit != 0 => return fail(stop.unwrap_or(error::DUPLICATE_FLAG)),
            _ => seen |= bit,
        }
        let is_good = match flag {
            b'q' => {
                flags.quiet = Span::new(blank, word.end());
                true
            }
            b'b' => {
                flags.base64 = true;
                is_base64_key(key)
            }
            b'N' | b'T' => {
                if *flag == b'T' || flags.ttl.is_empty() {
                    flags.ttl = Span::new(word.start as usize + 1, word.end());
                }
                if flags.class != Class::Write {
                    flags.class = if *flag == b'N' { Class::Write } else { Class::Touch };
                }
                seconds(argument).is_some()
            }
            b'R' => seconds(argument).is_some(),
            b'C' | b'E' | b'D' | b'J' => plain(argument).is_some(),
            b'F' => plain(argument).is_some_and(|flags| u32::try_from(flags).is_ok()),
            b'M' => {
                mode = Some(argument);
                true
            }
            b'k' => {
                flags.names_key = true;
                true
            }
            b'O' | b'P' | b'L' | b's' | b't' | b'c' | b'f' | b'l' | b'v' | b'h' | b'u' | b'x' | b'I' => true,
            _ => {
                stop = stop.or(Some(error::INVALID_FLAG));
                true
            }
        };
        if !is_good {
            fault = Some(fault_of(*flag).or(fault).unwrap_or(error::BAD_FORMAT));
        }
        blank = word.end();
    }
    match (fault, mode) {
        (Some(fault), _) => fail(stop.unwrap_or(fault)),
        // Older servers take one letter, and the newest examines the first one.
        (None, Some(mode)) if mode.len() != 1 => match stop {
            Some(stop) => fail(stop),
            None => Err(mode_fault(request, mode)),
        },
        _ if count > WORDS => fail(stop.unwrap_or(error::TOO_MANY_FLAGS)),
        _ => Ok(flags),
    }
}

/// The error for a wrong argument of this flag. `F` has no error of its own.
#[cold]
fn fault_of(flag: u8) -> Option<&'static [u8]> {
    match flag {
        b'b' => Some(error::BAD_BASE64),
        b'D' => Some(error::BAD_META_DELTA),
        b'J' => Some(error::BAD_INITIAL),
        b'F' => None,
        _ => Some(error::BAD_TOKEN),
    }
}

/// The error for a mode of no letter or of several. The newest server examines the first one.
#[cold]
fn mode_fault(request: &Request, mode: &[u8]) -> &'static [u8] {
    let knows = |modes: &[u8]| mode.first().is_some_and(|first| modes.contains(first));
    match Command::from_number(request.command) {
        Some(Command::MetaSet) if !knows(b"EAPRS") => error::BAD_SET_MODE,
        Some(Command::MetaArithmetic) if !knows(b"I+D-") => error::BAD_ARITHMETIC_MODE,
        _ => error::BAD_MODE_LENGTH,
    }
}
