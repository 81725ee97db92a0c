//! The client side of memcached.

use std::{fmt::Display, io::Write};

use proxima_wire::{
    memcache::{self, Command, Discovery, error},
    message::{Bad, Class, NextKey, Outcome, Request},
};

use super::{Memcache, mcrouter};
use crate::{
    protocol::{ClientSide, Control, Failed, Join, NearCounters, Plan, ReplyStyle, Session},
    protocols::errors::{mcrouters_text, twemproxys_text},
};

/// Is this `stats near`?
fn is_about_near(message: &[u8]) -> bool {
    let mut words = message
        .trim_ascii()
        .split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty());
    words.next() == Some(b"stats") && words.next() == Some(b"near") && words.next().is_none()
}

/// The control thread answers when nothing else is due to the client.
fn consult(session: &Session) -> Plan {
    match session.is_idle {
        true => Plan::Consult,
        false => Plan::Later,
    }
}

impl<const ANNOUNCES: bool> ClientSide for Memcache<ANNOUNCES> {
    fn keeps_session(&self) -> bool {
        false
    }

    #[inline]
    fn split(&self, _: &Session, request: &Request, _: &[u8], _: &mut Vec<u8>) -> Option<&'static Join> {
        use Command::*;
        let command = Command::from_number(request.command);
        let gets = matches!(command, Some(Get | Gets | Gat | Gats | LeaseGet | Metadata));
        (gets && !request.more_keys.is_empty()).then_some(&Join::Concat { end: b"END\r\n" })
    }

    #[inline]
    fn plan(&self, session: &mut Session, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
        use Command::*;
        let Some(command) = Command::from_number(request.command) else {
            return Plan::Reject("no such command");
        };
        let answer: &[u8] = match command {
            Version => self.version,
            Verbosity => b"OK\r\n",
            MetaNoop => b"MN\r\n",
            Shutdown if matches!(self.reply_style, ReplyStyle::Mcrouter { .. }) => return Plan::Shutdown,
            Shutdown => b"SERVER_ERROR: shutdown not enabled\r\n",
            Config if ANNOUNCES && message == Discovery::Config.line() => {
                out.extend_from_slice(b"END\r\n");
                return Plan::Announce(Discovery::Config as u16);
            }
            Config => error::ERROR,
            Get if matches!(self.reply_style, ReplyStyle::Mcrouter { .. })
                && request.class == Class::Admin =>
            {
                return consult(session);
            }
            Get if ANNOUNCES && request.class == Class::Admin => {
                out.extend_from_slice(b"END\r\n");
                return Plan::Announce(Discovery::Key as u16);
            }
            FlushAll if self.reply_style == (ReplyStyle::Mcrouter { flush: false }) => mcrouter::DISABLED,
            FlushAll => return Plan::Broadcast,
            Stats if matches!(self.reply_style, ReplyStyle::Mcrouter { .. }) => return consult(session),
            Stats if is_about_near(message) => return consult(session),
            Stats | LruCrawler => return Plan::Stats,
            Quit => return Plan::Close,
            Get | Gets | Gat | Gats | Set | Add | Replace | Append | Prepend | Cas | Delete | Incr | Decr
            | Touch | LeaseGet | LeaseSet | Metadata | MetaGet | MetaSet | MetaDelete | MetaArithmetic
            | MetaDebug => return Plan::Route,
        };
        out.extend_from_slice(answer);
        Plan::Answer
    }

    fn consulted(&self, _: &[u8], process: &dyn Control, out: &mut Vec<u8>) {
        let NearCounters { whole, rules } = process.near();
        let mut row = |name: &str, value: &dyn Display| {
            // Writing to a Vec cannot fail.
            let _ = write!(out, "STAT {name} {value}\r\n");
        };
        for (name, value) in &whole {
            row(name, value);
        }
        for (rule, rows) in &rules {
            for (name, value) in rows {
                row(&format!("{rule}:{name}"), value);
            }
        }
        out.extend_from_slice(b"END\r\n");
    }

    fn silenced(&self, command: u16, outcome: Outcome) -> bool {
        Command::from_number(command).is_some_and(|command| memcache::silenced(command, outcome))
    }

    #[inline]
    fn next_key(&self, _: &Request, bytes: &[u8]) -> NextKey {
        match memcache::take_key(bytes) {
            NextKey::Bad(bad) => NextKey::Bad(match self.reply_style {
                ReplyStyle::Own => bad,
                ReplyStyle::Twemproxy { .. } => bad.mute(),
                ReplyStyle::Mcrouter { .. } => Bad {
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

    fn error(&self, _: &Session, failed: &Failed<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(match failed.outcome {
            Outcome::ClientError => b"CLIENT_ERROR ",
            _ => b"SERVER_ERROR ",
        });
        let text = match self.reply_style {
            ReplyStyle::Own => failed.to_string(),
            ReplyStyle::Twemproxy { .. } => twemproxys_text(failed),
            ReplyStyle::Mcrouter { .. } => mcrouters_text(failed),
        };
        let printable = |byte: u8| if byte.is_ascii_control() { b' ' } else { byte };
        out.extend(text.bytes().map(printable));
        out.extend_from_slice(b"\r\n");
    }
}
