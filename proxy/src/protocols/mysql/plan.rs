//! Plans for a client's statements.

use std::sync::Arc;

use proxima_wire::{
    message::Request,
    mysql::{
        Capabilities, EofPacket, Header, OkPacket, Status,
        sql::{self, Class, Mode, Statement},
        statement_id,
    },
};

use super::{
    binding::Binding,
    commands,
    connection_id::with_connection_id,
    error::{
        NO_CURSOR, NO_SUCH_STATEMENT, OTHER, READ_ONLY, READ_ONLY_TEXT, TOO_MANY_STATEMENTS, UNKNOWN_COMMAND,
        WRONG_VALUE,
    },
    found::found,
    kill,
    own_variable::OwnVariable,
    prepared::{MOST, PreparedStatement},
    replay::is_read,
    state::{Client, asks_for_residue},
    tracking::Tracking,
    words::{SHOWS, begins_with, has_word, is_for_next_transaction, may_read_table, releases},
};
use crate::protocol::{Plan, Retention, Session};

/// The status bits of a session, not of a statement.
const OF_SESSION: Status = Status(
    Status::IN_TRANSACTION.0
        | Status::AUTOCOMMIT.0
        | Status::NO_BACKSLASH_ESCAPES.0
        | Status::IN_READ_ONLY_TRANSACTION.0
        | Status::ANSI_QUOTES.0,
);

/// Plans a statement.
pub(super) fn statement(session: &mut Session, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
    let Some(client) = session.state.get_mut::<Client>() else {
        return Plan::Close;
    };
    let text = message.get(Header::LEN + 1..).unwrap_or_default();
    let statement = found(request);
    if statement.class == Class::Admin && kill::target(sql::without_comments(text)).is_some() {
        return Plan::Consult;
    }
    if client.door.rejects_writes && writes(client, statement, text) {
        READ_ONLY.append(1, READ_ONLY_TEXT, out);
        return Plan::Answer;
    }
    if statement.class == Class::Transaction && releases(text) {
        client.keep(Binding::Release);
    }
    if may_set(statement, text) && set_own_variable(client, text, out) {
        return Plan::Answer;
    }
    let tracking = tracking(client, statement, text);
    if tracking == Tracking::Alone {
        append_ok(client, out);
        return Plan::Answer;
    }
    let instead = match tracking {
        Tracking::Rest(rest) => Some(rest),
        _ => own_number(statement, text, (client.mode(), session.id)),
    };
    let plan = begin(session, statement, is_read(request), text);
    if let Some(client) = session.state.get_mut::<Client>() {
        client.instead = instead;
    }
    if is_for_next_transaction(statement, text)
        && let Some(client) = session.state.get_mut::<Client>()
    {
        client.bindings.pends = true;
    }
    plan
}

/// The text in place of one that selects the number of the client's connection, which is this one.
fn own_number(statement: Statement, text: &[u8], (mode, number): (Mode, u64)) -> Option<Vec<u8>> {
    let asks = statement.reads_session && statement.class == Class::Session && !statement.is_several;
    asks.then(|| with_connection_id(text, mode, number))?
}

/// May this text be a SET?
fn may_set(statement: Statement, text: &[u8]) -> bool {
    match statement.class {
        Class::Session => begins_with(text, &["set", "/*"]),
        Class::Unknown => true,
        _ => statement.is_several,
    }
}

/// Takes the freshness that a text asks for, and answers it. Returns `false` if the text asks for none.
fn set_own_variable(client: &mut Client, text: &[u8], out: &mut Vec<u8>) -> bool {
    match OwnVariable::of(text, client.mode()) {
        OwnVariable::Untouched => return false,
        OwnVariable::Set(consistency) => {
            client.consistency = consistency;
            append_ok(client, out);
        }
        OwnVariable::Wrong(value) => {
            let text = format!("Variable 'proxima_consistency' can't be set to the value of '{value}'");
            WRONG_VALUE.append(1, &text, out);
        }
        OwnVariable::NotAlone => {
            OTHER.append(
                1,
                "SET @proxima_consistency must stand in a statement of its own",
                out,
            );
        }
    }
    true
}

/// The plan for a text that may change what the proxy is told of the session. One that cannot be read binds
/// the session.
fn tracking(client: &mut Client, statement: Statement, text: &[u8]) -> Tracking {
    if !may_set(statement, text) {
        return Tracking::Untouched;
    }
    let tracking = Tracking::of(text, client.mode());
    if tracking == Tracking::Unclear {
        client.keep(Binding::Variable);
    }
    tracking
}

/// The connection on which the statement before has left something is given back, unless this request asks
/// for that. A reader is not asked for what writes.
pub(super) fn leave_loosely(session: &mut Session, request: &Request, message: &[u8]) {
    if session.retention == Retention::Clean
        && let Some(client) = session.state.get_mut::<Client>()
    {
        client.bindings.id = 0;
    }
    let Some(client) = session
        .state
        .get_mut::<Client>()
        .filter(|_| session.retention.is_passing())
    else {
        return;
    };
    let is_text = commands::is_statement(request.command) || request.command == commands::EXECUTE;
    let statement = found(request);
    let asks = is_text && statement.reads_session;
    // What reads tables beside that must see what others have written, which a reader may lack.
    let stays = |client: &Client| {
        let text = client.text(request, message);
        !client.is_at_reader || asks_for_residue(statement) && !may_read_table(text)
    };
    if asks && stays(client) {
        return;
    }
    // What goes where the id was generated finds it there, also one that its client has chosen.
    if is_text && client.bindings.id > 0 && !client.is_at_reader && !is_read(request) {
        session.follows_tree = true;
        return;
    }
    client.bindings.residue = false;
    (session.retention, session.leaves_lane) = (Retention::Clean, true);
}

/// A statement leaves.
pub(super) fn begin(session: &mut Session, statement: Statement, is_read: bool, text: &[u8]) -> Plan {
    let has_lane = session.has_lane();
    let Some(client) = session.state.get_mut::<Client>() else {
        return Plan::Close;
    };
    client.begin(statement, text);
    client.is_read = is_read;
    if !has_lane {
        client.is_at_reader = is_read;
    }
    client.seen.arrive();
    Plan::Dedicated
}

/// Plans COM_STMT_PREPARE. Any server can describe the statement.
pub(super) fn prepare(session: &mut Session, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
    let number = session.id;
    let Some(client) = session.state.get_mut::<Client>() else {
        return Plan::Close;
    };
    let text = message.get(Header::LEN + 1..).unwrap_or_default();
    let statement = found(request);
    if client.door.rejects_writes && writes(client, statement, text) {
        READ_ONLY.append(1, READ_ONLY_TEXT, out);
        return Plan::Answer;
    }
    if request.body > 0 {
        OTHER.append(
            client.sequence,
            "the proxy prepares no text of more than 64 KiB",
            out,
        );
        return Plan::Answer;
    }
    if !client.prepared.has_room(text) {
        let text =
            format!("Can't create more than max_prepared_stmt_count statements (current value: {MOST})");
        TOO_MANY_STATEMENTS.append(1, &text, out);
        return Plan::Answer;
    }
    let instead = own_number(statement, text, (client.mode(), number));
    client.preparing = Some(PreparedStatement {
        text: instead.as_deref().unwrap_or(text).into(),
        settings: Arc::new(client.settings.clone()),
        statement,
        parameters: 0,
        types: Vec::new(),
        is_open: false,
    });
    let plan = begin(session, Statement::of(Class::Session), is_read(request), b"");
    if let Some(client) = session.state.get_mut::<Client>() {
        // It does nothing.
        client.is_whole = true;
    }
    plan
}

/// Plans a request about a prepared statement.
pub(super) fn prepared(session: &mut Session, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
    let has_lane = session.has_lane();
    let Some(client) = session.state.get_mut::<Client>() else {
        return Plan::Close;
    };
    let number = statement_id(message.get(Header::LEN..).unwrap_or_default()).unwrap_or(0);
    let Some(one) = client.prepared.get(number) else {
        if !request.is_unanswered {
            let name = match request.command {
                commands::EXECUTE => "mysqld_stmt_execute",
                commands::FETCH => "mysqld_stmt_fetch",
                _ => "mysqld_stmt_reset",
            };
            let text = format!("Unknown prepared statement handler ({number}) given to {name}");
            NO_SUCH_STATEMENT.append(client.sequence, &text, out);
        }
        return Plan::Answer;
    };
    let (statement, is_open, prepared_text) = (one.statement, one.is_open, Arc::clone(&one.text));
    match request.command {
        commands::EXECUTE => {
            client.prepared.note_execute(number, message);
            client.executing = number;
            if tracking(client, statement, &prepared_text) != Tracking::Untouched {
                client.keep(Binding::Variable);
            }
            begin(session, statement, is_read(request), &prepared_text)
        }
        // The connection keeps the state that it has.
        commands::FETCH if has_lane => Plan::Dedicated,
        commands::LONG_DATA => {
            client.prepared.set_open(number, true);
            session.retention = Retention::Kept;
            Plan::Dedicated
        }
        commands::RESET_STATEMENT if has_lane && is_open => {
            client.prepared.set_open(number, false);
            Plan::Dedicated
        }
        commands::RESET_STATEMENT => {
            append_ok(client, out);
            Plan::Answer
        }
        commands::CLOSE => {
            // The server closes it when another one needs its place; a cursor stays with its connection.
            if is_open {
                client.keep(Binding::Cursor);
            }
            client.prepared.remove(number);
            Plan::Answer
        }
        _ => {
            let text = format!("The statement ({number}) has no open cursor");
            NO_CURSOR.append(1, &text, out);
            Plan::Answer
        }
    }
}

/// Does this statement write, or may it open the session for writes, as far as its text shows it? What a
/// single read hides is for its server to reject.
fn writes(client: &Client, statement: Statement, text: &[u8]) -> bool {
    match statement.class {
        // The second of two statements may write although the first hides it.
        _ if statement.is_several => true,
        Class::Read => false,
        Class::Write | Class::Ddl | Class::LockingRead => true,
        // A transaction that only reads is no longer one after these.
        Class::Session | Class::Transaction => has_word(text, b"write") || has_word(text, b"read_only"),
        Class::Admin => !begins_with(text, &SHOWS),
        // A text that is too long to be read, or in a character set that hides quotes.
        Class::Unknown => {
            client.capabilities.has(Capabilities::MULTI_STATEMENTS)
                || !begins_with(text, &["select", "with", "("])
        }
    }
}

/// COM_SET_OPTION: whether a text may have several statements.
pub(super) fn set_option(session: &mut Session, message: &[u8], out: &mut Vec<u8>) -> Plan {
    let has_lane = session.has_lane();
    let Some(client) = session.state.get_mut::<Client>() else {
        return Plan::Close;
    };
    let option = message.get(Header::LEN + 1..Header::LEN + 3);
    client.capabilities = match option {
        Some([0, 0]) if client.door.rejects_writes => client.capabilities,
        Some([0, 0]) => client.capabilities.with(Capabilities::MULTI_STATEMENTS),
        Some([1, 0]) => client.capabilities.without(Capabilities::MULTI_STATEMENTS),
        _ => {
            UNKNOWN_COMMAND.append(1, "Unknown command", out);
            return Plan::Answer;
        }
    };
    if has_lane {
        client.keep(Binding::ConnectionOption);
        client.begin(Statement::UNKNOWN, b"");
        return Plan::Dedicated;
    }
    if let Some(identity) = &mut client.identity {
        identity.capabilities = client.capabilities;
        session.login = identity.encode();
    }
    let status = Status(client.status.0 & OF_SESSION.0);
    match client.capabilities.has(Capabilities::DEPRECATE_EOF) {
        true => OkPacket {
            status,
            is_eof: true,
            ..OkPacket::default()
        }
        .append(client.capabilities, 1, out),
        false => EofPacket { warnings: 0, status }.append(1, out),
    }
    Plan::Answer
}

/// Appends that a command is done which no server has seen.
pub(super) fn append_ok(client: &Client, out: &mut Vec<u8>) {
    OkPacket {
        // The server's status bits about its last statement do not hold for this one.
        status: Status(client.status.0 & OF_SESSION.0),
        ..OkPacket::default()
    }
    .append(client.capabilities, 1, out);
}
