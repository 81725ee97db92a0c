//! The server side of memcached.

use proxima_wire::{
    memcache::{self, Command},
    message::{Bad, Outcome, Parse, Parsed, Reply},
};

use super::Memcache;
use crate::protocol::{Login, MALFORMED, Message, Question, ServerLogin, ServerSide, StateSlot};

impl<const ANNOUNCES: bool> ServerSide for Memcache<ANNOUNCES> {
    #[inline]
    fn reply(&self, _: &StateSlot, _: &mut Parse, command: u16, bytes: &[u8]) -> Parsed<Message> {
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
    fn whole(&self, _: &StateSlot, command: u16, asked: &[u8], bytes: &[u8], limit: u64) -> Option<Reply> {
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

    /// Asks for the server's version: a server with another syntax of meta commands must not be given any.
    fn login(&self, _: &mut StateSlot, _: &mut ServerLogin<'_>, bytes: &[u8], out: &mut Vec<u8>) -> Login {
        if bytes.is_empty() {
            out.extend_from_slice(b"version\r\n");
            return Login::More { used: 0 };
        }
        let (reply, line) = match memcache::reply(Command::Version, bytes) {
            Parsed::Head(reply) => (reply, &bytes[..reply.head as usize]),
            Parsed::More => return Login::More { used: 0 },
            Parsed::Bad(_) => return Login::Failed(MALFORMED.into()),
        };
        let used = line.len();
        match self.limit(line) {
            _ if matches!(reply.outcome, Outcome::Busy | Outcome::Shutdown) => {
                Login::Failed(String::from_utf8_lossy(line.trim_ascii()).into_owned())
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

    /// A server that knows one of the lease commands knows both. No client uses the key.
    fn proof(&self) -> Option<Question> {
        Some((Command::LeaseGet as u16, b"lease-get proxima:leases\r\n"))
    }

    fn probe(&self) -> (u16, &'static [u8]) {
        (Command::Version as u16, b"version\r\n")
    }
}
