//! Heads of requests.

use super::key::KEY;
use super::line::{self, Line, Words, plain_end, word_end};
use super::{Command, Limits, error, meta, text};
use crate::message::{Bad, Parsed, Request, Span};

/// Reads the command line at the beginning of `bytes`. The value that may follow is not read.
///
/// It refuses lines that servers read differently, and lines that none accepts. An unknown meta flag passes
/// and is refused by the server, so that the flags of newer ones work.
#[inline(always)]
pub fn request(bytes: &[u8], limits: &Limits) -> Parsed<Request> {
    match plain_get(bytes) {
        Some(request) => Parsed::Head(request),
        None => any(bytes, limits),
    }
}

/// Reads a request of any kind. It is not inlined, so that the plain get is.
#[inline(never)]
fn any(bytes: &[u8], limits: &Limits) -> Parsed<Request> {
    match bytes.first() {
        Some(0x80) => return Parsed::Bad(Bad::stranger(BINARY)),
        Some(0x16) => return Parsed::Bad(Bad::stranger(TLS)),
        _ => {}
    }
    line::first(bytes, limits.mcrouters).and_then(|line| {
        if line.is_long
            && let Some(read) = long(line, limits)
        {
            return read;
        }
        match on(line, limits) {
            Ok(request) => Parsed::Head(request),
            Err(bad) => Parsed::Bad(bad),
        }
    })
}

/// Reads a line that is longer than others may be by its beginning. `None`: all of it has come, and its
/// beginning would not have been refused without the rest.
#[cold]
fn long(line: Line<'_>, limits: &Limits) -> Option<Parsed<Request>> {
    let begun = begun(line.beginning(), limits);
    (!line.is_ended() || matches!(begun, Parsed::Bad(_))).then_some(begun)
}

/// Reads a retrieval command of many keys by the beginning of its line.
#[cold]
fn begun(line: Line<'_>, limits: &Limits) -> Parsed<Request> {
    let end = word_end(line.text, 0);
    match known(&line.text[..end], limits) {
        Some(command) => text::begun_get(line, Words::from(line.text, end), blank(command, line.head)),
        None => Parsed::Bad(unknown(line)),
    }
}

const BINARY: &str = "the client speaks memcached's binary protocol, which is not served here";
const TLS: &str = "the client speaks TLS, which is not served here";
const HTTP: &str = "the client speaks HTTP, which is not served here";

/// Bytes that a line needs, its end included, before the newest server examines its words.
const SHORTEST: usize = 4;

/// Parses the request on `line`.
fn on(line: Line<'_>, limits: &Limits) -> Result<Request, Bad> {
    if line.head < SHORTEST {
        return Err(Bad::refused(line.head, error::BAD_FORMAT));
    }
    let end = word_end(line.text, 0);
    let Some(command) = known(&line.text[..end], limits) else {
        return Err(unknown(line));
    };
    let mut request = blank(command, line.head);
    parse(command, line, Words::from(line.text, end), limits, &mut request)?;
    request.is_quiet = !request.quiet.is_empty();
    if line.is_clean {
        Ok(request)
    } else {
        Err(Bad {
            swallow: request.body,
            ..text::refuse_unless_quiet(line, error::BAD_FORMAT)
        })
    }
}

/// The command for this word, if it may be asked for.
#[inline]
fn known(word: &[u8], limits: &Limits) -> Option<Command> {
    Command::by_word(word).filter(|command| limits.mcrouters || !command.is_mcrouters())
}

/// No command. A browser that was made to send a cache what an attacker likes is closed with its request
/// line: what follows it would be commands.
#[cold]
fn unknown(line: Line<'_>) -> Bad {
    let has_more_words = Words::from(line.text, 0).nth(1).is_some();
    let last = line.last_word().unwrap_or_default();
    if has_more_words && last.starts_with(b"HTTP/") {
        return Bad::stranger(HTTP);
    }
    text::refuse_unless_quiet(line, error::ERROR)
}

/// `get KEY`, written as most are: one look at each byte finds the end of the key and of the line. None: look
/// closer.
#[inline(always)]
fn plain_get(bytes: &[u8]) -> Option<Request> {
    const GET: &[u8] = b"get ";
    let within = &bytes[..bytes.len().min(GET.len() + KEY + 2)];
    if !within.starts_with(GET) {
        return None;
    }
    let end = plain_end(within, GET.len());
    let good = end > GET.len() && within[end..].starts_with(b"\r\n");
    good.then(|| Request {
        key: Span::new(GET.len(), end),
        names_key: true,
        ..blank(Command::Get, end + 2)
    })
}

/// Reads the words after the command into `request`.
#[inline]
fn parse(
    command: Command,
    line: Line<'_>,
    words: Words<'_>,
    limits: &Limits,
    request: &mut Request,
) -> Result<(), Bad> {
    match command {
        Command::Get
        | Command::Gets
        | Command::Gat
        | Command::Gats
        | Command::LeaseGet
        | Command::Metadata => text::get(
            line,
            words,
            request,
            matches!(command, Command::Gat | Command::Gats),
        ),
        Command::Set
        | Command::Add
        | Command::Replace
        | Command::Append
        | Command::Prepend
        | Command::Cas => text::store(line, words, request, limits, command),
        Command::LeaseSet => {
            request.needs_proof = true;
            text::store(line, words, request, limits, command)
        }
        Command::Incr | Command::Decr => text::arithmetic(line, words, request),
        Command::Touch => text::touch(line, words, request),
        Command::Delete => text::delete(line, words, request),
        Command::FlushAll => text::flush_all(line, words, request),
        Command::Verbosity => text::verbosity(line, words, request),
        Command::MetaGet | Command::MetaDelete | Command::MetaArithmetic => {
            request.needs_proof = limits.mcrouters;
            meta::keyed(line, words, request)
        }
        Command::MetaSet => {
            request.needs_proof = limits.mcrouters;
            meta::set(line, words, request, limits)
        }
        Command::MetaDebug => {
            request.needs_proof = limits.mcrouters;
            meta::debug(line, words, request)
        }
        Command::MetaNoop
        | Command::Version
        | Command::Stats
        | Command::Config
        | Command::Quit
        | Command::Shutdown
        | Command::LruCrawler => Ok(()),
    }
}

/// Is `tail`, the last two bytes of a request's body, the line end that must follow a value? If not,
/// memcached answers [`error::BAD_CHUNK`] after reading the whole body.
#[inline]
pub fn is_value_end(tail: &[u8]) -> bool {
    tail == b"\r\n"
}

/// A request of which only the command is known.
#[inline]
fn blank(command: Command, head: usize) -> Request {
    Request::new(command as u16, command.class(), head)
}
