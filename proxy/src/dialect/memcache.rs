//! memcached, text and meta commands.

use proxima_wire::{
    memcache::{self, Command, Limits, Rewrite, error},
    message::{Bad, NextKey, Outcome, Parsed, Reply, Request},
};

use super::{Change, Dialect, Effect, Message, Plan};

/// The memcached dialect, as ourselves or in mcrouter's place.
#[derive(Debug)]
pub struct Memcache {
    version: &'static [u8],
    flush: bool,
}

impl Memcache {
    /// As ourselves.
    pub const PLAIN: Self = Self {
        version: VERSION,
        flush: true,
    };
    /// In mcrouter's place.
    pub const MCROUTER: Self = Self {
        version: b"VERSION 1.0.0 mcrouter\r\n",
        flush: false,
    };
    /// In mcrouter's place, with `--enable-flush-cmd`.
    pub const MCROUTER_FLUSH: Self = Self {
        flush: true,
        ..Self::MCROUTER
    };

    /// A request of this command for this key, as short as can be: what `explain` walks with.
    pub fn example(command: &str, key: &[u8]) -> Vec<u8> {
        let (before, after) = match command {
            "set" | "add" | "replace" | "append" | "prepend" => (" ", " 0 0 0\r\n\r\n"),
            "cas" => (" ", " 0 0 0 1\r\n\r\n"),
            "ms" => (" ", " 0\r\n\r\n"),
            "incr" | "decr" => (" ", " 1\r\n"),
            "touch" => (" ", " 0\r\n"),
            "gat" | "gats" => (" 0 ", "\r\n"),
            _ => (" ", "\r\n"),
        };
        [command.as_bytes(), before.as_bytes(), key, after.as_bytes()].concat()
    }
}

/// What `version` answers. Client libraries read the first number to know what they may send and how errors look: it is
/// that of the memcached whose protocol this is.
const VERSION: &[u8] = concat!("VERSION 1.6.18 proxima-", env!("CARGO_PKG_VERSION"), "\r\n").as_bytes();

impl Dialect for Memcache {
    fn commands(&self) -> &'static [&'static str] {
        Command::NAMES
    }

    #[inline]
    fn request(&self, bytes: &[u8], value_limit: u64) -> Parsed<Request> {
        memcache::request(bytes, &Limits { value: value_limit })
    }

    #[inline]
    fn check_end(&self, message: &[u8]) -> Result<(), &'static [u8]> {
        if message.ends_with(b"\r\n") {
            Ok(())
        } else {
            Err(error::BAD_CHUNK)
        }
    }

    #[inline]
    fn plan(&self, request: &Request, _: &[u8]) -> Plan {
        match Command::from_u8(request.command) {
            Some(Command::Get | Command::Gets | Command::Gat | Command::Gats)
                if !request.more_keys.is_empty() =>
            {
                Plan::Split { end: b"END\r\n" }
            }
            Some(Command::Version) => Plan::Answer(self.version),
            Some(Command::Verbosity) => Plan::Answer(b"OK\r\n"),
            Some(Command::MetaNoop) => Plan::Answer(b"MN\r\n"),
            Some(Command::Shutdown) => Plan::Answer(b"ERROR: shutdown not enabled\r\n"),
            Some(Command::Config) => Plan::Answer(error::ERROR),
            Some(Command::Stats) => Plan::Stats,
            Some(Command::FlushAll) if !self.flush => Plan::Answer(b"SERVER_ERROR Command disabled\r\n"),
            Some(Command::FlushAll) => Plan::Broadcast,
            Some(Command::Quit) => Plan::Close,
            _ => Plan::Route,
        }
    }

    #[inline]
    fn reply(&self, command: u8, bytes: &[u8]) -> Parsed<Message> {
        // memcached never speaks unasked.
        let Some(command) = Command::from_u8(command) else {
            return Parsed::Bad(Bad::fatal(b""));
        };
        memcache::reply(command, bytes).map(Message::Last)
    }

    #[inline]
    fn is_whole(&self, reply: &Reply, bytes: &[u8]) -> bool {
        memcache::is_reply_whole(reply, bytes)
    }

    fn silenced(&self, command: u8, outcome: Outcome) -> bool {
        Command::from_u8(command).is_some_and(|command| memcache::silenced(command, outcome))
    }

    #[inline]
    fn key<'a>(&self, request: &Request, message: &'a [u8], scratch: &'a mut [u8; 250]) -> &'a [u8] {
        memcache::key(request, message, scratch)
    }

    #[inline]
    fn next_key(&self, bytes: &[u8]) -> NextKey {
        memcache::take_key(bytes)
    }

    fn single(&self, request: &Request, head: &[u8], key: &[u8], out: &mut Vec<u8>) {
        memcache::single(request, head, key, out);
    }

    fn rewrite(&self, request: &Request, message: &[u8], change: &Change<'_>, out: &mut Vec<u8>) -> bool {
        memcache::rewrite(
            request,
            message,
            &Rewrite {
                key: change.key,
                ttl: change.ttl,
            },
            out,
        )
    }

    fn rewrite_reply_key(&self, command: u8, key: &[u8], reply: &[u8], out: &mut Vec<u8>) {
        match Command::from_u8(command) {
            Some(command) => memcache::rewrite_reply_key(command, key, reply, out),
            None => out.extend_from_slice(reply),
        }
    }

    fn effect(&self, request: &Request, message: &[u8]) -> Effect {
        memcache::effect(request, message)
    }

    fn follow_up(&self, request: &Request, message: &[u8], out: &mut Vec<u8>) {
        memcache::follow_up(request, message, out);
    }

    fn mark_request(&self, request: &Request, message: &[u8], mark: u64, out: &mut Vec<u8>) -> bool {
        memcache::mark_request(request, message, mark, out)
    }

    fn mark_reply(&self, command: u8, reply: &[u8], mark: u64, out: &mut Vec<u8>) -> bool {
        Command::from_u8(command).is_some_and(|command| memcache::mark_reply(command, reply, mark, out))
    }

    fn removal(&self, key: &[u8], out: &mut Vec<u8>) {
        memcache::removal(key, out);
    }

    fn miss(&self, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Reply {
        let outcome = memcache::default_reply(request, message, out);
        let trailer = if out == b"END\r\n" { 5 } else { 0 };
        Reply {
            trailer,
            ..Reply::new(outcome, out.len())
        }
    }

    fn error(&self, outcome: Outcome, text: &str, out: &mut Vec<u8>) {
        let kind: &[u8] = if outcome == Outcome::ClientError {
            b"CLIENT_ERROR "
        } else {
            b"SERVER_ERROR "
        };
        out.extend_from_slice(kind);
        out.extend(
            text.bytes()
                .map(|byte| if byte.is_ascii_control() { b' ' } else { byte }),
        );
        out.extend_from_slice(b"\r\n");
    }

    fn probe(&self) -> (u8, &'static [u8]) {
        (Command::Version as u8, b"version\r\n")
    }
}
