//! Reading and changing of Redis' requests and replies.

use std::ops::Range;

use proxima_wire::{
    message::{Class, Outcome, Parse, Parsed, Reply, Request, Span},
    resp::{self, Command, DECLARED, Handling, Limits, TRANSACTION},
};

use super::{Redis, append_error, change, declared, join, null, scan, twemproxy};
use crate::protocol::{Change, Expiry, Join, Piece, ReplyStyle, Requests};

impl Requests for Redis {
    #[inline]
    fn request(&self, parse: &mut Parse, bytes: &[u8], value_limit: u64) -> Parsed<Request> {
        let limits = Limits { value: value_limit };
        match self.reply_style {
            // A request is large: it is written once, where the caller wants it.
            ReplyStyle::Own | ReplyStyle::Mcrouter { .. } => resp::request(parse, bytes, &limits),
            ReplyStyle::Twemproxy { all_commands } => twemproxy::request(parse, bytes, &limits, all_commands),
        }
    }

    fn piece(&self, parse: &mut Parse, bytes: &[u8], value_limit: u64) -> Parsed<Piece> {
        resp::rest(parse, bytes, &Limits { value: value_limit })
    }

    fn miss(&self, form: u16, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Reply {
        let begin = out.len();
        match Command::of(request.command) {
            Some(command) if resp::append_empty(command, form, message, out) => {}
            Some(command) => append_error(&format!("ERR {}", resp::only_a_server(command.name)), out),
            None if request.command >= TRANSACTION => resp::append_empty_transaction(form, message, out),
            // Only a module itself knows the form of its answers.
            None => out.extend_from_slice(null(form)),
        }
        let reply = out.get(begin..).unwrap_or_default();
        let outcome = match (reply, request.class) {
            ([b'-', line @ ..], _) => resp::error::outcome(line),
            (_, Class::Write | Class::Arithmetic) => {
                resp::whole(reply).map_or(Outcome::NotFound, |reply| reply.outcome)
            }
            _ => Outcome::NotFound,
        };
        Reply::new(outcome, reply.len())
    }

    fn number(&self, _: &Reply, bytes: &[u8]) -> i64 {
        let number = bytes
            .strip_prefix(b":")
            .and_then(|rest| rest.strip_suffix(b"\r\n"));
        number.and_then(resp::integer).unwrap_or(1)
    }

    fn is_miss(&self, form: u16, request: &Request, message: &[u8], reply: &[u8]) -> bool {
        // An empty server answers hardly more than it was asked.
        let may_be_empty = reply.len() <= message.len() + 64;
        if !may_be_empty || !matches!(request.class, Class::Read | Class::Delete | Class::Touch) {
            return false;
        }
        let mut empty = Vec::new();
        self.miss(form, request, message, &mut empty);
        empty == reply
    }

    fn error_word<'a>(&self, reply: &'a [u8]) -> &'a [u8] {
        let words = reply.strip_prefix(b"-").unwrap_or_default();
        words.split(u8::is_ascii_whitespace).next().unwrap_or_default()
    }

    fn keys(&self, request: &Request, message: &[u8], take: &mut dyn FnMut(Span)) {
        if request.command == DECLARED {
            return declared::each_key(request, message, take);
        }
        if request.command < TRANSACTION {
            if let Some(command) = Command::of(request.command) {
                resp::each_key(command, message, command.is_by_channel(), take);
            }
            return;
        }
        for (at, inner) in resp::commands(message) {
            if let Some(command) = Command::of(resp::find(inner).0) {
                let within = |key: Span| Span::new(at + key.start as usize, at + key.end());
                resp::each_key(command, inner, command.is_by_channel(), &mut |key| {
                    take(within(key))
                });
            }
        }
    }

    fn spread(&self, request: &Request) -> Option<&'static Join> {
        match Command::of(request.command)?.served {
            Handling::Split(combine) | Handling::Each(combine) => Some(join::of(combine)),
            Handling::Walk => Some(&Join::Parts(scan::answer)),
            _ => None,
        }
    }

    fn part(
        &self,
        request: &Request,
        message: &[u8],
        keys: &mut dyn Iterator<Item = Span>,
        out: &mut Vec<u8>,
    ) {
        let command = Command::of(request.command);
        let step = command.map_or(1, |command| command.positions[2].max(1)) as usize;
        let words = command.map_or(1, |command| command.name.split('|').count());
        resp::append_part(message, words, step, keys, out);
    }

    fn rewrite(&self, request: &Request, message: &[u8], change: &Change<'_>, out: &mut Vec<u8>) -> bool {
        change::rewrite(request, message, change, out)
    }

    fn is_composite(&self, request: &Request) -> bool {
        request.command >= TRANSACTION
    }

    fn each_request(&self, _: &Request, message: &[u8], take: &mut dyn FnMut(&Request, Range<usize>)) {
        for (at, inner) in resp::commands(message) {
            if let Parsed::Head(request) = self.head(inner) {
                take(&request, at..at + inner.len());
            }
        }
    }

    fn rewrite_keys(
        &self,
        request: &Request,
        message: &[u8],
        change: &mut dyn FnMut(&[u8]) -> Vec<u8>,
        out: &mut Vec<u8>,
    ) -> bool {
        Command::of(request.command).is_some_and(|command| change::with_keys(command, message, change, out))
    }

    fn acts_as(&self, request: &Request, message: &[u8]) -> Class {
        if request.is_of_transaction {
            return Class::Write;
        }
        if let Some(command) = Command::of(request.command) {
            let is_by_channel = matches!(command.served, Handling::Channel | Handling::Channels);
            return match request.class {
                Class::Session if command.is_write || is_by_channel => Class::Write,
                Class::Session if command.has_keys() => Class::Read,
                class => class,
            };
        }
        if !self.is_composite(request) {
            return request.class;
        }
        let mut writes = false;
        self.each_request(request, message, &mut |inner, _| {
            writes |= Command::of(inner.command).is_some_and(|command| command.is_write);
        });
        if writes { Class::Write } else { Class::Read }
    }

    fn expiry(&self, request: &Request, message: &[u8], unix: u64) -> Expiry {
        change::expiry(request, message, unix)
    }
}
