//! The server side of Redis.

use proxima_wire::{
    message::{Parse, Parsed, Reply, Request},
    resp::{self, Command, Expect, Handling, TRANSACTION},
};

use super::{PROBE, Redis, access, login, number};
use crate::protocol::{Login, Message, ServerLogin, ServerSide, StateSlot, UNASKED};

/// Can messages to subscribers come in RESP2 while this command is not answered?
fn speaks_of_channels(command: &Command) -> bool {
    command.name == "ping" || command.served == Handling::Channels
}

impl ServerSide for Redis {
    fn reply(&self, _: &StateSlot, parse: &mut Parse, command: u16, bytes: &[u8]) -> Parsed<Message> {
        let expect = match command {
            UNASKED => Expect::Nothing,
            TRANSACTION.. => Expect::Replies(resp::replies(command)),
            _ if Command::of(command).is_some_and(speaks_of_channels) => Expect::Subscriber,
            _ => Expect::Reply,
        };
        resp::reply(parse, expect, bytes)
    }

    #[inline]
    fn whole(&self, lane: &StateSlot, command: u16, _: &[u8], bytes: &[u8], limit: u64) -> Option<Reply> {
        let short = resp::whole(bytes).filter(|_| command < TRANSACTION);
        let read = short.or_else(|| match self.reply(lane, &mut Parse::default(), command, bytes) {
            Parsed::Head(Message::Last(reply)) => Some(reply),
            _ => None,
        });
        read.filter(|reply| reply.len() <= limit && reply.len() <= bytes.len() as u64)
    }

    fn probe(&self) -> (u16, &'static [u8]) {
        (number("ping"), PROBE)
    }

    fn login(
        &self,
        lane: &mut StateSlot,
        with: &mut ServerLogin<'_>,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Login {
        login::step(lane, with, bytes, out)
    }

    fn exceeds(&self, request: &Request, message: &[u8]) -> Option<&'static [u8]> {
        access::exceeds(request, message)
    }
}
