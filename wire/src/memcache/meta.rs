//! The meta commands: what stands on their lines.
//!
//! Only those flags are read that say where the key goes, when it expires and whether the server answers. An unknown one
//! passes, so that the flags of newer servers work.

use super::key::KEY;
use super::line::{Line, Words};
use super::number::{self, time};
use super::{Command, Limits, base64, error};
use crate::message::{Bad, Class, Request, Span};

/// The most words a line may have, command and key included. From a longer `ms` line memcached 1.6.18 does not read how
/// long the value is.
pub(super) const WORDS: usize = 19;

/// What the flags say.
#[derive(Clone, Copy)]
struct Flags {
    ttl: Span,
    quiet: Span,
    base64: bool,
    /// The class of an `mg` with these flags: `N` stores an item where there is none, which a route for reads must not
    /// do, and `T` changes the expiry of one that is there. (`R`, and any `mg` of a stale item, marks that somebody is
    /// refilling it; this stays a read, as the data stays the same.)
    class: Class,
}

/// What may be wrong with them.
enum Fault {
    TooMany,
    Duplicate,
    Number,
    Base64,
}

/// `mg KEY FLAG…`, `md KEY FLAG…`, `ma KEY FLAG…`
#[inline]
pub(super) fn keyed(
    line: Line<'_>,
    mut words: Words<'_>,
    request: &mut Request,
    command: Command,
) -> Result<(), Bad> {
    request.key = key(line, &mut words, error::ERROR)?;
    match flags(line, words, 2, request.key) {
        Ok(flags) => {
            (request.ttl, request.quiet, request.base64_key) = (flags.ttl, flags.quiet, flags.base64);
            if command == Command::MetaGet {
                request.class = flags.class;
            }
            Ok(())
        }
        Err(fault) => Err(Bad::refused(line.head, reply(command, &fault))),
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
    request.key = key(line, &mut words, error::ERROR)?;
    let length = words.next().and_then(|word| number::length(word.of(line.text)));
    let Some(length) = length else {
        let reply = if has_too_many(line) {
            error::TOO_MANY_FLAGS
        } else {
            error::BAD_FORMAT
        };
        return Err(Bad::refused(line.head, reply));
    };
    let reply = match flags(line, words, 3, request.key) {
        Ok(flags) if length <= limits.value => {
            (request.ttl, request.quiet, request.base64_key) = (flags.ttl, flags.quiet, flags.base64);
            request.body = length + 2;
            return Ok(());
        }
        Ok(_) => error::TOO_LARGE,
        Err(Fault::TooMany) => return Err(Bad::refused(line.head, error::TOO_MANY_FLAGS)),
        Err(fault) => reply(Command::MetaSet, &fault),
    };
    Err(Bad {
        swallow: length + 2,
        ..Bad::refused(line.head, reply)
    })
}

/// `me KEY [b]`; further words are ignored, and so is a `b` among them.
#[inline]
pub(super) fn debug(line: Line<'_>, mut words: Words<'_>, request: &mut Request) -> Result<(), Bad> {
    request.key = key(line, &mut words, error::BAD_FORMAT)?;
    request.base64_key = words.next().is_some_and(|word| word.of(line.text) == b"b");
    if request.base64_key && !base64::is_valid(request.key.of(line.text)) {
        return Err(Bad::refused(line.head, error::BAD_FORMAT));
    }
    Ok(())
}

fn key(line: Line<'_>, words: &mut Words<'_>, missing: &'static [u8]) -> Result<Span, Bad> {
    let Some(key) = words.next() else {
        return Err(Bad::refused(line.head, missing));
    };
    if key.len as usize > KEY {
        Err(Bad::refused(line.head, error::BAD_FORMAT))
    } else {
        Ok(key)
    }
}

/// Reads the flags, `taken` words of the line being read already.
fn flags(line: Line<'_>, words: Words<'_>, taken: usize, key: Span) -> Result<Flags, Fault> {
    let fault = |fault| Err(if has_too_many(line) { Fault::TooMany } else { fault });
    let (ttl, quiet) = (Span::default(), Span::default());
    let mut flags = Flags {
        ttl,
        quiet,
        base64: false,
        class: Class::Read,
    };
    // A bit for each letter; no other flags are known to any server, which will refuse them.
    let mut seen = 0_u64;
    let mut count = taken;
    let mut blank = words.position();
    for word in words {
        count += 1;
        let [flag, argument @ ..] = word.of(line.text) else {
            continue;
        };
        if flag.is_ascii_alphabetic() {
            let bit = 1 << (flag & 63);
            if seen & bit != 0 {
                return fault(Fault::Duplicate);
            }
            seen |= bit;
        }
        match flag {
            b'q' => flags.quiet = Span::new(blank, word.end()),
            b'b' => flags.base64 = true,
            b'N' | b'T' => {
                if time(argument).is_none() {
                    return fault(Fault::Number);
                }
                if *flag == b'T' || flags.ttl.is_empty() {
                    flags.ttl = Span::new(word.start as usize + 1, word.end());
                }
                if flags.class != Class::Write {
                    flags.class = if *flag == b'N' { Class::Write } else { Class::Touch };
                }
            }
            _ => {}
        }
        blank = word.end();
    }
    if count > WORDS {
        return Err(Fault::TooMany);
    }
    if flags.base64 && !base64::is_valid(key.of(line.text)) {
        return Err(Fault::Base64);
    }
    Ok(flags)
}

/// memcached counts before it reads: too many words outweigh every other fault.
#[cold]
fn has_too_many(line: Line<'_>) -> bool {
    Words::from(line.text, 0).nth(WORDS).is_some()
}

#[cold]
fn reply(command: Command, fault: &Fault) -> &'static [u8] {
    match (command, fault) {
        (Command::MetaGet, Fault::TooMany) => error::TOO_MANY_FLAGS_MG,
        (_, Fault::TooMany) => error::TOO_MANY_FLAGS,
        (Command::MetaGet | Command::MetaSet, Fault::Duplicate) => error::DUPLICATE_FLAG,
        (Command::MetaGet | Command::MetaSet, Fault::Number) => error::BAD_TOKEN,
        (Command::MetaGet | Command::MetaSet, Fault::Base64) => error::BAD_BASE64,
        (_, Fault::Duplicate | Fault::Number | Fault::Base64) => error::BAD_FLAG,
    }
}
