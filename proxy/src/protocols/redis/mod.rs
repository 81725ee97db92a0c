//! The protocol of Redis and Valkey.
//!
//! The codec's table ([`Command`]) has the facts about each command. A read or write by one key walks the
//! tree unseen. Everything else is planned here: by [`Handling`](resp::Handling) it is routed, answered,
//! given to every member, or rejected with the reason.
//!
//! A client chooses the version of the protocol (`HELLO`). RESP3 has lanes of its own, as a version belongs
//! to a connection.

mod about_client;
mod access;
mod cacheable;
mod change;
mod channels;
mod client;
mod declared;
mod embedded;
mod here;
mod identity;
mod info;
mod join;
mod login;
mod requests;
mod scan;
mod server;
mod sessions;
mod state;
mod twemproxy;

use proxima_wire::{
    message::Class,
    resp::{self, Command, DECLARED, INLINE, TRANSACTION, UNKNOWN},
};

use crate::protocol::{Cacheable, Channels, Embedded, Protocol, ReplyStyle};

/// The Redis protocol, in Proxima's reply style or in twemproxy's.
#[derive(Debug)]
pub struct Redis {
    reply_style: ReplyStyle,
}

impl Redis {
    /// Redis as Proxima speaks it.
    pub const PLAIN: Self = Self {
        reply_style: ReplyStyle::Own,
    };
    const TWEMPROXY: Self = Self {
        reply_style: ReplyStyle::Twemproxy { all_commands: false },
    };
    const TWEMPROXY_ALL: Self = Self {
        reply_style: ReplyStyle::Twemproxy { all_commands: true },
    };
}

/// The names of all commands, and of messages that are no command.
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

impl Protocol for Redis {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn with_reply_style(&self, reply_style: ReplyStyle) -> Option<&'static dyn Protocol> {
        match reply_style {
            // mcrouter does not speak Redis.
            ReplyStyle::Own | ReplyStyle::Mcrouter { .. } => None,
            ReplyStyle::Twemproxy { all_commands: false } => Some(&Self::TWEMPROXY),
            ReplyStyle::Twemproxy { all_commands: true } => Some(&Self::TWEMPROXY_ALL),
        }
    }

    fn commands(&self) -> &'static [&'static str] {
        &NAMES
    }

    fn cacheable(&self) -> Option<&'static dyn Cacheable> {
        Some(&Self::PLAIN)
    }

    fn tells_what_was_removed(&self) -> bool {
        true
    }

    fn command_name(&self, command: u16) -> &'static str {
        NAMES[usize::from(command.min(TRANSACTION))]
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

    fn asks_for_keys(&self, command: u16) -> bool {
        let name = Command::of(command).map_or("", |command| command.name);
        matches!(name, "dbsize" | "keys" | "randomkey" | "scan")
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

    fn embedded(&self) -> Option<Embedded> {
        Some(Embedded::Redis)
    }

    fn channels(&self) -> Option<&'static dyn Channels> {
        Some(&Self::PLAIN)
    }
}
