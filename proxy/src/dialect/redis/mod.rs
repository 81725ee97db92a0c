//! The protocol of Redis and Valkey.
//!
//! What is known of a command stands in the codec's table ([`Command`]). A read or write by one key walks the
//! tree unseen. Everything else is planned here: by [`Served`] it is routed, answered, given to every member,
//! or refused with the reason.
//!
//! A client chooses the version of the protocol (`HELLO`). RESP3 has lanes of its own, as a version belongs
//! to a connection.

mod about_client;
mod access;
mod change;
mod channels;
mod declared;
mod embedded;
mod here;
mod info;
mod join;
mod login;
mod scan;
mod sessions;
mod state;
mod twemproxy;
mod who;

use std::ops::Range;

use proxima_wire::{
    message::{Class, Outcome, Parse, Parsed, Reply, Request, Span},
    resp::{self, Args, Command, DECLARED, Expect, INLINE, Limits, Served, TRANSACTION, UNKNOWN},
};

use super::{
    Change, Channels, ConnectionFacts, Conversation, DeclaredCommands, Dialect, Embedded, Expiry, Failed,
    Figures, Join, Login, Manner, Message, Piece, Plan, Session, UNASKED, manner::twemproxys_text,
};

/// The Redis dialect, in Proxima's manner or in twemproxy's.
#[derive(Debug)]
pub struct Redis {
    manner: Manner,
}

impl Redis {
    /// Redis as Proxima speaks it.
    pub const PLAIN: Self = Self { manner: Manner::Own };
    const TWEMPROXY: Self = Self {
        manner: Manner::Twemproxy { all_commands: false },
    };
    const TWEMPROXY_ALL: Self = Self {
        manner: Manner::Twemproxy { all_commands: true },
    };
}

/// The names of all commands, and of what is none.
static NAMES: [&str; Command::COUNT as usize + 4] = {
    let mut names = [""; Command::COUNT as usize + 4];
    let known = Command::names();
    let mut number = 0;
    while number < known.len() {
        names[number] = known[number];
        number += 1;
    }
    names[UNKNOWN as usize] = "unknown";
    names[INLINE as usize] = "inline";
    names[TRANSACTION as usize] = "transaction";
    names[DECLARED as usize] = "declared";
    names
};

/// The error for `SORT` with patterns where there are several servers.
const PATTERN: &str = "CROSSSLOT the keys that BY and GET name may be at other servers: sort without them, or at the \
                       only server of a pool";

/// Can messages to subscribers come in RESP2 while this command is not answered?
fn speaks_of_channels(command: &Command) -> bool {
    command.name == "ping" || command.served == Served::Channels
}

/// A request that every healthy server answers with `+PONG`.
const PROBE: &[u8] = b"*1\r\n$4\r\nPING\r\n";

/// The number of a command that is known to exist.
fn number(name: &str) -> u16 {
    Command::find(name.as_bytes()).unwrap_or(UNKNOWN)
}

/// The reply to a look-up that finds nothing.
fn null(form: u16) -> &'static [u8] {
    if form == 0 { b"$-1\r\n" } else { b"_\r\n" }
}

/// Appends a string.
fn append_bulk(text: &[u8], out: &mut Vec<u8>) {
    resp::append_number(b'$', text.len() as i64, out);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// Appends an error line. Control characters would end it.
fn append_error(text: &str, out: &mut Vec<u8>) {
    let printable = |byte: u8| if byte.is_ascii_control() { b' ' } else { byte };
    out.push(b'-');
    out.extend(text.bytes().map(printable));
    out.extend_from_slice(b"\r\n");
}

impl Dialect for Redis {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn in_manner(&self, manner: Manner) -> Option<&'static dyn Dialect> {
        match manner {
            // mcrouter does not speak Redis.
            Manner::Own | Manner::Mcrouter { .. } => None,
            Manner::Twemproxy { all_commands: false } => Some(&Self::TWEMPROXY),
            Manner::Twemproxy { all_commands: true } => Some(&Self::TWEMPROXY_ALL),
        }
    }

    fn commands(&self) -> &'static [&'static str] {
        &NAMES
    }

    #[inline]
    fn request(&self, parse: &mut Parse, bytes: &[u8], value_limit: u64) -> Parsed<Request> {
        let limits = Limits { value: value_limit };
        match self.manner {
            // A request is large: it is written once, where the caller wants it.
            Manner::Own | Manner::Mcrouter { .. } => resp::request(parse, bytes, &limits),
            Manner::Twemproxy { all_commands } => twemproxy::request(parse, bytes, &limits, all_commands),
        }
    }

    fn piece(&self, parse: &mut Parse, bytes: &[u8], value_limit: u64) -> Parsed<Piece> {
        resp::rest(parse, bytes, &Limits { value: value_limit })
    }

    fn reply(&self, parse: &mut Parse, command: u16, bytes: &[u8]) -> Parsed<Message> {
        let expect = match command {
            UNASKED => Expect::Nothing,
            TRANSACTION.. => Expect::Replies(resp::replies(command)),
            _ if Command::of(command).is_some_and(speaks_of_channels) => Expect::Subscriber,
            _ => Expect::Reply,
        };
        resp::reply(parse, expect, bytes)
    }

    #[inline]
    fn whole(&self, command: u16, _: &[u8], bytes: &[u8], limit: u64) -> Option<Reply> {
        let short = resp::whole(bytes).filter(|_| command < TRANSACTION);
        let read = short.or_else(|| match self.reply(&mut Parse::default(), command, bytes) {
            Parsed::Head(Message::Last(reply)) => Some(reply),
            _ => None,
        });
        read.filter(|reply| reply.len() <= limit && reply.len() <= bytes.len() as u64)
    }

    fn miss(&self, form: u16, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Reply {
        let begin = out.len();
        match Command::of(request.command) {
            Some(command) if resp::append_empty(command, form, message, out) => {}
            Some(command) => append_error(&format!("ERR {}", resp::only_a_server(command.name)), out),
            None if request.command >= TRANSACTION => resp::append_empty_transaction(form, message, out),
            // What a module answers, it alone can say.
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

    fn tells_what_was_removed(&self) -> bool {
        true
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

    fn error(&self, _: &Session, failed: &Failed<'_>, out: &mut Vec<u8>) {
        match self.manner {
            Manner::Own | Manner::Mcrouter { .. } => append_error(&format!("ERR {failed}"), out),
            Manner::Twemproxy { .. } => twemproxy::error(&twemproxys_text(failed), out),
        }
    }

    fn failure(&self, session: &Session, command: u16, failed: &Failed<'_>, out: &mut Vec<u8>) {
        (0..resp::replies(command)).for_each(|_| self.error(session, failed, out));
    }

    fn command_name(&self, command: u16) -> &'static str {
        NAMES[usize::from(command.min(TRANSACTION))]
    }

    fn probe(&self) -> (u16, &'static [u8]) {
        (number("ping"), PROBE)
    }

    fn example(&self, command: u16, key: &[u8]) -> Option<Vec<u8>> {
        let command = Command::of(command).filter(|command| command.positions[0] == 1)?;
        let args = usize::from(command.arity.unsigned_abs()).max(2);
        let mut message = Vec::new();
        resp::append_number(b'*', args as i64, &mut message);
        let filling = std::iter::repeat_n(&b"1"[..], args - 2);
        for word in [command.name.as_bytes(), key].into_iter().chain(filling) {
            append_bulk(word, &mut message);
        }
        Some(message)
    }

    fn may_repeat(&self, command: u16) -> bool {
        Command::of(command).is_some_and(|command| command.class == Class::Read)
    }

    fn resolve(
        &self,
        session: &Session,
        declared: &DeclaredCommands,
        request: &Request,
        message: &[u8],
    ) -> Option<Request> {
        match request.command {
            TRANSACTION.. => sessions::first_of_nested(session, request, message),
            _ => declared::resolve(declared, request, message),
        }
    }

    fn error_word<'a>(&self, reply: &'a [u8]) -> &'a [u8] {
        let words = reply.strip_prefix(b"-").unwrap_or_default();
        words.split(u8::is_ascii_whitespace).next().unwrap_or_default()
    }

    fn library<'a>(&self, session: &'a Session) -> &'a [u8] {
        state::State::note(session, state::LIBRARY)
    }

    fn class_of(&self, command: u16) -> Option<&'static str> {
        Some(match Command::of(command)?.class {
            Class::Read => "read",
            Class::Write => "write",
            Class::Delete => "delete",
            Class::Arithmetic => "arithmetic",
            Class::Touch => "touch",
            Class::Admin => "admin",
            Class::Session => "session",
        })
    }

    fn looks_up(&self, command: u16) -> bool {
        Command::of(command).is_some_and(|command| command.class == Class::Read)
    }

    fn plan(&self, session: &mut Session, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
        if request.command == INLINE {
            let line = message.strip_suffix(b"\n").unwrap_or(message);
            // The codec has counted the words, so that the quotes are known to be balanced.
            return match resp::inline::append_array(line, out) {
                true => Plan::Instead,
                false => Plan::Close,
            };
        }
        if let Manner::Twemproxy { all_commands } = self.manner
            && let Some(plan) = twemproxy::plan(session, request, message, all_commands, out)
        {
            return plan;
        }
        if (session.step != 0 || session.has_subscriptions)
            && let Some(plan) = sessions::plan(session, request, message, self.manner, out)
        {
            return plan;
        }
        if session.is_embedded {
            return embedded::plan(session, request, message, out);
        }
        if request.command >= TRANSACTION {
            return Plan::Spread { divides: false };
        }
        if request.command == DECLARED {
            return declared::plan(request, message, out);
        }
        let mut args = Args::of(message);
        let count = args.left();
        let command = Command::of(request.command).filter(|command| command.takes(count));
        let Some(command) = command.filter(|command| command.served != Served::Container) else {
            here::refuse_form(request.command, &mut args, message, out);
            return Plan::Answer;
        };
        match command.served {
            Served::Transaction | Served::Channels => sessions::begin(session, command, out),
            Served::Key if request.extra_timeout > 0 => sessions::begin(session, command, out),
            Served::Here => here::answer(session, command, message, out),
            // The codec has found that a pattern names keys.
            Served::Pattern if request.class == Class::Session => {
                append_error(PATTERN, out);
                Plan::Alone
            }
            Served::Key | Served::Pattern | Served::Split(_) if !request.more_keys.is_empty() => {
                let divides = matches!(command.served, Served::Split(_));
                Plan::Spread { divides }
            }
            Served::Key | Served::Pattern | Served::Split(_) | Served::Channel => Plan::Route,
            Served::Each(_) | Served::Any => Plan::Everywhere,
            // The cursors are the server's own.
            Served::Walk if session.reach.is_one => Plan::Everywhere,
            Served::Walk => Plan::Visit,
            Served::Alone if command.name == "info" && !session.reach.is_one => Plan::Figures,
            Served::Alone => {
                here::instead_of_one(session, command, message, out);
                Plan::Alone
            }
            Served::Own if here::is_off(command, message) => {
                out.extend_from_slice(b"+OK\r\n");
                Plan::Answer
            }
            Served::Own if session.reach.is_one => sessions::own(session),
            Served::Own | Served::Refused | Served::Container => {
                let name = command.name.replace('|', " ").to_uppercase();
                append_error(&format!("ERR {name} is not served: {}", command.reason), out);
                Plan::Answer
            }
        }
    }

    fn figures(&self, session: &Session, message: &[u8], figures: &Figures, out: &mut Vec<u8>) {
        info::answer(session, message, figures, out);
    }

    fn connection(&self, session: &Session, message: &[u8], facts: &ConnectionFacts, out: &mut Vec<u8>) {
        about_client::answer(session, message, facts, out);
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
            Served::Split(combine) | Served::Each(combine) => Some(join::of(combine)),
            Served::Walk => Some(&Join::Shares(scan::answer)),
            _ => None,
        }
    }

    fn asks_for_keys(&self, command: u16) -> bool {
        let name = Command::of(command).map_or("", |command| command.name);
        matches!(name, "dbsize" | "keys" | "randomkey" | "scan")
    }

    fn error_of_part(&self, outcome: Outcome) -> Option<&'static [u8]> {
        match self.manner {
            Manner::Own | Manner::Mcrouter { .. } => None,
            Manner::Twemproxy { .. } => twemproxy::error_of_part(outcome),
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
            let is_by_channel = matches!(command.served, Served::Channel | Served::Channels);
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

    fn refused(&self, session: &mut Session, command: u16, has_lane: bool) -> bool {
        sessions::refused(session, command, has_lane);
        true
    }

    fn expiry(&self, request: &Request, message: &[u8], unix: u64) -> Expiry {
        change::expiry(request, message, unix)
    }

    fn is_same_everywhere(&self, command: u16) -> bool {
        // Scripts, chance, and clocks: each server would come to a result of its own.
        const OWN: [&str; 8] = [
            "eval",
            "evalsha",
            "fcall",
            "spop",
            "xadd",
            "xclaim",
            "xautoclaim",
            "xreadgroup",
        ];
        Command::of(command).is_some_and(|command| !OWN.contains(&command.name))
    }

    fn visit(&self, message: &[u8], numbers: &[u16], out: &mut Vec<u8>) -> Option<usize> {
        scan::visit(message, numbers, out)
    }

    fn apart(
        &self,
        session: &mut Session,
        request: &Request,
        message: &[u8],
        [(key, server), (other, elsewhere)]: [(&[u8], &str); 2],
        out: &mut Vec<u8>,
    ) -> bool {
        let shown = |key: &[u8]| String::from_utf8_lossy(&key[..key.len().min(64)]).into_owned();
        let text = format!(
            "CROSSSLOT '{}' is at {server} and '{}' at {elsewhere}: a hash tag (hash.tag) keeps keys together",
            shown(key),
            shown(other)
        );
        if request.command < TRANSACTION {
            sessions::doom(session);
            append_error(&text, out);
            return true;
        }
        sessions::abandon(session);
        out.extend_from_slice(b"+OK\r\n");
        resp::commands(message).for_each(|_| append_error(&text, out));
        append_error(sessions::ABORTED, out);
        true
    }

    fn embedded(&self) -> Option<Embedded> {
        Some(Embedded::Redis)
    }

    fn answered(&self, session: &mut Session, command: u16, reply: &Reply, _: &[u8]) {
        sessions::answered(session, command, reply.outcome.is_error());
    }

    fn channels(&self) -> Option<&'static dyn Channels> {
        Some(&Self::PLAIN)
    }

    fn admit(&self, session: &mut Session, _: &[u8], _: &mut Vec<u8>) -> Login {
        access::begin(session);
        Login::Ready { used: 0 }
    }

    fn login(&self, conversation: &mut Conversation, bytes: &[u8], out: &mut Vec<u8>) -> Login {
        login::step(conversation, bytes, out)
    }

    fn exceeds(&self, request: &Request, message: &[u8]) -> Option<&'static [u8]> {
        access::exceeds(request, message)
    }
}
