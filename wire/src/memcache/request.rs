//! The head of a request.

use super::line::{self, Line, Words};
use super::{Command, Limits, error, meta, text};
use crate::message::{Bad, Parsed, Request, Span};

/// Reads the command line at the beginning of `bytes`. The value that may follow is not looked at.
///
/// Refuses what memcached 1.6.18 refuses, with its words, where accepting it would leave the length of the message in
/// doubt; what only concerns the server (an unknown meta flag, say) passes and is refused there.
#[inline]
pub fn request(bytes: &[u8], limits: &Limits) -> Parsed<Request> {
    let line = match line::first(bytes) {
        Parsed::Head(line) => line,
        Parsed::More => return Parsed::More,
        Parsed::Bad(bad) => return Parsed::Bad(bad),
    };
    match parse(line, limits) {
        Ok(request) => Parsed::Head(request),
        Err(bad) => Parsed::Bad(bad),
    }
}

#[inline]
fn parse(line: Line<'_>, limits: &Limits) -> Result<Request, Bad> {
    let mut words = Words::new(line.text);
    let command = words.next().and_then(|word| Command::by_word(word.of(line.text)));
    let Some(command) = command else {
        return Err(refuse(line.head, error::ERROR));
    };
    let blank = blank(command, line.head);
    match command {
        Command::Get | Command::Gets => text::get(line, words, blank),
        Command::Gat | Command::Gats => text::get_and_touch(line, words, blank),
        Command::Set | Command::Add | Command::Replace | Command::Append | Command::Prepend => {
            text::store(line, words, blank, limits, false)
        }
        Command::Cas => text::store(line, words, blank, limits, true),
        Command::Incr | Command::Decr => text::arithmetic(line, words, blank),
        Command::Touch => text::touch(line, words, blank),
        Command::Delete => text::delete(line, words, blank),
        Command::FlushAll => text::flush_all(line, words, blank),
        Command::Verbosity => text::verbosity(line, words, blank),
        Command::MetaGet | Command::MetaDelete | Command::MetaArithmetic => {
            meta::keyed(line, words, command, blank)
        }
        Command::MetaSet => meta::set(line, words, blank, limits),
        Command::MetaDebug => meta::debug(line, words, blank),
        Command::MetaNoop
        | Command::Version
        | Command::Stats
        | Command::Config
        | Command::Quit
        | Command::Shutdown => Ok(blank),
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
fn blank(command: Command, head: u32) -> Request {
    Request {
        command: command as u8,
        class: command.class(),
        head,
        body: 0,
        key: Span::default(),
        more_keys: Span::default(),
        ttl: Span::default(),
        quiet: Span::default(),
        is_quiet: false,
        base64_key: false,
    }
}

/// A refusal of the line alone.
#[inline]
pub(super) fn refuse(head: u32, reply: &'static [u8]) -> Bad {
    Bad {
        reply,
        head,
        swallow: 0,
        close: false,
    }
}
