//! The head of a request.

use super::key::KEY;
use super::line::{self, Line, Words, plain_end, word_end};
use super::{Command, Limits, error, meta, text};
use crate::message::{Bad, Parsed, Request, Span};

/// Reads the command line at the beginning of `bytes`. The value that may follow is not looked at.
///
/// Refuses what memcached 1.6.18 refuses, with its words, where accepting it would leave the length of the message in
/// doubt; what only concerns the server (an unknown meta flag, say) passes and is refused there.
#[inline]
pub fn request(bytes: &[u8], limits: &Limits) -> Parsed<Request> {
    match plain_get(bytes) {
        Some(request) => Parsed::Head(request),
        None => any(bytes, limits),
    }
}

/// Whatever it is. Not inlined, so that the plain get is.
#[inline(never)]
fn any(bytes: &[u8], limits: &Limits) -> Parsed<Request> {
    line::first(bytes).and_then(|line| {
        let end = word_end(line.text, 0);
        let Some(command) = Command::by_word(&line.text[..end]) else {
            return Parsed::Bad(Bad::refused(line.head, error::ERROR));
        };
        let mut request = blank(command, line.head);
        if !line.is_ended {
            return text::begun_get(line, Words::from(line.text, end), request);
        }
        match parse(command, line, Words::from(line.text, end), limits, &mut request) {
            Ok(()) => {
                request.is_quiet = !request.quiet.is_empty();
                Parsed::Head(request)
            }
            Err(bad) => Parsed::Bad(bad),
        }
    })
}

/// `get KEY`, written as most are: one look at each byte finds the end of the key and of the line. None: look closer.
#[inline]
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
        Command::Get | Command::Gets | Command::Gat | Command::Gats => text::get(
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
        | Command::Cas => text::store(line, words, request, limits, command == Command::Cas),
        Command::Incr | Command::Decr => text::arithmetic(line, words, request),
        Command::Touch => text::touch(line, words, request),
        Command::Delete => text::delete(line, words, request),
        Command::FlushAll => text::flush_all(line, words, request),
        Command::Verbosity => text::verbosity(line, words, request),
        Command::MetaGet | Command::MetaDelete | Command::MetaArithmetic => {
            meta::keyed(line, words, request, command)
        }
        Command::MetaSet => meta::set(line, words, request, limits),
        Command::MetaDebug => meta::debug(line, words, request),
        Command::MetaNoop
        | Command::Version
        | Command::Stats
        | Command::Config
        | Command::Quit
        | Command::Shutdown => Ok(()),
    }
}

/// Is `tail`, the last two bytes of a request's body, the line end that must follow a value? If not, memcached answers
/// [`error::BAD_CHUNK`] after reading the whole body.
#[inline]
pub fn is_value_end(tail: &[u8]) -> bool {
    tail == b"\r\n"
}

/// A request of which only the command is known.
#[inline]
fn blank(command: Command, head: usize) -> Request {
    Request::new(command as u8, command.class(), head)
}
