//! The server side of MySQL.

use std::time::Duration;

use proxima_wire::{
    message::{Bad, Message, Outcome, Parse, Parsed, Reply, Request},
    mysql::{Capabilities, Event, Header, ReplyPart, Status, append_packet, find},
};

use super::{
    Mysql,
    commands::{self, append_query},
    error,
    found::consistency,
    identity::Identity,
    lane::{Lane, Reading},
    login,
    replay::is_read,
    reply_end::ReplyEnd,
    rewrite,
    state::Client,
    words::has_word,
};
use crate::protocol::{
    Consistency, Login, Outgoing, Retention, ServerLogin, ServerSide, Session, StateSlot, WriteResult,
};

/// The most connections to a server that has not told yet how many it takes.
const UNTIL_TOLD: u32 = 64;

/// COM_QUIT, without which a server counts the connection among those that were aborted.
const QUIT: &[u8] = b"\x01\0\0\0\x01";
/// COM_PING.
const PING: &[u8] = b"\x01\0\0\0\x0e";

impl ServerSide for Mysql {
    fn reply(&self, lane: &StateSlot, parse: &mut Parse, command: u16, bytes: &[u8]) -> Parsed<Message> {
        let (capabilities, first) = agreed(lane);
        match find(parse, commands::shape(command), capabilities, first, bytes) {
            Ok(ReplyPart::More) => Parsed::More,
            Ok(ReplyPart::Part { len, end }) => Parsed::Head(Message::Part(Reply {
                trailer: end,
                ..Reply::new(Outcome::Ok, len as usize)
            })),
            Ok(ReplyPart::Last { len, end, event }) => Parsed::Head(Message::Last(Reply {
                trailer: end,
                ..Reply::new(outcome(&event), len as usize)
            })),
            Err(_) => Parsed::Bad(Bad::fatal(b"")),
        }
    }

    fn probe(&self) -> (u16, &'static [u8]) {
        (commands::PING, PING)
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

    fn fits_requests(&self) -> bool {
        true
    }

    fn write(
        &self,
        lane: &mut StateSlot,
        session: &Session,
        request: &Request,
        message: &[u8],
        out: &mut Outgoing<'_>,
    ) -> WriteResult {
        let (Some(lane), Some(client)) = (lane.get_mut::<Lane>(), Client::of(session)) else {
            out.request().extend_from_slice(message);
            return WriteResult::Whole;
        };
        let is_of_reader = lane.is_of_reader(session.reach.is_one);
        let waits = lane.is_galera
            && match is_read(request) {
                true => waits(lane, session, client, request),
                false => waits_at_writer(lane, client, consistency(request)),
            };
        // One that has turned out to write is given to the server that takes writes.
        let is_read = is_read(request) && (!request.is_again || is_of_reader);
        // A client that asks for what its statement has left is served on its own connection, which stays as
        // it is. The same holds within a transaction that only reads.
        let stays = lane.session == client.life(session)
            && (client.only_residue || client.status.has(Status::IN_READ_ONLY_TRANSACTION))
            && !mentions_reading(message);
        let reading = match stays {
            true => lane.reading,
            false => Reading {
                only: client.door.rejects_writes || is_read && is_of_reader,
                waits,
            },
        };
        lane.has_lost_reading |=
            lane.may_be_open && client.door.rejects_writes && !client.is_in_transaction();
        lane.write(session, client, (request, message), reading, out)
    }

    fn finish(
        &self,
        lane: &mut StateSlot,
        session: &Session,
        command: u16,
        reply: &Reply,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<Reply> {
        let lane = lane.get_mut::<Lane>()?;
        match command {
            _ if commands::goes_before(command) => {
                lane.told(command, reply, bytes);
                return None;
            }
            commands::STATISTICS => return None,
            _ => lane.may_be_open = true,
        }
        let Some(client) = Client::of(session) else {
            // The error of what went before was for a client that has left, and not for the next one here.
            lane.failed = None;
            return None;
        };
        if command == commands::PREPARE && !reply.outcome.is_error() {
            return prepared(lane, client, reply, bytes, out);
        }
        let end = ReplyEnd {
            bytes,
            last: reply.trailer as usize,
            capabilities: lane.capabilities,
        };
        lane.note_warnings(&end);
        if client.may_change_schema() {
            lane.schema_changes.raise();
        }
        if command == commands::EXECUTE
            && end.has_new_columns()
            && let Some(executed) = client.prepared.get(client.executing)
        {
            lane.statements.forget_description(executed);
        }
        // The requests before it were not awaited, as the server had taken them before: the statement ran in
        // another state.
        if let Some(failed) = lane.failed.take() {
            out.extend_from_slice(end.before());
            let packet = failed.get(Header::LEN..).unwrap_or_default();
            let sequence = end.packet().get(3).copied().unwrap_or(1);
            append_packet(sequence, out, |out| out.extend_from_slice(packet));
            return Some(Reply::new(Outcome::RemoteError, out.len()));
        }
        if reply.outcome.is_error() {
            if client.may_generate_id() {
                lane.generates_id();
            }
            // Its status says whether it serves no longer. A function can raise the same error, with any
            // text.
            if lane.is_of_galera_pool() && error::ends_service(end.packet()) {
                lane.noted.doubt();
            }
            return match client.door.rejects_writes {
                true => rewrite::rejected(&end, out),
                false => None,
            };
        }
        if client.has_changed_session && lane.is_of_galera_pool() && end.is_whole() {
            return rewrite::session_changed(out);
        }
        lane.note(&end, client);
        rewrite::reply(&end, reply, client.capabilities, out)
    }

    fn suits(&self, lane: &StateSlot, session: &Session) -> u32 {
        match (lane.get::<Lane>(), Client::of(session)) {
            (Some(lane), Some(client)) => lane.suits(session, client),
            _ => 0,
        }
    }

    fn reset(&self, lane: &mut StateSlot, out: &mut Vec<u8>) -> Option<u16> {
        let lane = lane.get_mut::<Lane>().filter(|lane| !lane.is_unknown)?;
        lane.append_reset(out);
        Some(commands::REPLAY_RESET)
    }

    fn farewell(&self) -> &'static [u8] {
        QUIT
    }

    /// Three quarters of the time after which the server closes a connection.
    fn idle_limit(&self, lane: &StateSlot) -> Option<Duration> {
        let seconds: u64 = lane.get::<Lane>()?.variable(b"wait_timeout")?.parse().ok()?;
        Some(Duration::from_millis(seconds.saturating_mul(750)))
    }

    fn room_until_told(&self) -> u32 {
        UNTIL_TOLD
    }

    /// A server lets an account end its own statements.
    fn may_cancel(&self, by: &[u8], of: &[u8]) -> bool {
        match (Identity::decode(by), Identity::decode(of)) {
            (Some(by), Some(of)) => by.user == of.user,
            _ => false,
        }
    }

    fn connection_number(&self, lane: &StateSlot) -> Option<u64> {
        let number = lane.get::<Lane>()?.connection;
        (number > 0).then_some(u64::from(number))
    }

    fn cancel(&self, lane: &StateSlot, out: &mut Vec<u8>) -> Option<u16> {
        let number = lane.get::<Lane>()?.connection;
        append_query(format!("KILL QUERY {number}").as_bytes(), out);
        Some(commands::CANCEL)
    }
}

/// Does a read wait itself, where it runs? One that is tied to its connection can be given to no other.
fn waits(lane: &Lane, session: &Session, client: &Client, request: &Request) -> bool {
    session.retention == Retention::Kept || lane.must_wait(client, consistency(request))
}

/// Does a statement that goes where writes do wait there for what readers have shown its session? No server
/// waits within a transaction: it has waited when that began.
fn waits_at_writer(lane: &Lane, client: &Client, word: Consistency) -> bool {
    match client.has_transaction() {
        true => lane.reading.waits,
        false => client.may_show() && lane.is_behind(client, word),
    }
}

/// Does the text ask for variables that the proxy sets for reads?
fn mentions_reading(message: &[u8]) -> bool {
    has_word(message, b"read_only") || has_word(message, b"sync_wait") || has_word(message, b"variables")
}

/// A server has prepared a statement: its client reads the proxy's own number in the head of the reply.
fn prepared(
    lane: &mut Lane,
    client: &Client,
    reply: &Reply,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Option<Reply> {
    let is_head = bytes.get(Header::LEN) == Some(&0) && lane.telling.statement.is_some();
    lane.has_prepared(bytes);
    if !is_head {
        return None;
    }
    let (head, rest) = bytes.split_at_checked(Header::LEN + 1)?;
    out.extend_from_slice(head);
    out.extend_from_slice(&client.prepared.last().to_le_bytes());
    out.extend_from_slice(rest.get(4..)?);
    Some(*reply)
}

/// The capabilities agreed on with the server, and the number of the first packet of its reply.
fn agreed(lane: &StateSlot) -> (Capabilities, Option<u8>) {
    let lane = lane.get::<Lane>();
    lane.map_or((Capabilities::default(), Some(1)), |lane| {
        (lane.capabilities, lane.first_number)
    })
}

/// The outcome of a request with this reply.
fn outcome(event: &Event<'_>) -> Outcome {
    match event {
        Event::Err(error) => error::outcome(error),
        Event::Eof(_) => Outcome::Found,
        Event::Ok(ok) if ok.is_eof => Outcome::Found,
        _ => Outcome::Ok,
    }
}
