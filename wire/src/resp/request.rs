//! Heads of requests.

use super::{
    Args, Command, Handling, Limits,
    frame::{Frame, Kind, frame},
    keys::{each_key, names_keys},
    lookup::{INLINE, UNKNOWN, find},
    number::{Line, line},
    transaction,
};
use crate::message::{Bad, Class, Parse, Parsed, Request, Span};

/// Bytes up to which a request is held whole. A larger one has its last argument, or a large one, as its
/// body.
const WHOLE: usize = 64 * 1024;

const HTTP: &str = "the client speaks HTTP, which is not served here";

/// Parses the head of the next request. `parse` is as for [`frame()`].
///
/// A request with one key, its first argument, is returned as soon as a large argument begins, and `is_open`
/// then says that [`rest`](super::rest) tells what follows. All bytes of any other request must have come.
/// What cannot be routed by its keys is of [`Class::Session`]: unknown names, wrong numbers of arguments,
/// inline commands, commands that may block, and a transaction that has come whole.
#[inline(always)]
pub fn request(parse: &mut Parse, bytes: &[u8], limits: &Limits) -> Parsed<Request> {
    if parse.is_new()
        && let Some(request) = plain(bytes)
    {
        return Parsed::Head(request);
    }
    any(parse, bytes, limits)
}

/// Reads a request that is all there, small, and has one key, its first argument: the most common form. One
/// look finds everything. `None`: look closer.
#[inline(always)]
fn plain(bytes: &[u8]) -> Option<Request> {
    let &[
        b'*',
        args @ b'2'..=b'9',
        b'\r',
        b'\n',
        b'$',
        len @ b'3'..=b'9',
        b'\r',
        b'\n',
        ..,
    ] = bytes.get(..8)?
    else {
        return None;
    };
    let name = bytes.get(8..8 + usize::from(len - b'0'))?;
    let number = Command::find(name)?;
    let command = Command::of(number)?;
    let args = u32::from(args - b'0');
    if !command.has_first_key || command.class == Class::Session || !command.takes(args) {
        return None;
    }
    let mut at = 8 + name.len() + 2;
    let mut key = Span::default();
    for arg in 1..args {
        if bytes.get(at - 2..=at)? != b"\r\n$" {
            return None;
        }
        let Line::Number(len @ 0.., start) = line(bytes, at + 1) else {
            return None;
        };
        let end = start.checked_add(len as usize)?;
        if arg == 1 {
            key = Span::new(start, end.min(WHOLE));
        }
        at = end + 2;
    }
    (at <= WHOLE && bytes.get(at - 2..at)? == b"\r\n").then(|| Request {
        key,
        ..Request::new(number, command.class, at)
    })
}

#[inline(never)]
fn any(parse: &mut Parse, bytes: &[u8], limits: &Limits) -> Parsed<Request> {
    let noted = *parse;
    frame(parse, bytes, limits).and_then(|frame| match frame.kind {
        Kind::Inline => inline(&frame, bytes),
        Kind::Array if frame.large > 0 => open(&frame, bytes),
        Kind::Array if noted.is_new() && frame.args == 1 => alone(&frame, bytes, limits),
        Kind::Array => Parsed::Head(array(&frame, bytes)),
    })
}

/// An inline command. It is planned, as the form that servers get is an array.
fn inline(frame: &Frame, bytes: &[u8]) -> Parsed<Request> {
    let line = &bytes[..frame.head as usize];
    let name = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty());
    refuse_http(name.unwrap_or_default()).map_or_else(
        || Parsed::Head(Request::new(INLINE, Class::Session, line.len())),
        Parsed::Bad,
    )
}

/// These words begin a request of HTTP, which a browser may have been made to send. Servers close without a
/// word.
fn refuse_http(name: &[u8]) -> Option<Bad> {
    let is_http = name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:");
    is_http.then_some(Bad::stranger(HTTP))
}

/// A request of one word, which may begin a transaction.
fn alone(frame: &Frame, bytes: &[u8], limits: &Limits) -> Parsed<Request> {
    let request = array(frame, bytes);
    if request.command == UNKNOWN
        && let Some(bad) = refuse_http(Args::of(bytes).text().unwrap_or_default())
    {
        return Parsed::Bad(bad);
    }
    Parsed::Head(transaction::whole(&request, bytes, limits).unwrap_or(request))
}

/// A request that has begun with a large argument, if it can be passed on as it comes.
fn open(frame: &Frame, bytes: &[u8]) -> Parsed<Request> {
    let head = &bytes[..frame.head as usize];
    let mut args = Args::of(head);
    let found = args.text().and_then(Command::find).and_then(Command::of);
    match (found, args.next()) {
        (Some(command), Some(key))
            if command.has_first_key && command.class != Class::Session && command.takes(frame.args) =>
        {
            Parsed::Head(Request {
                key,
                body: frame.large,
                is_open: true,
                ..Request::new(
                    Command::find(Args::of(head).text().unwrap_or_default()).unwrap_or(UNKNOWN),
                    command.class,
                    head.len(),
                )
            })
        }
        _ => Parsed::More,
    }
}

/// A request that is all there.
fn array(frame: &Frame, bytes: &[u8]) -> Request {
    let message = &bytes[..frame.head as usize];
    let (number, args) = find(message);
    let Some(command) = Command::of(number).filter(|command| command.takes(args)) else {
        return Request::new(number, Class::Session, message.len());
    };
    let mut request = Request::new(number, command.class, message.len());
    let (mut first, mut last) = (None, Span::default());
    each_key(command, message, command.is_by_channel(), &mut |key| {
        first.get_or_insert(key);
        last = key;
    });
    request.key = first.unwrap_or_default();
    if last != request.key {
        request.more_keys = Span::new(request.key.end(), last.end());
    }
    if command.served == Handling::Pattern && names_keys(message) {
        request.class = Class::Session;
    }
    if command.is_blocking {
        request.extra_timeout = blocks(command, message);
    }
    if message.len() > WHOLE {
        // The last argument is passed on as a body, so that no other client waits behind it.
        let body = Args::of(message)
            .last()
            .map_or(0, |last| message.len() - last.start as usize);
        request.head -= body as u32;
        request.body = body as u64;
    }
    request
}

/// The word behind `BLOCK` among the options of `XREAD` and `XREADGROUP`. `STREAMS` ends the options. Names
/// of groups and consumers may be any words, these too.
fn block_option<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Option<&'a [u8]> {
    while let Some(word) = words.next() {
        match word.to_ascii_lowercase().as_slice() {
            b"block" => return Some(words.next().unwrap_or_default()),
            b"streams" => return None,
            b"group" => drop(words.nth(1)),
            b"count" => drop(words.next()),
            _ => {}
        }
    }
    None
}

/// Milliseconds that this command may wait for others; [`u32::MAX`]: for ever. 0: it does not wait.
pub fn blocks(command: &Command, message: &[u8]) -> u32 {
    let mut args = Args::of(message);
    let count = args.left() as usize;
    let seconds = |text: &[u8]| {
        let seconds: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
        (seconds >= 0.0).then_some(seconds * 1000.0)
    };
    let millis = match command.name {
        "xread" | "xreadgroup" => match block_option(args.skip(1).map(|arg| arg.of(message))) {
            Some(millis) => seconds(millis).map(|millis| millis / 1000.0),
            None => return 0,
        },
        "blmpop" | "bzmpop" => args.nth(1).and_then(|arg| seconds(arg.of(message))),
        _ => args
            .nth(count.saturating_sub(1))
            .and_then(|arg| seconds(arg.of(message))),
    };
    match millis {
        // The server answers an error.
        None => 1,
        Some(0.0) => u32::MAX,
        Some(millis) => millis.clamp(1.0, f64::from(u32::MAX - 1)) as u32,
    }
}
