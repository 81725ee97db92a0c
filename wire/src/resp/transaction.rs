//! Transactions that have arrived completely.

use super::{
    Args, Command, Limits,
    command::Handling,
    frame::{Kind, frame},
    keys::{each_key, names_keys},
    lookup::{TRANSACTION, find},
};
use crate::message::{Parse, Parsed, Request, Span};

/// A transaction of more bytes is served step by step.
const MOST: usize = 64 * 1024;

/// The request for the whole transaction that `multi` begins, if all of it is in `bytes` and it leaves
/// nothing at the server: nothing can come between its commands when it is sent in one piece.
pub(super) fn whole(multi: &Request, bytes: &[u8], limits: &Limits) -> Option<Request> {
    if Command::of(multi.command)?.name != "multi" {
        return None;
    }
    let bytes = &bytes[..bytes.len().min(MOST)];
    let mut request = Request {
        command: TRANSACTION,
        ..*multi
    };
    let (mut first, mut last) = (None, Span::default());
    let mut end = multi.head as usize;
    loop {
        let rest = &bytes[end..];
        let (command, message) = next(rest, limits)?;
        let begin = end;
        end += message.len();
        if command.name == "exec" {
            break;
        }
        let may_be_apart = command.served == Handling::Pattern && names_keys(message);
        if !command.is_shareable() || may_be_apart {
            return None;
        }
        request.command += 1;
        for channels in [false, true] {
            each_key(command, message, channels, &mut |key| {
                last = Span::new(begin + key.start as usize, begin + key.end());
                first.get_or_insert(last);
            });
        }
    }
    request.head = end as u32;
    request.key = first?;
    if last != request.key {
        request.more_keys = Span::new(request.key.end(), last.end().max(request.key.end()));
    }
    Some(request)
}

/// The next command of a transaction, if it is complete and valid.
fn next<'a>(bytes: &'a [u8], limits: &Limits) -> Option<(&'static Command, &'a [u8])> {
    let Parsed::Head(frame) = frame(&mut Parse::default(), bytes, limits) else {
        return None;
    };
    if frame.kind != Kind::Array || frame.large > 0 {
        return None;
    }
    let message = &bytes[..frame.head as usize];
    let (number, args) = find(message);
    let command = Command::of(number).filter(|command| command.takes(args))?;
    Some((command, message))
}

/// The commands of a whole transaction, without `MULTI` and `EXEC`, each with its position.
pub fn commands(message: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let length = |rest: &[u8]| {
        let mut args = Args::of(rest);
        while args.next().is_some() {}
        args.position()
    };
    let mut at = length(message);
    std::iter::from_fn(move || {
        let rest = message.get(at..)?;
        let (begin, len) = (at, length(rest));
        at += len;
        // EXEC is the last one.
        (len > 0 && at < message.len()).then(|| (begin, &rest[..len]))
    })
}

impl Command {
    /// May a transaction with it be sent on a connection of many clients? What it changes is data, and
    /// nothing of the connection.
    pub fn is_shareable(&self) -> bool {
        match self.served {
            Handling::Key | Handling::Pattern | Handling::Split(_) | Handling::Channel => true,
            Handling::Any => self.name == "time",
            Handling::Here => matches!(self.name, "ping" | "echo"),
            // It is executed at the end of the transaction, which has used up what was watched.
            Handling::Transaction => self.name == "unwatch",
            _ => false,
        }
    }
}
