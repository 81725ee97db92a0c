//! The memcached protocol: text and meta commands.

mod cacheable;
mod client;
mod grammar;
mod mcrouter;
mod repair;
mod requests;
mod server;
mod twemproxy;

pub use mcrouter::ADMIN as MCROUTER_ADMIN;
use proxima_wire::{
    memcache::{self, Command},
    message::{Class, Request},
};

use crate::protocol::{Cacheable, CopySupport, Effect, Embedded, Protocol, ReplyStyle};

/// The memcached protocol, in the reply style of a listener. If it `ANNOUNCES`, its clients may ask for the
/// list of proxies.
#[derive(Debug)]
pub struct Memcache<const ANNOUNCES: bool = false> {
    /// The reply to `version`.
    version: &'static [u8],
    reply_style: ReplyStyle,
}

impl Memcache<true> {
    /// memcached as Proxima speaks it where its clients discover the proxies.
    pub const ANNOUNCING: Self = Self {
        version: VERSION,
        reply_style: ReplyStyle::Own,
    };
}

impl Memcache<false> {
    /// memcached as Proxima speaks it.
    pub const PLAIN: Self = Self {
        version: VERSION,
        reply_style: ReplyStyle::Own,
    };
    const TWEMPROXY: Self = Self {
        reply_style: ReplyStyle::Twemproxy { all_commands: false },
        ..Self::PLAIN
    };
    const TWEMPROXY_ALL: Self = Self {
        reply_style: ReplyStyle::Twemproxy { all_commands: true },
        ..Self::PLAIN
    };
    const MCROUTER: Self = Self {
        version: b"VERSION 1.0.0 mcrouter\r\n",
        reply_style: ReplyStyle::Mcrouter { flush: false },
    };
    const MCROUTER_FLUSH: Self = Self {
        reply_style: ReplyStyle::Mcrouter { flush: true },
        ..Self::MCROUTER
    };
}

/// The reply to `version`. Client libraries read the first number to know what they may send and how errors
/// look. It is the version of the memcached whose protocol Proxima speaks.
const VERSION: &[u8] = concat!("VERSION 1.6.18 proxima-", env!("CARGO_PKG_VERSION"), "\r\n").as_bytes();

impl<const ANNOUNCES: bool> Protocol for Memcache<ANNOUNCES> {
    fn announcing(&self) -> Option<&'static dyn Protocol> {
        (self.reply_style == ReplyStyle::Own).then_some(&Memcache::ANNOUNCING)
    }

    fn with_reply_style(&self, reply_style: ReplyStyle) -> Option<&'static dyn Protocol> {
        match reply_style {
            ReplyStyle::Own => None,
            ReplyStyle::Twemproxy { all_commands: false } => Some(&Memcache::TWEMPROXY),
            ReplyStyle::Twemproxy { all_commands: true } => Some(&Memcache::TWEMPROXY_ALL),
            ReplyStyle::Mcrouter { flush: false } => Some(&Memcache::MCROUTER),
            ReplyStyle::Mcrouter { flush: true } => Some(&Memcache::MCROUTER_FLUSH),
        }
    }

    fn name(&self) -> &'static str {
        "memcached"
    }

    fn commands(&self) -> &'static [&'static str] {
        Command::NAMES
    }

    fn example(&self, command: u16, key: &[u8]) -> Option<Vec<u8>> {
        use Command::*;
        let command = Command::from_number(command)?;
        let (before, after) = match command {
            Set | Add | Replace | Append | Prepend => (" ", " 0 0 0\r\n\r\n"),
            Cas => (" ", " 0 0 0 1\r\n\r\n"),
            MetaSet => (" ", " 0\r\n\r\n"),
            Incr | Decr => (" ", " 1\r\n"),
            Touch => (" ", " 0\r\n"),
            LeaseSet => (" ", " 1 0 0 0\r\n\r\n"),
            Gat | Gats => (" 0 ", "\r\n"),
            Get | Gets | LeaseGet | Metadata | Delete | FlushAll | Version | Verbosity | Stats | Config
            | Quit | Shutdown | MetaGet | MetaDelete | MetaArithmetic | MetaNoop | MetaDebug | LruCrawler => {
                (" ", "\r\n")
            }
        };
        let name = command.name().as_bytes();
        Some([name, before.as_bytes(), key, after.as_bytes()].concat())
    }

    fn looks_up(&self, command: u16) -> bool {
        let class = Command::from_number(command).map(Command::class);
        matches!(
            class,
            Some(Class::Read | Class::Touch | Class::Delete | Class::Arithmetic)
        )
    }

    fn cacheable(&self) -> Option<&'static dyn Cacheable> {
        Some(&Memcache::PLAIN)
    }

    fn copy_support(&self) -> Option<&'static dyn CopySupport> {
        Some(&Memcache::PLAIN)
    }

    #[inline]
    fn embedded(&self) -> Option<Embedded> {
        Some(Embedded::Memcache)
    }

    /// Servers hold what a cache does: what is done twice is at worst a miss too many, or a count that is
    /// wrong anyway where a server was lost.
    fn may_repeat(&self, _command: u16) -> bool {
        true
    }

    fn is_same_everywhere(&self, _command: u16) -> bool {
        true
    }
}

impl<const ANNOUNCES: bool> CopySupport for Memcache<ANNOUNCES> {
    fn effect(&self, request: &Request, message: &[u8]) -> Effect {
        memcache::effect(request, message)
    }

    fn follow_up(&self, request: &Request, message: &[u8], out: &mut Vec<u8>) {
        memcache::follow_up(request, message, out);
    }

    fn read_back(&self, request: &Request, message: &[u8], out: &mut Vec<u8>) -> bool {
        memcache::read_back(request, message, out)
    }

    fn store_read_back(&self, request: &Request, message: &[u8], reply: &[u8], unix: u64, out: &mut Vec<u8>) {
        memcache::store_read_back(request, message, reply, unix, out);
    }

    fn undo_read_back(&self, request: &Request, message: &[u8], reply: &[u8], out: &mut Vec<u8>) -> bool {
        memcache::undo_read_back(request, message, reply, out)
    }

    fn mark_request(&self, request: &Request, message: &[u8], mark: u64, out: &mut Vec<u8>) -> bool {
        memcache::mark_request(request, message, mark, out)
    }

    fn mark_reply(&self, command: u16, reply: &[u8], mark: u64, out: &mut Vec<u8>) -> bool {
        Command::from_number(command).is_some_and(|command| memcache::mark_reply(command, reply, mark, out))
    }

    fn fetch(&self, key: &[u8], out: &mut Vec<u8>) -> bool {
        memcache::fetch(key, out)
    }

    fn store_fetched(&self, key: &[u8], reply: &[u8], unix: u64, out: &mut Vec<u8>) -> bool {
        memcache::store_fetched(key, reply, unix, out)
    }

    fn removal(&self, key: &[u8], out: &mut Vec<u8>) {
        memcache::removal(key, out);
    }
}
