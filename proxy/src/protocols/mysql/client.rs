//! The client side of MySQL.

use std::sync::Arc;

use proxima_wire::{
    message::{Outcome, Reply, Request},
    mysql::{
        Capabilities, Header, OkPacket, Status,
        sql::{self, Class, Statement},
        statement_id,
    },
};

use super::{
    Mysql, admit,
    binding::Binding,
    commands,
    error::{BAD_HANDSHAKE, Error, NO_SUCH_THREAD, UNKNOWN_COMMAND},
    found::noted,
    galera::{self, Word},
    hint::Hint,
    kill,
    offer::Offer,
    plan::{append_ok, begin, leave_loosely, prepare, prepared, set_option, statement},
    prepared::{PreparedStatement, opens_cursor},
    replay::is_read,
    reply_end::ReplyEnd,
    settings::Settings,
    state::{Client, FREE, RECENT},
    words::{begins_read_only, shows, used},
};
use crate::protocol::{
    Admission, AdmissionContext, ClientSide, Consistency, Control, Declared, Failed, Fate, Plan, Replier,
    Retention, Role, ServerAnswer, Session, StateSlot,
};

impl ClientSide for Mysql {
    fn error(&self, session: &Session, failed: &Failed<'_>, out: &mut Vec<u8>) {
        let client = Client::of(session);
        let sequence = client.map_or(1, |client| client.sequence.max(1));
        let is_in_doubt = failed.fate != Fate::Unsent && client.is_some_and(Client::may_write);
        let text = match is_in_doubt {
            true => format!("{failed}: its outcome is not known"),
            false => failed.to_string(),
        };
        Error::of(failed).append(sequence, &text, out);
    }

    fn greeting(&self, said: &[Arc<[u8]>], configured: Option<&str>, out: &mut Vec<u8>) {
        Offer::joined(said, configured).encode(out);
    }

    fn admit(
        &self,
        session: &mut Session,
        with: &AdmissionContext<'_>,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Admission {
        let door = self.door;
        session.state.change(|client: &mut Client| client.door = door);
        admit::step(session, with, bytes, out)
    }

    fn heard(
        &self,
        session: &mut Session,
        with: &AdmissionContext<'_>,
        heard: ServerAnswer<'_>,
        out: &mut Vec<u8>,
    ) -> Admission {
        admit::heard(session, with, heard, out)
    }

    fn resolve(
        &self,
        session: &Session,
        declared: Declared<'_>,
        request: &Request,
        message: &[u8],
    ) -> Option<Request> {
        let client = Client::of(session)?;
        let whole = || message.get(Header::LEN + 1..);
        let (command, statement, text) = match request.command {
            commands::UNKNOWN => {
                let statement = sql::statement(whole()?, client.mode());
                (commands::of_class(statement.class), statement, whole()?)
            }
            commands::PREPARE => (request.command, sql::statement(whole()?, client.mode()), whole()?),
            commands::EXECUTE => {
                let prepared = client.prepared.get(statement_id(message.get(Header::LEN..)?)?)?;
                // A cursor keeps the session at its connection, which has to take what comes behind.
                let statement = match opens_cursor(message) {
                    true => Statement::UNKNOWN,
                    false => prepared.statement,
                };
                (request.command, statement, &prepared.text[..])
            }
            commands::FIELD_LIST => (request.command, Statement::of(Class::Read), whole()?),
            _ => return None,
        };
        let hint = Hint::of(text);
        let consistency = hint
            .consistency
            .or(client.consistency)
            .or_else(|| {
                let words = declared.consistency?;
                words.of(self.user(session), &client.settings.schema)
            })
            .unwrap_or(client.door.consistency);
        // What the statement itself would have to wait for waits for nothing at a server.
        let waits = request.command != commands::FIELD_LIST && !shows(text);
        let may_be_old = consistency == Consistency::Strict && !waits;
        let is_for_reader = self.door.rejects_writes || hint.member == Some(Role::Reader);
        let is_read = match statement.class {
            Class::Read => !may_be_old || is_for_reader,
            // A server waits before a transaction, and its first read may come long after that.
            Class::Transaction => consistency == Consistency::Eventual && begins_read_only(text),
            _ => false,
        };
        let may_be_read = is_read && !statement.is_several && client.may_read_anywhere();
        let is_for_writer = self.door.reads_at_writer || hint.member == Some(Role::Writer);
        let goes_to_reader = self.door.rejects_writes || may_be_read && !is_for_writer;
        Some(Request {
            command,
            class: match goes_to_reader {
                true => proxima_wire::message::Class::Read,
                false => proxima_wire::message::Class::Write,
            },
            key_step: noted(statement, consistency, !waits && !is_for_reader),
            ..*request
        })
    }

    fn plan(&self, session: &mut Session, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
        if !session.is_idle {
            return Plan::Later;
        }
        leave_loosely(session, request, message);
        let is_kept = session.retention == Retention::Kept;
        // What only the last statement has left is nothing that a server must be asked to forget.
        let forgets = match is_kept {
            true => Retention::Dirty,
            false => Retention::Clean,
        };
        let Some(client) = session.state.get_mut::<Client>() else {
            return Plan::Close;
        };
        // A statement of several packets is answered behind them. More than two are not known yet.
        client.sequence = if request.is_open { 2 } else { 1 };
        match request.command {
            commands::QUIT => Plan::Close,
            commands::PING if !is_kept => {
                append_ok(client, out);
                Plan::Answer
            }
            commands::RESET_CONNECTION => {
                let schema: &[u8] = match client.bindings.reason {
                    // Its name would mean another schema in the character set of the login.
                    Some(Binding::Schema) => b"",
                    _ => &client.settings.schema,
                };
                client.begin_anew(Settings::of_schema(schema));
                append_ok(client, out);
                session.retention = forgets;
                Plan::Answer
            }
            commands::CHANGE_USER => match admit::change_user(client, message) {
                true => {
                    // The server may keep the state of the user that the client was before.
                    session.retention = forgets;
                    Plan::Admit
                }
                false => {
                    BAD_HANDSHAKE.append(1, "Bad handshake", out);
                    Plan::CloseAsFailed
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
        let Some((number, ending)) = kill::target(sql::without_comments(text)) else {
            return NO_SUCH_THREAD.append(1, "Unknown thread id", out);
        };
        match control.cancel(number, ending) {
            true => OkPacket {
                status: Status::AUTOCOMMIT,
                ..OkPacket::default()
            }
            .append(Capabilities::PROTOCOL_41, 1, out),
            false => NO_SUCH_THREAD.append(1, &format!("Unknown thread id: {number}"), out),
        }
    }

    fn begins(&self, session: &mut Session, by: &Replier<'_>, command: u16) {
        if let Some(client) = session.state.get_mut::<Client>() {
            client.see(by, command, None);
        }
    }

    fn answered(&self, session: &mut Session, by: &Replier<'_>, command: u16, reply: &Reply, bytes: &[u8]) {
        let Some(client) = session.state.get_mut::<Client>() else {
            return;
        };
        if commands::goes_before(command) {
            return;
        }
        let end = ReplyEnd {
            bytes,
            last: reply.trailer as usize,
            capabilities: client.agreed(),
        };
        client.see(by, command, Some(&end));
        // Another server is asked, and what this one has left is of no use.
        let may_go_on = client.is_read && !client.door.rejects_writes;
        client.goes_again =
            reply.outcome.is_error() && galera::may_go_again(client, Word(by.noted.get()), bytes);
        if client.goes_again {
            // Without autocommit the statement may have locked something before it failed.
            session.retention = match client.has_autocommit() {
                true => Retention::Clean,
                false => Retention::Spoilt,
            };
            return;
        }
        // Nobody else may find it there, and the session has no use for it where nothing is written.
        client.changes_session |= may_go_on && client.is_changed_by(&end);
        client.has_changed_session = client.changes_session;
        if client.changes_session {
            if !end.goes_on() {
                (client.changes_session, client.is_read) = (false, false);
            }
            // It is not known what the server would have to forget.
            session.retention = Retention::Spoilt;
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
                    client.prepared.add(PreparedStatement {
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

    /// A prepared statement that failed to be prepared does not exist.
    fn rejected(&self, session: &mut Session, command: u16, has_lane: bool) -> bool {
        if let Some(client) = session.state.get_mut::<Client>() {
            if command == commands::PREPARE {
                client.preparing = None;
            }
            if !has_lane && client.is_loose() && !client.has_transaction() {
                session.retention = Retention::Clean;
            }
        }
        true
    }

    /// A session that was only loosely tied to its connection has lost there what the statement before has
    /// left.
    fn outlives(&self, session: &mut Session, _: &StateSlot) -> bool {
        let client = session.state.get_mut::<Client>();
        client.is_some_and(|client| {
            let outlives = client.is_loose() && !client.has_transaction();
            client.bindings.residue = false;
            client.bindings.id = 0;
            outlives
        })
    }

    fn user<'a>(&self, session: &'a Session) -> &'a [u8] {
        // A question about a login is asked as the user that the client wants to be.
        if let Some(pending) = Client::of(session).and_then(|client| client.pending.as_ref()) {
            return &pending.claim.user;
        }
        let identity = Client::of(session).and_then(|client| client.identity.as_ref());
        identity.map_or(b"", |identity| &identity.user)
    }

    fn cached_login(&self, session: &Session) -> u64 {
        let identity = Client::of(session).and_then(|client| client.identity.as_ref());
        identity.map_or(0, |identity| identity.number)
    }

    fn schema<'a>(&self, session: &'a Session, message: &'a [u8]) -> &'a [u8] {
        let own = || {
            Client::of(session).map_or(&b""[..], |client| match &client.pending {
                Some(pending) => &pending.claim.schema,
                None => &client.settings.schema,
            })
        };
        used(message).unwrap_or_else(own)
    }

    fn is_in_transaction(&self, session: &Session) -> bool {
        Client::of(session).is_some_and(Client::has_transaction)
    }

    fn session_state(&self, session: &Session) -> Option<&'static str> {
        let client = Client::of(session).filter(|client| client.pending.is_none())?;
        match client.binds()? {
            FREE if session.retention.is_passing() => Some(RECENT),
            state => Some(state),
        }
    }

    fn silenced(&self, command: u16, _: Outcome) -> bool {
        matches!(command, commands::CLOSE | commands::LONG_DATA)
    }
}

/// Decides for how long the connection stays the session's, behind a reply.
fn settle(session: &mut Session) {
    let Some(client) = session.state.get_mut::<Client>() else {
        return;
    };
    if !client.is_loose() || client.has_transaction() {
        session.retention = Retention::Kept;
        return;
    }
    session.retention = match client.bindings.residue {
        true if client.bindings.is_certain => Retention::Brief,
        true if client.bindings.is_firm() => Retention::Firm,
        true => Retention::Loose,
        false => Retention::Clean,
    };
    let has_schema = !client.settings.schema.is_empty();
    if let Some(identity) = client
        .identity
        .as_mut()
        .filter(|identity| identity.has_schema != has_schema)
    {
        identity.has_schema = has_schema;
        session.login = identity.encode();
        session.retention = Retention::Moved;
    }
}
