//! Transactions, blocking commands and subscriptions: what a server keeps for one client.
//!
//! A transaction that has come whole needs nothing of this. Step by step, `MULTI` is answered here, and sent
//! before the first command behind it, whose keys tell the member. From then on everything goes to the lane
//! that the client has for itself, until `EXEC` or `DISCARD`.
//!
//! Invariant: no request overtakes another one of its client. What takes another lane than the requests
//! before it waits until they are answered ([`Plan::Later`]).

use proxima_wire::{
    message::{Class, Request},
    resp::{Args, Command, DECLARED, Served, TRANSACTION},
};

use super::{
    PATTERN, Redis, access, append_bulk, append_error, channels, declared, here,
    state::{BOUND, DOOMED, KEEPS, LOCKED, MULTI, OWNING, SETTLING, SUBSCRIBED, WATCHING, clear, is, set},
};
use crate::dialect::{Channels, Lease, Manner, Plan, Session};

const BEGIN: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
pub(super) const ABORTED: &str = "EXECABORT Transaction discarded because of previous errors.";

/// Plans a request of a client with a state. `None`: the state makes no difference to it.
pub(super) fn plan(
    session: &mut Session,
    request: &Request,
    message: &[u8],
    manner: Manner,
    out: &mut Vec<u8>,
) -> Option<Plan> {
    if is(session, LOCKED) {
        return access::refuse(request, message, manner, out);
    }
    if is(session, SETTLING) {
        if !session.is_idle {
            return Some(Plan::Later);
        }
        clear(session, SETTLING);
    }
    if is(session, MULTI) {
        return Some(within(session, request, message, out));
    }
    let command = Command::of(request.command);
    let served = command.map(|command| command.served);
    if session.unconfirmed > 0 && served != Some(Served::Channels) {
        // What the client may ask, and where, is known when the subscriptions before it are made.
        return Some(Plan::Later);
    }
    let is_subscriber = is(session, SUBSCRIBED) || session.has_subscriptions;
    if is_subscriber && session.form == 0 && served != Some(Served::Channels) {
        return match command.map_or("", |command| command.name) {
            "ping" if session.has_subscriptions => Some(pong(message, out)),
            "ping" => Some(Plan::Dedicated),
            "quit" | "reset" => None,
            name => {
                append_error(
                    &format!(
                        "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are \
                         allowed in this context"
                    ),
                    out,
                );
                Some(Plan::Answer)
            }
        };
    }
    if is(session, OWNING)
        && let Some(plan) = owning(session, request, command, message, out)
    {
        return Some(plan);
    }
    if is(session, WATCHING) {
        if request.command == TRANSACTION {
            if !session.is_idle {
                return Some(Plan::Later);
            }
            leave(session);
            return Some(Plan::Dedicated);
        }
        let stays = matches!(
            served,
            Some(Served::Transaction | Served::Here | Served::Channels)
        );
        if !stays && !session.is_idle {
            return Some(Plan::Later);
        }
    }
    None
}

/// Answers the `PING` of a subscriber in RESP2, as a server does.
fn pong(message: &[u8], out: &mut Vec<u8>) -> Plan {
    let mut args = Args::of(message);
    match args.left() {
        1 | 2 => {
            out.extend_from_slice(b"*2\r\n");
            append_bulk(b"pong", out);
            append_bulk(args.nth(1).map(|text| text.of(message)).unwrap_or_default(), out);
        }
        _ => append_error("ERR wrong number of arguments for 'ping' command", out),
    }
    Plan::Answer
}

/// Plans a request of a client that has a lane for good. The server sees there what it would see without a
/// proxy. `None`: the proxy answers.
fn owning(
    session: &mut Session,
    request: &Request,
    command: Option<&'static Command>,
    message: &[u8],
    out: &mut Vec<u8>,
) -> Option<Plan> {
    let count = Args::of(message).left();
    let is_known = command.is_some_and(|command| command.takes(count) && is_kept(command));
    if request.command == TRANSACTION || request.command == DECLARED || is_known {
        return Some(Plan::Dedicated);
    }
    let command = command.filter(|command| command.served == Served::Channels && command.takes(count))?;
    Some(begin(session, command, count, out))
}

/// Does this command of a client have to be answered by the server that keeps a connection for it?
fn is_kept(command: &Command) -> bool {
    match command.served {
        Served::Here => matches!(command.name, "ping" | "echo" | "select"),
        Served::Refused | Served::Container | Served::Channels => false,
        _ => true,
    }
}

/// Gives the client a lane for good.
pub(super) fn own(session: &mut Session) -> Plan {
    if !session.is_idle {
        return Plan::Later;
    }
    clear(session, WATCHING);
    set(session, OWNING);
    session.lease = Lease::Kept;
    Plan::Dedicated
}

/// The client's own lane gets its last request: whatever comes next waits for the reply.
fn leave(session: &mut Session) {
    clear(session, MULTI | DOOMED | BOUND | WATCHING);
    set(session, SETTLING);
}

/// Drops what the server may keep for the client.
fn spoil(session: &mut Session) {
    if session.lease != Lease::Clean {
        session.lease = Lease::Spoilt;
    }
    leave(session);
}

/// Plans a request between `MULTI` and `EXEC`.
fn within(session: &mut Session, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
    if request.command == TRANSACTION {
        // Each of its commands would need a reply of its own.
        append_error("ERR MULTI calls can not be nested", out);
        return Plan::Close;
    }
    if request.command == DECLARED && request.class == Class::Session {
        set(session, DOOMED);
        declared::refuse(message, out);
        return Plan::Answer;
    }
    if request.command == DECLARED {
        return queue(session, out);
    }
    let mut args = Args::of(message);
    let count = args.left();
    let command = Command::of(request.command).filter(|command| command.takes(count));
    let Some(command) = command.filter(|command| command.served != Served::Container) else {
        set(session, DOOMED);
        here::refuse_form(request.command, &mut args, message, out);
        return Plan::Answer;
    };
    match command.name {
        "exec" | "discard" => return end(session, command.name == "exec", out),
        "multi" => append_error("ERR MULTI calls can not be nested", out),
        "watch" => append_error("ERR WATCH inside MULTI is not allowed", out),
        "quit" => {
            out.extend_from_slice(b"+OK\r\n");
            return Plan::Close;
        }
        "reset" => {
            here::reset(session);
            out.extend_from_slice(b"+RESET\r\n");
        }
        "sort" | "sort_ro" if request.class == Class::Session && !session.reach.is_one => {
            set(session, DOOMED);
            append_error(PATTERN, out);
        }
        _ if command.is_shareable() || session.reach.is_one && is_of_one(command) => {
            return queue(session, out);
        }
        name => {
            set(session, DOOMED);
            let name = name.replace('|', " ").to_uppercase();
            append_error(&format!("ERR {name} is not served in a transaction"), out);
        }
    }
    Plan::Answer
}

/// May the only member queue this command, although several could not?
fn is_of_one(command: &Command) -> bool {
    matches!(command.served, Served::Each(_) | Served::Walk | Served::Alone)
}

/// Sends a command to be queued by the server.
fn queue(session: &mut Session, out: &mut Vec<u8>) -> Plan {
    if is(session, BOUND) {
        return Plan::Dedicated;
    }
    // What was sent since WATCH went by another lane.
    if !session.is_idle {
        return Plan::Later;
    }
    set(session, BOUND);
    session.lease = Lease::Kept;
    out.extend_from_slice(BEGIN);
    Plan::Dedicated
}

/// Ends a transaction.
fn end(session: &mut Session, is_exec: bool, out: &mut Vec<u8>) -> Plan {
    let (doomed, bound) = (is(session, DOOMED), is(session, BOUND));
    if is_exec && doomed {
        append_error(ABORTED, out);
        spoil(session);
        return Plan::Answer;
    }
    if bound {
        leave(session);
        return Plan::Dedicated;
    }
    if is_exec && is(session, WATCHING) {
        if !session.is_idle {
            return Plan::Later;
        }
        // The server has to say whether a watched key has changed.
        out.extend_from_slice(BEGIN);
        leave(session);
        return Plan::Dedicated;
    }
    out.extend_from_slice(if is_exec { b"*0\r\n" } else { b"+OK\r\n" });
    spoil(session);
    Plan::Answer
}

/// Plans a command that begins or ends what a server keeps for a client, outside a transaction.
pub(super) fn begin(session: &mut Session, command: &Command, count: u32, out: &mut Vec<u8>) -> Plan {
    match (command.name, command.served) {
        ("multi", _) => {
            set(session, MULTI);
            out.extend_from_slice(b"+OK\r\n");
        }
        ("exec", _) => append_error("ERR EXEC without MULTI", out),
        ("discard", _) => append_error("ERR DISCARD without MULTI", out),
        ("unwatch", _) if is(session, WATCHING) && !session.is_idle => return Plan::Later,
        ("unwatch", _) if is(session, WATCHING) => {
            leave(session);
            return Plan::Dedicated;
        }
        ("unwatch", _) => out.extend_from_slice(b"+OK\r\n"),
        _ if session.lease != Lease::Kept && !session.is_idle => return Plan::Later,
        // What went by another lane may be a message to this very channel.
        (_, Served::Channels) if !session.is_idle => return Plan::Later,
        ("watch", _) => {
            set(session, WATCHING);
            session.lease = Lease::Kept;
            return Plan::Dedicated;
        }
        // What has begun on the client's own lane goes on there, however many servers there are by now.
        (_, Served::Channels) if !session.reach.is_one && !is(session, SUBSCRIBED | OWNING) => {
            return Plan::Subscribe;
        }
        (_, Served::Channels) if session.has_subscriptions => return Plan::Subscribe,
        (_, Served::Channels) => return subscribe(session, command, count),
        _ if !session.is_idle => return Plan::Later,
        // A command that blocks.
        _ => {
            set(session, SETTLING);
            return Plan::Dedicated;
        }
    }
    Plan::Answer
}

/// Notes a reply on the client's own lane.
pub(super) fn answered(session: &mut Session, command: u16, is_error: bool) {
    access::answered(session, is_error);
    let name = Command::of(command).map_or("", |command| command.name);
    let ends = command == TRANSACTION || matches!(name, "exec" | "discard" | "unwatch");
    if ends && session.lease == Lease::Kept && session.step & KEEPS == 0 {
        session.lease = Lease::Clean;
    }
}

/// Changes the subscriptions at the only server.
fn subscribe(session: &mut Session, command: &Command, count: u32) -> Plan {
    let Some(made) = channels::named(command.name.as_bytes()) else {
        return Plan::Close;
    };
    if count == 1 && session.unconfirmed > 0 {
        // How many confirmations this one has depends on the changes before it.
        return Plan::Later;
    }
    let more = channels::confirmations(made, count, &session.confirmed);
    session.unconfirmed = session.unconfirmed.saturating_add(more);
    session.lease = Lease::Kept;
    set(session, SUBSCRIBED);
    Plan::Dedicated
}

/// Notes a message that came unasked. The last confirmation ends the subscription if no channel is left.
///
/// Invariant: a lane is another client's only when no confirmation is due on it and the server's numbers are
/// zero. Numbers that cannot be true keep the lane for the client.
pub(super) fn pushed(session: &mut Session, bytes: &[u8]) {
    if !is(session, SUBSCRIBED) {
        return;
    }
    let Some(confirmation) = Redis::PLAIN.confirmation(bytes) else {
        return;
    };
    if session.confirmed.confirm(&confirmation).is_none() {
        return;
    }
    session.unconfirmed = session.unconfirmed.saturating_sub(1);
    if session.unconfirmed == 0 && session.confirmed.is_zero() {
        clear(session, SUBSCRIBED);
        if session.step & KEEPS == 0 {
            session.lease = Lease::Clean;
        }
    }
}

/// Notes that a command of a transaction cannot be served with the others.
pub(super) fn doom(session: &mut Session) {
    if is(session, MULTI) {
        set(session, DOOMED);
    }
}
