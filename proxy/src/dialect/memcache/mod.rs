//! The memcached protocol: text and meta commands.

mod grammar;
mod mcrouter;
mod repair;
mod twemproxy;

pub use mcrouter::ADMIN as MCROUTER_ADMIN;
use proxima_wire::{
    memcache::{self, Command, Discovery, Limits, Rewrite, error},
    message::{Bad, Class, NextKey, Outcome, Parse, Parsed, Reply, Request},
};

use super::{
    Change, Conversation, Copied, Dialect, Effect, Embedded, Expiry, Failed, Join, Login, MALFORMED, Manner,
    Message, Plan, Question, Session,
    manner::{mcrouters_text, twemproxys_text},
};

/// The memcached dialect, in the manner of a listener. If it `ANNOUNCES`, its clients may ask for the
/// list of proxies.
#[derive(Debug)]
pub struct Memcache<const ANNOUNCES: bool = false> {
    /// The reply to `version`.
    version: &'static [u8],
    manner: Manner,
}

impl Memcache<true> {
    /// memcached as Proxima speaks it where its clients discover the proxies.
    pub const ANNOUNCING: Self = Self {
        version: VERSION,
        manner: Manner::Own,
    };
}

impl Memcache<false> {
    /// memcached as Proxima speaks it.
    pub const PLAIN: Self = Self {
        version: VERSION,
        manner: Manner::Own,
    };
    const TWEMPROXY: Self = Self {
        manner: Manner::Twemproxy { all_commands: false },
        ..Self::PLAIN
    };
    const TWEMPROXY_ALL: Self = Self {
        manner: Manner::Twemproxy { all_commands: true },
        ..Self::PLAIN
    };
    const MCROUTER: Self = Self {
        version: b"VERSION 1.0.0 mcrouter\r\n",
        manner: Manner::Mcrouter { flush: false },
    };
    const MCROUTER_FLUSH: Self = Self {
        manner: Manner::Mcrouter { flush: true },
        ..Self::MCROUTER
    };
}

/// The control thread answers when nothing else is due to the client.
fn consult(session: &Session) -> Plan {
    match session.is_idle {
        true => Plan::Consult,
        false => Plan::Later,
    }
}

/// The reply to `version`. Client libraries read the first number to know what they may send and how errors
/// look. It is the version of the memcached whose protocol Proxima speaks.
const VERSION: &[u8] = concat!("VERSION 1.6.18 proxima-", env!("CARGO_PKG_VERSION"), "\r\n").as_bytes();

impl<const ANNOUNCES: bool> Memcache<ANNOUNCES> {
    /// Reads a request, as this manner and this listener have it. It is not inlined, so that the common way
    /// is.
    #[inline(never)]
    fn changed(&self, bytes: &[u8], limits: &Limits) -> Parsed<Request> {
        let limits = Limits {
            mcrouters: matches!(self.manner, Manner::Mcrouter { .. }),
            ..*limits
        };
        let mut read = memcache::request(bytes, &limits);
        if ANNOUNCES {
            read = read.map(|request| Self::marked(request, bytes));
        }
        match self.manner {
            Manner::Own => read,
            Manner::Twemproxy { all_commands } => twemproxy::restrict(read, bytes, all_commands),
            Manner::Mcrouter { .. } => match read {
                Parsed::Bad(bad) => mcrouter::refused(bad, bytes),
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

impl<const ANNOUNCES: bool> Dialect for Memcache<ANNOUNCES> {
    fn announcing(&self) -> Option<&'static dyn Dialect> {
        (self.manner == Manner::Own).then_some(&Memcache::ANNOUNCING)
    }

    fn keeps_session(&self) -> bool {
        false
    }

    fn in_manner(&self, manner: Manner) -> Option<&'static dyn Dialect> {
        match manner {
            Manner::Own => None,
            Manner::Twemproxy { all_commands: false } => Some(&Memcache::TWEMPROXY),
            Manner::Twemproxy { all_commands: true } => Some(&Memcache::TWEMPROXY_ALL),
            Manner::Mcrouter { flush: false } => Some(&Memcache::MCROUTER),
            Manner::Mcrouter { flush: true } => Some(&Memcache::MCROUTER_FLUSH),
        }
    }

    fn name(&self) -> &'static str {
        "memcached"
    }

    fn commands(&self) -> &'static [&'static str] {
        Command::NAMES
    }

    #[inline]
    fn request(&self, _: &mut Parse, bytes: &[u8], value_limit: u64) -> Parsed<Request> {
        let limits = Limits {
            value: value_limit,
            mcrouters: false,
        };
        // A request is large: where nothing is changed in it, it is written once, where the caller wants it.
        if !ANNOUNCES && self.manner == Manner::Own {
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

    #[inline]
    fn check_end(&self, message: &[u8]) -> Result<(), Bad> {
        match self.manner {
            _ if message.ends_with(b"\r\n") => Ok(()),
            Manner::Own => Err(Bad::refused(0, error::BAD_CHUNK)),
            Manner::Twemproxy { .. } => Err(Bad::fatal(b"")),
            Manner::Mcrouter { .. } => Err(Bad::fatal(mcrouter::MALFORMED)),
        }
    }

    #[inline]
    fn split(&self, _: &Session, request: &Request, _: &[u8], _: &mut Vec<u8>) -> Option<&'static Join> {
        use Command::*;
        let command = Command::from_number(request.command);
        let gets = matches!(command, Some(Get | Gets | Gat | Gats | LeaseGet | Metadata));
        (gets && !request.more_keys.is_empty()).then_some(&Join::Chain { end: b"END\r\n" })
    }

    #[inline]
    fn plan(&self, session: &mut Session, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
        use Command::*;
        let Some(command) = Command::from_number(request.command) else {
            return Plan::Refuse("no such command");
        };
        let answer: &[u8] = match command {
            Version => self.version,
            Verbosity => b"OK\r\n",
            MetaNoop => b"MN\r\n",
            Shutdown if matches!(self.manner, Manner::Mcrouter { .. }) => return Plan::Shutdown,
            Shutdown => b"SERVER_ERROR: shutdown not enabled\r\n",
            Config if ANNOUNCES && message == Discovery::Config.line() => {
                out.extend_from_slice(b"END\r\n");
                return Plan::Announce(Discovery::Config as u16);
            }
            Config => error::ERROR,
            Get if matches!(self.manner, Manner::Mcrouter { .. }) && request.class == Class::Admin => {
                return consult(session);
            }
            Get if ANNOUNCES && request.class == Class::Admin => {
                out.extend_from_slice(b"END\r\n");
                return Plan::Announce(Discovery::Key as u16);
            }
            FlushAll if self.manner == (Manner::Mcrouter { flush: false }) => mcrouter::DISABLED,
            FlushAll => return Plan::Broadcast,
            Stats if matches!(self.manner, Manner::Mcrouter { .. }) => return consult(session),
            Stats | LruCrawler => return Plan::Stats,
            Quit => return Plan::Close,
            Get | Gets | Gat | Gats | Set | Add | Replace | Append | Prepend | Cas | Delete | Incr | Decr
            | Touch | LeaseGet | LeaseSet | Metadata | MetaGet | MetaSet | MetaDelete | MetaArithmetic
            | MetaDebug => return Plan::Route,
        };
        out.extend_from_slice(answer);
        Plan::Answer
    }

    #[inline]
    fn reply(&self, _: &mut Parse, command: u16, bytes: &[u8]) -> Parsed<Message> {
        // A memcached server never speaks unasked.
        let Some(command) = Command::from_number(command) else {
            return Parsed::Bad(Bad::fatal(b""));
        };
        memcache::reply(command, bytes).map(|reply| match (command, reply.outcome) {
            (Command::Stats, Outcome::Found) => Message::Part(reply),
            _ => Message::Last(reply),
        })
    }

    #[inline]
    fn is_whole(&self, reply: &Reply, bytes: &[u8]) -> bool {
        memcache::is_reply_whole(reply, bytes)
    }

    fn is_foreign(&self, command: u16, asked: &[u8], bytes: &[u8]) -> bool {
        Command::from_number(command).is_some_and(|command| memcache::is_foreign(command, asked, bytes))
    }

    #[inline]
    fn whole(&self, command: u16, asked: &[u8], bytes: &[u8], limit: u64) -> Option<Reply> {
        let command = Command::from_number(command)?;
        let reply = match memcache::hit(command, asked, bytes) {
            Some(reply) => reply,
            None => match memcache::reply(command, bytes) {
                Parsed::Head(_) if memcache::is_foreign(command, asked, bytes) => return None,
                // One of many lines.
                Parsed::Head(reply) if command == Command::Stats && reply.outcome == Outcome::Found => {
                    return None;
                }
                Parsed::Head(reply) => reply,
                Parsed::More | Parsed::Bad(_) => return None,
            },
        };
        let whole = bytes
            .get(..reply.len() as usize)
            .filter(|_| reply.len() <= limit)?;
        memcache::is_reply_whole(&reply, whole).then_some(reply)
    }

    fn silenced(&self, command: u16, outcome: Outcome) -> bool {
        Command::from_number(command).is_some_and(|command| memcache::silenced(command, outcome))
    }

    #[inline]
    fn key<'a>(&self, request: &Request, message: &'a [u8], scratch: &'a mut [u8; 250]) -> &'a [u8] {
        memcache::key(request, message, scratch)
    }

    #[inline]
    fn next_key(&self, _: &Request, bytes: &[u8]) -> NextKey {
        match memcache::take_key(bytes) {
            NextKey::Bad(bad) => NextKey::Bad(match self.manner {
                Manner::Own => bad,
                Manner::Twemproxy { .. } => bad.mute(),
                Manner::Mcrouter { .. } => Bad {
                    reply: mcrouter::BAD_KEY,
                    ..bad
                },
            }),
            next => next,
        }
    }

    fn single(&self, request: &Request, head: &[u8], key: &[u8], out: &mut Vec<u8>) {
        memcache::single(request, head, key, out);
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

    fn copied(&self) -> Option<&'static dyn Copied> {
        Some(&Memcache::PLAIN)
    }

    #[inline]
    fn embedded(&self) -> Option<Embedded> {
        Some(Embedded::Memcache)
    }

    /// Servers hold what a cache does: what is done twice is at worst a miss too many, or a count that is wrong
    /// anyway where a server was lost.
    fn may_repeat(&self, _command: u16) -> bool {
        true
    }

    fn is_same_everywhere(&self, _command: u16) -> bool {
        true
    }

    fn miss(&self, _: u16, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Reply {
        let outcome = memcache::default_reply(request, message, out);
        let trailer = if out.ends_with(b"END\r\n") { 5 } else { 0 };
        Reply {
            trailer,
            ..Reply::new(outcome, out.len())
        }
    }

    fn error(&self, _: &Session, failed: &Failed<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(match failed.outcome {
            Outcome::ClientError => b"CLIENT_ERROR ",
            _ => b"SERVER_ERROR ",
        });
        let text = match self.manner {
            Manner::Own => failed.to_string(),
            Manner::Twemproxy { .. } => twemproxys_text(failed),
            Manner::Mcrouter { .. } => mcrouters_text(failed),
        };
        let printable = |byte: u8| if byte.is_ascii_control() { b' ' } else { byte };
        out.extend(text.bytes().map(printable));
        out.extend_from_slice(b"\r\n");
    }

    /// Asks for the server's version: a server with another syntax of meta commands must not be given any.
    fn login(&self, conversation: &mut Conversation, bytes: &[u8], out: &mut Vec<u8>) -> Login {
        if conversation.step == 0 {
            conversation.step = 1;
            out.extend_from_slice(b"version\r\n");
            return Login::More { used: 0 };
        }
        let (reply, line) = match memcache::reply(Command::Version, bytes) {
            Parsed::Head(reply) => (reply, &bytes[..reply.head as usize]),
            Parsed::More => return Login::More { used: 0 },
            Parsed::Bad(_) => return Login::Refused(MALFORMED.into()),
        };
        let used = line.len();
        match self.limit(line) {
            _ if matches!(reply.outcome, Outcome::Busy | Outcome::Shutdown) => {
                Login::Refused(String::from_utf8_lossy(line.trim_ascii()).into_owned())
            }
            None => Login::Ready { used },
            Some(why) => Login::Limited { used, why },
        }
    }

    fn limit(&self, answer: &[u8]) -> Option<String> {
        let said = String::from_utf8_lossy(answer.trim_ascii());
        let why = match memcache::meta_commands(answer) {
            Some(true) => return None,
            Some(false) => format!("memcached {}", said.trim_start_matches("VERSION ")),
            None => format!("it does not say its version (`{}`)", said.escape_debug()),
        };
        Some(format!("{why}: meta commands need 1.6.10 or later"))
    }

    fn is_common(&self, command: u16) -> bool {
        Command::from_number(command).is_none_or(|command| !command.is_meta())
    }

    /// A server that knows one of the lease commands knows both. The key is nobody's.
    fn proof(&self) -> Option<Question> {
        Some((Command::LeaseGet as u16, b"lease-get proxima:leases\r\n"))
    }

    fn probe(&self) -> (u16, &'static [u8]) {
        (Command::Version as u16, b"version\r\n")
    }
}

impl<const ANNOUNCES: bool> Copied for Memcache<ANNOUNCES> {
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
