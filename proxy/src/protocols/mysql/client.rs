//! What MySQL does for its clients.

use std::sync::Arc;

use proxima_wire::{
    message::{Outcome, Reply, Request},
    mysql::{
        Capabilities, EofPacket, Header, OkPacket, Status,
        sql::{self, Class, Statement},
        statement_id,
    },
};

use super::{
    Mysql, admit, commands,
    error::{
        BAD_HANDSHAKE, Error, NO_CURSOR, NO_SUCH_STATEMENT, NO_SUCH_THREAD, OTHER, READ_ONLY, READ_ONLY_TEXT,
        TOO_MANY_STATEMENTS, UNKNOWN_COMMAND,
    },
    galera, kill,
    offer::Offer,
    prepared::{MOST, Prepared, PreparedStatements, opens_cursor},
    replay::is_read,
    settings::Settings,
    state::{Client, Kept, asks_for_residue, begins_with},
    told::End,
};
use crate::protocol::{
    Admission, Admitting, ClientSide, Control, DeclaredCommands, Failed, Lease, Plan, Session, StateSlot,
};

/// What a server says of a session, and not of a statement.
const OF_SESSION: Status = Status(
    Status::IN_TRANSACTION.0
        | Status::AUTOCOMMIT.0
        | Status::NO_BACKSLASH_ESCAPES.0
        | Status::IN_READ_ONLY_TRANSACTION.0
        | Status::ANSI_QUOTES.0,
);

/// What was found in a text, as a request carries it: flags, and above them the number of the class.
const READS_SESSION: u32 = 1;
const CHANGES_SESSION: u32 = 2;
const IS_SEVERAL: u32 = 4;
const WAS_READ: u32 = 8;
const CLASS: u32 = 8;

impl ClientSide for Mysql {
    fn error(&self, session: &Session, failed: &Failed<'_>, out: &mut Vec<u8>) {
        let sequence = Client::of(session).map_or(1, |client| client.sequence.max(1));
        Error::of(failed).append(sequence, &failed.to_string(), out);
    }

    fn greeting(&self, said: &[Arc<[u8]>], configured: Option<&str>, out: &mut Vec<u8>) {
        Offer::joined(said, configured).encode(out);
    }

    fn admit(
        &self,
        session: &mut Session,
        with: &Admitting<'_>,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Admission {
        let door = self.door;
        session.state.change(|client: &mut Client| client.door = door);
        admit::step(session, with, bytes, out)
    }

    fn resolve(
        &self,
        session: &Session,
        _: &DeclaredCommands,
        request: &Request,
        message: &[u8],
    ) -> Option<Request> {
        let client = Client::of(session)?;
        let (command, statement) = match request.command {
            commands::UNKNOWN => {
                let text = message.get(Header::LEN + 1..)?;
                let statement = sql::statement(text, client.mode());
                (commands::of_class(statement.class), statement)
            }
            commands::PREPARE => {
                let text = message.get(Header::LEN + 1..)?;
                (request.command, sql::statement(text, client.mode()))
            }
            // A cursor keeps the session at its connection, which has to take what comes behind.
            commands::EXECUTE if opens_cursor(message) => (request.command, Statement::UNKNOWN),
            commands::EXECUTE => {
                let number = statement_id(message.get(Header::LEN..)?)?;
                (request.command, client.prepared.get(number)?.statement)
            }
            commands::FIELD_LIST => (request.command, Statement::of(Class::Read)),
            _ => return None,
        };
        let text = match request.command {
            commands::EXECUTE => {
                &client
                    .prepared
                    .get(statement_id(message.get(Header::LEN..)?)?)?
                    .text
            }
            _ => message.get(Header::LEN + 1..)?,
        };
        // What waits for nothing would be stale at a reader.
        let waits = request.command != commands::FIELD_LIST && !shows(text);
        let is_fresh = waits || self.door.is_eventual;
        let is_read = statement.class == Class::Read && !statement.is_several && client.may_read_anywhere();
        let goes_to_reader = self.door.rejects_writes || is_read && is_fresh && !self.door.reads_at_writer;
        Some(Request {
            command,
            class: match goes_to_reader {
                true => proxima_wire::message::Class::Read,
                false => proxima_wire::message::Class::Write,
            },
            key_step: noted(statement),
            ..*request
        })
    }

    fn plan(&self, session: &mut Session, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
        if !session.is_idle {
            return Plan::Later;
        }
        leave_loosely(session, request);
        let has_lane = matches!(session.lease, Lease::Kept | Lease::Loose);
        let is_kept = session.lease == Lease::Kept;
        let Some(client) = session.state.get_mut::<Client>() else {
            return Plan::Close;
        };
        // A statement of several packets is answered behind them. Of more than two nobody knows yet.
        client.sequence = if request.is_open { 2 } else { 1 };
        match request.command {
            commands::QUIT => Plan::Close,
            commands::PING if !is_kept => {
                append_ok(client, out);
                Plan::Answer
            }
            commands::RESET_CONNECTION => {
                client.settings = Settings::of_schema(&client.settings.schema);
                (client.kept, client.status, client.last_id) = (Kept::default(), Status::AUTOCOMMIT, 0);
                client.prepared = PreparedStatements::default();
                append_ok(client, out);
                if has_lane {
                    session.lease = Lease::Spoilt;
                }
                Plan::Answer
            }
            commands::CHANGE_USER => match admit::change_user(client, message) {
                true => {
                    // What the server keeps is that of the one who the client was.
                    if has_lane {
                        session.lease = Lease::Spoilt;
                    }
                    Plan::Admit
                }
                false => {
                    BAD_HANDSHAKE.append(1, "Bad handshake", out);
                    Plan::Reject
                }
            },
            commands::SET_OPTION => set_option(session, message, out),
            commands::REJECTED | commands::PROCESS_KILL => {
                let first = message.get(Header::LEN).copied().unwrap_or_default();
                let name = commands::manual_name(first);
                UNKNOWN_COMMAND.append(1, &format!("{name} is not served by the proxy"), out);
                Plan::Answer
            }
            command if commands::is_statement(command) => statement(session, request, message, out),
            commands::PREPARE => prepare(session, request, message, out),
            command if commands::names_prepared(command) => prepared(session, request, message, out),
            // They change the schema, or nothing.
            _ => begin(session, Statement::of(Class::Session), is_read(request), b""),
        }
    }

    fn consulted(&self, message: &[u8], control: &dyn Control, out: &mut Vec<u8>) {
        let text = message.get(Header::LEN + 1..).unwrap_or_default();
        let number = kill::target(sql::without_comments(text)).unwrap_or_default();
        match control.cancel(number) {
            true => OkPacket {
                status: Status::AUTOCOMMIT,
                ..OkPacket::default()
            }
            .append(Capabilities::PROTOCOL_41, 1, out),
            false => NO_SUCH_THREAD.append(1, &format!("Unknown thread id: {number}"), out),
        }
    }

    fn answered(&self, session: &mut Session, command: u16, reply: &Reply, bytes: &[u8]) {
        let Some(client) = session.state.get_mut::<Client>() else {
            return;
        };
        if commands::goes_before(command) {
            return;
        }
        // Another server is asked, and what this one has left is of no use.
        let may_go_on = client.is_read && !client.door.rejects_writes;
        if may_go_on && reply.outcome.is_error() && galera::leads_on(bytes) {
            session.lease = Lease::Clean;
            return;
        }
        let end = End {
            bytes,
            last: reply.trailer as usize,
            capabilities: client.agreed(),
        };
        // Nobody else may find it there, and the session has no use for it where nothing is written.
        client.strays |= may_go_on && client.is_changed_by(&end);
        client.has_strayed = client.strays;
        if client.strays {
            if !end.goes_on() {
                (client.strays, client.is_read) = (false, false);
            }
            session.lease = Lease::Spoilt;
            return;
        }
        match command {
            commands::EXECUTE => {
                if !end.has_cursor() {
                    client.prepared.set_open(client.executing, false);
                }
                client.note(&end);
            }
            commands::PREPARE if reply.outcome.is_error() => client.preparing = None,
            commands::PREPARE => {
                if let Some(preparing) = client.preparing.take() {
                    let parameters = bytes.get(11..13).and_then(|bytes| bytes.try_into().ok());
                    client.prepared.add(Prepared {
                        parameters: parameters.map_or(0, u16::from_le_bytes),
                        ..preparing
                    });
                }
            }
            commands::STATISTICS => {}
            _ => client.note(&end),
        }
        settle(session);
    }

    /// A prepared statement that was not prepared is none.
    fn refused(&self, session: &mut Session, command: u16, has_lane: bool) -> bool {
        if let Some(client) = session.state.get_mut::<Client>() {
            if command == commands::PREPARE {
                client.preparing = None;
            }
            if !has_lane && client.is_loose() && !client.is_in_transaction() {
                session.lease = Lease::Clean;
            }
        }
        true
    }

    /// What a session that was only loosely tied to its connection has lost there is what the statement before
    /// has left.
    fn outlives(&self, session: &mut Session, _: &StateSlot) -> bool {
        let client = session.state.get_mut::<Client>();
        client.is_some_and(|client| {
            let outlives = client.is_loose() && !client.status.has(Status::IN_TRANSACTION);
            client.kept.residue = false;
            outlives
        })
    }

    fn silenced(&self, command: u16, _: Outcome) -> bool {
        matches!(command, commands::CLOSE | commands::LONG_DATA)
    }
}

/// What was found in a text, as a request carries it.
fn noted(statement: Statement) -> u32 {
    let flag = |is: bool, flag: u32| if is { flag } else { 0 };
    WAS_READ
        | flag(statement.reads_session, READS_SESSION)
        | flag(statement.changes_session, CHANGES_SESSION)
        | flag(statement.is_several, IS_SEVERAL)
        | (u32::from(commands::of_class(statement.class)) << CLASS)
}

/// What was found in the text of this request.
fn found(request: &Request) -> Statement {
    let has = |flag: u32| request.key_step & flag != 0;
    let class = Class::ALL.get((request.key_step >> CLASS) as usize);
    let mut statement = match request.key_step {
        // A text that is passed on as it comes is not read.
        0 => Statement::UNKNOWN,
        _ => Statement::of(class.map_or(Class::Unknown, |&(class, _)| class)),
    };
    statement.reads_session = has(READS_SESSION);
    statement.changes_session = has(CHANGES_SESSION);
    statement.is_several = has(IS_SEVERAL);
    statement
}

/// Plans a statement.
fn statement(session: &mut Session, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
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
        client.keep("the session ends with its transaction");
    }
    let plan = begin(session, statement, is_read(request), text);
    if is_for_next_transaction(statement, text)
        && let Some(client) = session.state.get_mut::<Client>()
    {
        client.kept.pends = true;
    }
    plan
}

/// The connection on which the statement before has left something is given back, unless this request asks for
/// that. A reader is not asked for what writes.
fn leave_loosely(session: &mut Session, request: &Request) {
    let Some(client) = session
        .state
        .get_mut::<Client>()
        .filter(|_| session.lease == Lease::Loose)
    else {
        return;
    };
    let is_text = commands::is_statement(request.command) || request.command == commands::EXECUTE;
    let statement = found(request);
    let asks = is_text && statement.reads_session;
    if asks && (asks_for_residue(statement) || !client.is_read) {
        return;
    }
    client.kept.residue = false;
    (session.lease, session.leaves_lane) = (Lease::Clean, true);
}

/// A statement leaves.
fn begin(session: &mut Session, statement: Statement, is_read: bool, text: &[u8]) -> Plan {
    let Some(client) = session.state.get_mut::<Client>() else {
        return Plan::Close;
    };
    client.begin(statement, text);
    client.is_read = is_read;
    Plan::Dedicated
}

/// Plans COM_STMT_PREPARE. Any server tells what the statement is like.
fn prepare(session: &mut Session, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
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
    client.preparing = Some(Prepared {
        text: text.into(),
        settings: Arc::new(client.settings.clone()),
        statement,
        parameters: 0,
        types: Vec::new(),
        is_open: false,
    });
    begin(session, Statement::of(Class::Session), is_read(request), b"")
}

/// Plans what is about a prepared statement.
fn prepared(session: &mut Session, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
    let has_lane = matches!(session.lease, Lease::Kept | Lease::Loose);
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
            begin(session, statement, is_read(request), &prepared_text)
        }
        // The connection goes on with what it has.
        commands::FETCH if has_lane => Plan::Dedicated,
        commands::LONG_DATA => {
            client.prepared.set_open(number, true);
            session.lease = Lease::Kept;
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
                client.keep("a prepared statement was closed with its cursor");
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

/// Decides for how long the connection stays the session's, behind a reply.
fn settle(session: &mut Session) {
    let Some(client) = session.state.get_mut::<Client>() else {
        return;
    };
    if !client.is_loose() || client.is_in_transaction() {
        session.lease = Lease::Kept;
        return;
    }
    session.lease = if client.kept.residue {
        Lease::Loose
    } else {
        Lease::Clean
    };
    let has_schema = !client.settings.schema.is_empty();
    if let Some(who) = client.who.as_mut().filter(|who| who.has_schema != has_schema) {
        who.has_schema = has_schema;
        session.login = who.encode();
        session.lease = Lease::Moved;
    }
}

/// Does this statement write, or may it open the session for writes, as far as its text shows it? What a single
/// read hides is for its server to reject.
fn writes(client: &Client, statement: Statement, text: &[u8]) -> bool {
    match statement.class {
        // The second of two statements may write behind what the first has hidden.
        _ if statement.is_several => true,
        Class::Read => false,
        Class::Write | Class::Ddl | Class::LockingRead => true,
        // A transaction that only reads is no longer one after these.
        Class::Session | Class::Transaction => has_word(text, b"write") || has_word(text, b"read_only"),
        Class::Admin => !begins_with(text, &SHOWS),
        // What is too long to be read, or in a character set that hides quotes.
        Class::Unknown => {
            client.capabilities.has(Capabilities::MULTI_STATEMENTS)
                || !begins_with(text, &["select", "with", "("])
        }
    }
}

/// Does COMMIT or ROLLBACK end the session as well?
fn releases(text: &[u8]) -> bool {
    let words: Vec<&[u8]> = text
        .split(|byte| !byte.is_ascii_alphabetic())
        .filter(|word| !word.is_empty())
        .collect();
    let is = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    words
        .iter()
        .enumerate()
        .any(|(at, word)| at > 0 && is(word, "release") && !is(words[at - 1], "no"))
}

/// Is it `SET TRANSACTION`, which counts for the next transaction alone?
fn is_for_next_transaction(statement: Statement, text: &[u8]) -> bool {
    statement.class == Class::Session && {
        let mut words = sql::without_comments(text)
            .split(|byte| !byte.is_ascii_alphabetic())
            .filter(|word| !word.is_empty());
        let is = |word: Option<&[u8]>, name: &str| {
            word.is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
        };
        is(words.next(), "set") && is(words.next(), "transaction")
    }
}

/// Does the text begin with a word that asks for no data, and so waits for nothing? A comment that some servers
/// execute may hide one.
fn shows(text: &[u8]) -> bool {
    begins_with(text, &SHOWS) || begins_with(text, &["/*"])
}

/// Words that ask for what tables, servers or statements are, and wait for nothing.
const SHOWS: [&str; 4] = ["show", "desc", "explain", "help"];

/// Does this stand anywhere in the text, in any case?
pub(super) fn has_word(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len())
        .any(|part| part.eq_ignore_ascii_case(word))
}

/// COM_SET_OPTION: whether a text may have several statements.
fn set_option(session: &mut Session, message: &[u8], out: &mut Vec<u8>) -> Plan {
    let has_lane = matches!(session.lease, Lease::Kept | Lease::Loose);
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
        client.keep("an option of the connection");
        client.begin(Statement::UNKNOWN, b"");
        return Plan::Dedicated;
    }
    if let Some(who) = &mut client.who {
        who.capabilities = client.capabilities;
        session.login = who.encode();
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

fn append_ok(client: &Client, out: &mut Vec<u8>) {
    OkPacket {
        // What a server has said of its last statement is not said of this one.
        status: Status(client.status.0 & OF_SESSION.0),
        ..OkPacket::default()
    }
    .append(client.capabilities, 1, out);
}
