//! Transactions and blocking commands, for which a server keeps state for one client, and changes of
//! subscriptions.
//!
//! A transaction that has come whole needs nothing of this. Step by step, `MULTI` is answered here, and sent
//! before the first command behind it, whose keys tell the member. From then on everything goes to the lane
//! that the client has for itself, until `EXEC` or `DISCARD`.
//!
//! Invariant: no request overtakes another one of its client. What takes another lane than the requests
//! before it waits until they are answered ([`Plan::Later`]).

use proxima_wire::{
    message::{Class, Request},
    resp::{Args, Command, DECLARED, Handling, TRANSACTION},
};

use super::{
    PATTERN, access, append_bulk, append_error, declared, here, number,
    state::{self, BOUND, DOOMED, KEEPS, LOCKED, MULTI, OWNING, SETTLING, WATCHING, clear, is, set},
};
use crate::protocol::{Plan, ReplyStyle, Retention, Session};

/// The most bytes of commands that are held until a transaction's server is known.
const MOST_HELD: usize = 64 * 1024;
const BEGIN: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
/// `EXEC` ends a transaction even with a wrong number of arguments.
const ABORTED_BY_EXEC: &str =
    "EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command";
pub(super) const ABORTED: &str = "EXECABORT Transaction discarded because of previous errors.";

/// Plans a request of a client with a state. `None` if the state makes no difference to it.
pub(super) fn plan(
    session: &mut Session,
    request: &Request,
    message: &[u8],
    reply_style: ReplyStyle,
    out: &mut Vec<u8>,
) -> Option<Plan> {
    if is(session, LOCKED) {
        return access::reject(request, reply_style, out);
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
    if session.has_subscriptions && session.form == 0 && served != Some(Handling::Channels) {
        return match command.map_or("", |command| command.name) {
            "ping" => Some(pong(message, out)),
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
        if request.command >= TRANSACTION {
            if !session.is_idle {
                return Some(Plan::Later);
            }
            leave(session);
            return Some(Plan::Dedicated);
        }
        let stays = matches!(
            served,
            Some(Handling::Transaction | Handling::Here | Handling::Channels)
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

/// Plans a request of a client that has a lane for good. The server sees the same requests there as it would
/// without a proxy. `None` if the proxy answers.
fn owning(
    session: &mut Session,
    request: &Request,
    command: Option<&'static Command>,
    message: &[u8],
    out: &mut Vec<u8>,
) -> Option<Plan> {
    let count = Args::of(message).left();
    let is_known = command.is_some_and(|command| command.takes(count) && is_kept(command));
    if request.command >= TRANSACTION || request.command == DECLARED || is_known {
        return Some(Plan::Dedicated);
    }
    let command = command.filter(|command| command.served == Handling::Channels && command.takes(count))?;
    Some(begin(session, command, out))
}

/// Does this command of a client have to be answered by the server that keeps a connection for it?
fn is_kept(command: &Command) -> bool {
    match command.served {
        Handling::Here => matches!(
            command.name,
            "ping" | "echo" | "select" | "client|trackinginfo" | "client|getredir"
        ),
        Handling::Refused | Handling::Container | Handling::Channels => false,
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
    session.retention = Retention::Kept;
    Plan::Dedicated
}

/// The client's own lane gets its last request: whatever comes next waits for the reply.
fn leave(session: &mut Session) {
    clear(session, MULTI | DOOMED | BOUND | WATCHING);
    state::take_held(session);
    set(session, SETTLING);
}

/// Drops the state that the server may keep for the client.
fn spoil(session: &mut Session) {
    if session.retention != Retention::Clean {
        session.retention = Retention::Spoilt;
    }
    leave(session);
}

/// The `MULTI` of a transaction that has come whole, if its client is in a transaction already. The server
/// rejects it, and the commands behind it belong to the outer transaction.
pub(super) fn first_of_nested(session: &Session, request: &Request, message: &[u8]) -> Option<Request> {
    if !is(session, MULTI) {
        return None;
    }
    let mut args = Args::of(message);
    args.next();
    Some(Request {
        head: args.position() as u32,
        ..Request::new(number("multi"), request.class, args.position())
    })
}

/// Plans a request between `MULTI` and `EXEC`.
fn within(session: &mut Session, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
    if request.command == DECLARED && request.class == Class::Session {
        set(session, DOOMED);
        declared::reject(message, out);
        return Plan::Answer;
    }
    if request.command == DECLARED {
        return queue(session, out);
    }
    let mut args = Args::of(message);
    let count = args.left();
    let command = Command::of(request.command).filter(|command| command.takes(count));
    let Some(command) = command.filter(|command| command.served != Handling::Container) else {
        if request.command == number("exec") {
            append_error(ABORTED_BY_EXEC, out);
            spoil(session);
            return Plan::Answer;
        }
        set(session, DOOMED);
        here::reject_form(request.command, &mut args, message, out);
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
        _ if command.is_shareable() && is_for_any(session, request) => hold(session, message, out),
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
    match command.served {
        Handling::Each(_) | Handling::Walk | Handling::Alone | Handling::Any => true,
        Handling::Here => command.name.split('|').next() == Some("command"),
        _ => false,
    }
}

/// May any of several servers get this command of a transaction, because none has got one before and it has
/// no key?
fn is_for_any(session: &Session, request: &Request) -> bool {
    request.key.is_empty() && !session.reach.is_one && !is(session, BOUND | WATCHING)
}

/// Keeps a command of a transaction until the first key tells the server.
fn hold(session: &mut Session, message: &[u8], out: &mut Vec<u8>) {
    if state::held(session).len() + message.len() > MOST_HELD {
        set(session, DOOMED);
        return append_error(
            "ERR the commands before the first key of a transaction are too long",
            out,
        );
    }
    state::hold(session, message);
    out.extend_from_slice(b"+QUEUED\r\n");
}

/// Appends the beginning of a transaction, which the server gets before its first command.
fn append_beginning(session: &mut Session, out: &mut Vec<u8>) {
    out.extend_from_slice(BEGIN);
    out.append(&mut state::take_held(session));
}

/// Sends a command to be queued by the server. Nothing of a transaction that will be aborted is sent: the
/// server may not have its beginning, and would execute the command.
fn queue(session: &mut Session, out: &mut Vec<u8>) -> Plan {
    if is(session, DOOMED) {
        out.extend_from_slice(b"+QUEUED\r\n");
        return Plan::Answer;
    }
    if is(session, BOUND) {
        return Plan::Dedicated;
    }
    // Requests since WATCH went by another lane.
    if !session.is_idle {
        return Plan::Later;
    }
    set(session, BOUND);
    session.retention = Retention::Kept;
    append_beginning(session, out);
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
    if bound && !doomed {
        leave(session);
        return Plan::Dedicated;
    }
    if is_exec && (is(session, WATCHING) || !state::held(session).is_empty()) {
        if !session.is_idle {
            return Plan::Later;
        }
        // The server has to say whether a watched key has changed, or to execute what was held.
        append_beginning(session, out);
        leave(session);
        return Plan::Dedicated;
    }
    out.extend_from_slice(if is_exec { b"*0\r\n" } else { b"+OK\r\n" });
    spoil(session);
    Plan::Answer
}

/// Plans a command that begins or ends what a server keeps for a client, outside a transaction.
pub(super) fn begin(session: &mut Session, command: &Command, out: &mut Vec<u8>) -> Plan {
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
        _ if session.retention != Retention::Kept && !session.is_idle => return Plan::Later,
        // An earlier request on another lane may be a message to this very channel.
        (_, Handling::Channels) if !session.is_idle => return Plan::Later,
        (_, Handling::Channels) => return Plan::Subscribe,
        ("watch", _) => {
            set(session, WATCHING);
            session.retention = Retention::Kept;
            return Plan::Dedicated;
        }
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
    let ends = command >= TRANSACTION || matches!(name, "exec" | "discard" | "unwatch");
    if ends && session.retention == Retention::Kept && !is(session, KEEPS) {
        session.retention = Retention::Clean;
    }
}

/// A request that belongs to what the server keeps for the client was rejected here, and has reached no
/// server. `has_lane`: the client has the lane on which the server keeps it.
pub(super) fn rejected(session: &mut Session, command: u16, has_lane: bool) {
    let name = Command::of(command).map_or("", |command| command.name);
    match name {
        _ if is(session, MULTI) => set(session, DOOMED),
        // The server still has the transaction, or watches keys: it forgets both with the connection.
        "exec" | "discard" | "unwatch" => spoil(session),
        // There was to be a lane, and there is none.
        _ if !has_lane => {
            clear(session, BOUND | WATCHING | OWNING);
            session.retention = Retention::Clean;
        }
        _ => {}
    }
}

/// A whole transaction was rejected. It would have ended the client's watch of keys at the server.
pub(super) fn abandon(session: &mut Session) {
    if !is(session, OWNING) {
        spoil(session);
    }
}

/// Notes that a command of a transaction cannot be served with the others.
pub(super) fn doom(session: &mut Session) {
    if is(session, MULTI) {
        set(session, DOOMED);
    }
}
