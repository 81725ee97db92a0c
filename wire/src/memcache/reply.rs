//! Heads of replies.

use super::Command;
use super::command::Form;
use super::key::KEY;
use super::line::{LINE, plain_end, word_end};
use super::number::{self, LENGTH};
use crate::message::{Bad, Class, Outcome, Parsed, Reply};
use memchr::memchr;

/// The end of the reply to a retrieval command.
const END: &[u8] = b"END\r\n";
/// The beginning of a hit.
const VALUE: &[u8] = b"VALUE ";

/// Reads the head of the reply to `command` with one key at the beginning of `bytes`. A reply that this
/// command never gets is [`Parsed::Bad`]: nothing more from this connection can be trusted.
///
/// The reply to `stats` has any number of lines. They are read one by one, and all but the last are
/// [`Outcome::Found`].
#[inline]
pub fn reply(command: Command, bytes: &[u8]) -> Parsed<Reply> {
    match plain_hit(command, bytes) {
        Some(reply) => Parsed::Head(reply),
        None => any(command, bytes),
    }
}

/// Reads the head of a hit for this key in its most common form. `None`: the reply is something else, or
/// names another key.
#[inline]
pub fn hit(command: Command, key: &[u8], bytes: &[u8]) -> Option<Reply> {
    if command.form() != Form::Retrieval {
        return None;
    }
    let within = &bytes[..bytes.len().min(LINE)];
    let rest = within.strip_prefix(VALUE)?;
    if !rest.starts_with(key) {
        return None;
    }
    let (body, after) = announced(rest, key.len())?;
    let head = within.len() - after.strip_prefix(b"\r\n")?.len();
    Some(Reply {
        body,
        trailer: END.len() as u32,
        ..Reply::new(Outcome::Found, head)
    })
}

/// Reads a reply of any kind. It is not inlined, so that the plain hit is.
#[inline(never)]
fn any(command: Command, bytes: &[u8]) -> Parsed<Reply> {
    let Some(end) = memchr(b'\n', &bytes[..bytes.len().min(LINE + 1)]) else {
        return if bytes.len() > LINE {
            garbage()
        } else {
            Parsed::More
        };
    };
    let head = end + 1;
    let read = match &bytes[..end] {
        [line @ .., b'\r'] => read(command, line).or_else(|| error(line).map(|outcome| (outcome, 0, 0))),
        _ => None,
    };
    match read {
        Some((outcome, body, trailer)) => Parsed::Head(Reply {
            body,
            trailer,
            ..Reply::new(outcome, head)
        }),
        None => garbage(),
    }
}

/// Reads a value in its most common form, from left to right, without a search for the line end first.
/// `None`: the slow path has to look.
#[inline]
fn plain_hit(command: Command, bytes: &[u8]) -> Option<Reply> {
    if command.form() != Form::Retrieval {
        return None;
    }
    let within = &bytes[..bytes.len().min(LINE)];
    let rest = within.strip_prefix(VALUE)?;
    let (body, after) = announced(rest, plain_end(rest, 0))?;
    let head = within.len() - after.strip_prefix(b"\r\n")?.len();
    Some(Reply {
        body,
        trailer: END.len() as u32,
        ..Reply::new(Outcome::Found, head)
    })
}

#[cold]
fn garbage() -> Parsed<Reply> {
    Parsed::Bad(Bad::fatal(b""))
}

/// Outcome, body and trailer.
type Read = Option<(Outcome, u64, u32)>;

#[inline]
fn read(command: Command, line: &[u8]) -> Read {
    match command.form() {
        Form::Retrieval if command == Command::LeaseGet => leased(line),
        Form::Metadata => metadata(line),
        Form::Retrieval => retrieval(line, VALUE),
        Form::Flags => meta(command, line),
        Form::Text if command == Command::Config => retrieval(line, b"CONFIG "),
        Form::Text | Form::Meta => status(command, line).map(|outcome| (outcome, 0, 0)),
    }
}

/// Reads `VALUE KEY FLAGS LENGTH [ID]` or `END`.
#[inline]
fn retrieval(line: &[u8], word: &[u8]) -> Read {
    let Some(rest) = line.strip_prefix(word) else {
        return (line == b"END").then_some((Outcome::NotFound, 0, END.len() as u32));
    };
    let (body, after) = announced(rest, word_end(rest, 0))?;
    after
        .is_empty()
        .then_some((Outcome::Found, body, END.len() as u32))
}

/// Reads `META KEY …` or `END`.
#[cold]
fn metadata(line: &[u8]) -> Read {
    let end = END.len() as u32;
    let Some(rest) = line.strip_prefix(b"META ") else {
        return (line == b"END").then_some((Outcome::NotFound, 0, end));
    };
    let key = word_end(rest, 0);
    let good = (1..=KEY).contains(&key) && key < rest.len();
    good.then_some((Outcome::Found, end.into(), end))
}

/// Reads the reply to `lease-get`: a value, `LVALUE KEY TOKEN FLAGS LENGTH` for a miss that the client may
/// fill, or `NOT_FOUND_HOT [KEY]` for one that another client fills.
#[cold]
fn leased(line: &[u8]) -> Read {
    let end = END.len() as u32;
    if let Some(rest) = line.strip_prefix(b"NOT_FOUND_HOT") {
        let good = rest.is_empty() || rest.starts_with(b" ") && rest.len() <= 1 + KEY;
        return good.then_some((Outcome::NotFound, end.into(), end));
    }
    let Some(rest) = line.strip_prefix(b"LVALUE ") else {
        return retrieval(line, VALUE);
    };
    let key = word_end(rest, 0);
    let (_, after) = blank_number(&rest[key..])?;
    let (body, after) = lengths(after)?;
    let good = (1..=KEY).contains(&key) && after.is_empty();
    good.then_some((Outcome::NotFound, body, end))
}

/// Reads what follows a key of `key` bytes: ` FLAGS LENGTH [ID]`. Returns the length of the body and the
/// position after it.
#[inline]
fn announced(bytes: &[u8], key: usize) -> Option<(u64, &[u8])> {
    let (body, after) = lengths(&bytes[key..])?;
    let after = blank_number(after).map_or(after, |(_, after)| after);
    (1..=KEY).contains(&key).then_some((body, after))
}

/// Reads ` FLAGS LENGTH`. Returns the length of the body and what follows.
#[inline]
fn lengths(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (_, after) = blank_number(bytes)?;
    let (length, after) = blank_number(after)?;
    (length <= LENGTH).then(|| (length + 2 + END.len() as u64, after))
}

/// Reads a blank and a number. Returns the rest as well.
#[inline]
fn blank_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let digits = bytes.strip_prefix(b" ")?;
    let (number, len) = number::leading(digits)?;
    Some((number, &digits[len..]))
}

/// Reads `HD FLAG…`, `VA LENGTH FLAG…` and the codes for failures.
#[inline]
fn meta(command: Command, line: &[u8]) -> Read {
    let (code, rest) = line.split_at_checked(2)?;
    if !matches!(rest, [] | [b' ', ..]) {
        return None;
    }
    let outcome = match (command, code) {
        (Command::MetaGet | Command::MetaArithmetic, b"VA") => {
            let (length, flags) = blank_number(rest)?;
            let good = matches!(flags, [] | [b' ', ..]) && length <= LENGTH;
            return good.then(|| (Outcome::Found, length + 2, 0));
        }
        (Command::MetaGet | Command::MetaArithmetic, b"HD") => Outcome::Found,
        (Command::MetaSet, b"HD") => Outcome::Stored,
        (Command::MetaDelete, b"HD") => Outcome::Deleted,
        (Command::MetaGet, b"EN") => Outcome::NotFound,
        (Command::MetaSet | Command::MetaDelete | Command::MetaArithmetic, b"NF") => Outcome::NotFound,
        (Command::MetaSet | Command::MetaDelete | Command::MetaArithmetic, b"EX") => Outcome::Exists,
        (Command::MetaSet | Command::MetaDelete | Command::MetaArithmetic, b"NS") => Outcome::NotStored,
        _ => return None,
    };
    Some((outcome, 0, 0))
}

/// Replies of one line.
#[inline]
fn status(command: Command, line: &[u8]) -> Option<Outcome> {
    use Command::{
        Cas, Decr, Delete, FlushAll, Incr, LeaseSet, MetaDebug, MetaNoop, Stats, Touch, Verbosity, Version,
    };
    let (fits, outcome) = match line {
        b"STORED" => (command.class() == Class::Write, Outcome::Stored),
        // Others see the value, which the owner of a newer token will replace.
        b"STALE_STORED" => (command == LeaseSet, Outcome::Stored),
        b"NOT_STORED" => (command.class() == Class::Write, Outcome::NotStored),
        b"EXISTS" => (matches!(command, Cas | LeaseSet), Outcome::Exists),
        b"DELETED" => (command == Delete, Outcome::Deleted),
        b"TOUCHED" => (command == Touch, Outcome::Touched),
        b"NOT_FOUND" => (
            matches!(command, Cas | Delete | Incr | Decr | LeaseSet | Touch),
            Outcome::NotFound,
        ),
        b"OK" => (matches!(command, FlushAll | Verbosity), Outcome::Ok),
        b"MN" => (command == MetaNoop, Outcome::Ok),
        b"END" | b"RESET" => (command == Stats, Outcome::Ok),
        [b'S', b'T', b'A', b'T', b' ', ..] => (command == Stats, Outcome::Found),
        b"EN" => (command == MetaDebug, Outcome::NotFound),
        [b'M', b'E', b' ', ..] => (command == MetaDebug, Outcome::Found),
        [b'V', b'E', b'R', b'S', b'I', b'O', b'N', b' ', ..] => (command == Version, Outcome::Ok),
        number => (
            matches!(command, Incr | Decr) && number::digits(number).is_some(),
            Outcome::Found,
        ),
    };
    fits.then_some(outcome)
}

/// Reads error lines, which any command may get.
#[cold]
fn error(line: &[u8]) -> Option<Outcome> {
    let (word, text) = line.split_at(line.iter().position(|&byte| byte == b' ').unwrap_or(line.len()));
    Some(match (word, text) {
        // The server has as many clients as it takes. It sends this unasked and closes.
        (b"ERROR", b" Too many open connections") => Outcome::Busy,
        (b"ERROR" | b"ERROR:" | b"CLIENT_ERROR", _) => Outcome::ClientError,
        (b"SERVER_ERROR" | b"SERVER_ERROR:", text) => match text.get(..4) {
            Some(b" 301") => Outcome::Shutdown,
            Some(b" 302") => Outcome::TryAgain,
            Some(b" 307") => Outcome::Busy,
            _ => Outcome::RemoteError,
        },
        _ => return None,
    })
}

/// Whether `bytes`, a whole reply, ends as its head announces. If not, the server's lengths and ours differ,
/// and nothing more from this connection can be trusted. Heads without a body always do.
#[inline]
pub fn is_reply_whole(reply: &Reply, bytes: &[u8]) -> bool {
    reply.body == 0
        || bytes.ends_with(if reply.trailer == 0 {
            b"\r\n"
        } else {
            b"\r\nEND\r\n"
        })
}
