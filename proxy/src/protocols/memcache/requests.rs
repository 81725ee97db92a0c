//! Reading and changing of memcached's requests and replies.

use proxima_wire::{
    memcache::{self, Command, Discovery, Limits, Rewrite, error},
    message::{Bad, Class, Parse, Parsed, Reply, Request},
};

use super::{Memcache, mcrouter, twemproxy};
use crate::protocol::{Change, Expiry, ReplyStyle, Requests};

impl<const ANNOUNCES: bool> Memcache<ANNOUNCES> {
    /// Reads a request by the rules of this reply style and listener. It is not inlined, so that the common
    /// way is.
    #[inline(never)]
    fn changed(&self, bytes: &[u8], limits: &Limits) -> Parsed<Request> {
        let limits = Limits {
            mcrouters: matches!(self.reply_style, ReplyStyle::Mcrouter { .. }),
            ..*limits
        };
        let mut read = memcache::request(bytes, &limits);
        if ANNOUNCES {
            read = read.map(|request| Self::marked(request, bytes));
        }
        match self.reply_style {
            ReplyStyle::Own => read,
            ReplyStyle::Twemproxy { all_commands } => twemproxy::restrict(read, bytes, all_commands),
            ReplyStyle::Mcrouter { .. } => match read {
                Parsed::Bad(bad) => mcrouter::rejected(bad, bytes),
                read => read.map(|request| mcrouter::marked(request, bytes)),
            },
        }
    }

    /// Makes a plan necessary for a `get` of the key by which older clients discover.
    #[inline]
    fn marked(mut request: Request, bytes: &[u8]) -> Request {
        let asks = request.command == Command::Get as u16
            && request.more_keys.is_empty()
            && request.key.of(bytes) == Discovery::KEY;
        if asks {
            request.class = Class::Admin;
        }
        request
    }
}

impl<const ANNOUNCES: bool> Requests for Memcache<ANNOUNCES> {
    #[inline]
    fn request(&self, _: &mut Parse, bytes: &[u8], value_limit: u64) -> Parsed<Request> {
        let limits = Limits {
            value: value_limit,
            mcrouters: false,
        };
        // A request is large: where nothing is changed in it, it is written once, where the caller wants it.
        if !ANNOUNCES && self.reply_style == ReplyStyle::Own {
            return memcache::request(bytes, &limits);
        }
        self.changed(bytes, &limits)
    }

    /// Parses a request that a listener has taken, whichever commands that listener takes.
    fn head(&self, message: &[u8]) -> Parsed<Request> {
        let limits = Limits {
            value: u64::MAX,
            mcrouters: true,
        };
        memcache::request(message, &limits)
    }

    #[inline]
    fn check_end(&self, message: &[u8]) -> Result<(), Bad> {
        match self.reply_style {
            _ if message.ends_with(b"\r\n") => Ok(()),
            ReplyStyle::Own => Err(Bad::refused(0, error::BAD_CHUNK)),
            ReplyStyle::Twemproxy { .. } => Err(Bad::fatal(b"")),
            ReplyStyle::Mcrouter { .. } => Err(Bad::fatal(mcrouter::MALFORMED)),
        }
    }

    #[inline]
    fn key<'a>(&self, request: &Request, message: &'a [u8], scratch: &'a mut [u8; 250]) -> &'a [u8] {
        memcache::key(request, message, scratch)
    }

    fn expiry(&self, request: &Request, message: &[u8], unix: u64) -> Expiry {
        if request.class == Class::Delete || (request.ttl.is_empty() && request.class != Class::Write) {
            return Expiry::None;
        }
        match memcache::time(request.ttl.of(message)).map_or(0, i64::from) {
            0 => Expiry::Never,
            // A larger number is a date.
            own if own > memcache::LONGEST_TTL => Expiry::In(own.saturating_sub_unsigned(unix)),
            own => Expiry::In(own),
        }
    }

    fn check_key(&self, request: &Request, key: &[u8]) -> Result<(), &'static str> {
        match key.len() {
            0 => Err("missing"),
            251.. => Err("too long"),
            // In base64 a key may hold any bytes, and must leave room for the form on the line.
            187.. if request.base64_key => Err("too long"),
            _ if request.base64_key => Ok(()),
            _ if key.iter().any(|&byte| byte <= b' ' || byte == 0x7f) => Err("space or control character"),
            _ => Ok(()),
        }
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

    fn rewrite_reply_key(&self, command: u16, key: &[u8], reply: &[u8], out: &mut Vec<u8>) {
        match Command::from_number(command) {
            Some(command) => memcache::rewrite_reply_key(command, key, reply, out),
            None => out.extend_from_slice(reply),
        }
    }

    fn miss(&self, _: u16, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Reply {
        let outcome = memcache::default_reply(request, message, out);
        let trailer = if out.ends_with(b"END\r\n") { 5 } else { 0 };
        Reply {
            trailer,
            ..Reply::new(outcome, out.len())
        }
    }
}
