//! The requests before a statement that give its server the state of the session.
//!
//! Invariant: no statement runs in another state than its session's. What a server has never taken on a
//! connection is awaited, and if it does not take it, its error is the statement's reply.

use std::{mem, sync::Arc};

use proxima_wire::{
    message::{Class, Outcome, Reply, Request},
    mysql::{Header, append_packet, statement_id},
};

use super::{
    commands,
    description::Description,
    error::NO_SUCH_STATEMENT,
    lane::{Lane, Reading, Reports, UNKNOWN_ID},
    prepared::{PreparedStatement, append_execute},
    reply_end::ReplyEnd,
    reports::shows_reports,
    settings::{COLLATION, CONNECTION, Settings, append_value},
    state::Client,
    words::used,
};
use crate::protocol::{BEST, Outgoing, Session, WriteResult};

/// The variables that NAMES sets.
const NAMES: [&[u8]; 4] = [
    b"character_set_client",
    b"character_set_results",
    CONNECTION,
    COLLATION,
];

/// No server reports this value.
const NOT_KNOWN: &[u8] = b"\0";

impl Lane {
    /// The fit of the connection for this session.
    pub(super) fn suits(&self, session: &Session, client: &Client) -> u32 {
        let has_variables = self.settings.has_variables_of(&client.settings);
        let has_schema = self.settings.schema == client.settings.schema;
        match (self.session == client.life(session), has_variables, has_schema) {
            (true, true, true) => BEST,
            (is_own, ..) => u32::from(is_own) << 2 | u32::from(has_variables) << 1 | u32::from(has_schema),
        }
    }

    /// Writes the requests that go before a request of this client, and the request.
    pub(super) fn write(
        &mut self,
        session: &Session,
        client: &Client,
        (request, message): (&Request, &[u8]),
        reading: Reading,
        out: &mut Outgoing<'_>,
    ) -> WriteResult {
        let (command, is_open) = (request.command, request.is_open);
        if let Some(failed) = self.failed.take() {
            out.answer().extend_from_slice(&failed);
            return WriteResult::Answered(Reply::new(Outcome::ClientError, failed.len()));
        }
        if command == commands::PREPARE
            && let Some(preparing) = &client.preparing
            && let Some(known) = self.statements.description(preparing, self.schema_changes.get())
        {
            return WriteResult::Known(append_description(known, client.prepared.next(), out.answer()));
        }
        let life = client.life(session);
        if self.resets && self.session != 0 && self.session != life {
            self.reset_before(out);
        }
        // What such a statement asks for would be lost, and it changes nothing.
        let asks_on = self.session == life && self.reports == Reports::Off && client.only_asks;
        if self.reports != Reports::On && !asks_on {
            self.ask_reports(out);
            return WriteResult::Waits;
        }
        let number = match commands::names_prepared(command) {
            true => {
                let Some(prepared) =
                    statement_id(&message[Header::LEN..]).and_then(|id| client.prepared.get(id))
                else {
                    return unknown(out);
                };
                if self.statements.get(prepared).is_none() {
                    // If it is prepared in a new state, the proxy awaits that state first.
                    if self.bring(&prepared.settings, Reading::default(), true, out) {
                        return WriteResult::Waits;
                    }
                    return self.prepare(prepared, out);
                }
                Some(prepared)
            }
            false => None,
        };
        // Their replies have no place for the error of what went before.
        let awaits = matches!(command, commands::PREPARE | commands::STATISTICS);
        // The schema that the session leaves may not exist at this server.
        let leaves_schema = self.settings.schema != client.settings.schema && used(message).is_some();
        let is_new = match leaves_schema {
            true => self.change_variables(&client.settings, reading, awaits, out),
            false => self.bring(&client.settings, reading, awaits, out),
        };
        self.session = life;
        if commands::is_statement(command) || command == commands::EXECUTE {
            self.leave_nothing_of_others(client, out);
        }
        if is_new {
            return WriteResult::Waits;
        }
        let text = number.map_or_else(
            || message.get(Header::LEN + 1..),
            |prepared| Some(&prepared.text[..]),
        );
        if shows_reports(client.statement, text.unwrap_or_default()) {
            self.hide_reports(out);
        }
        self.first_number = if is_open { None } else { Some(1) };
        for closed in std::mem::take(&mut self.closing) {
            append_close(closed, out.request());
        }
        match (command, number) {
            (_, None) => {
                if let Some(preparing) = client.preparing.as_ref().filter(|_| command == commands::PREPARE) {
                    self.telling.statement =
                        Some((Arc::clone(&preparing.text), Arc::clone(&preparing.settings)));
                }
                match &client.instead {
                    Some(text) => commands::append_query(text, out.request()),
                    None => out.request().extend_from_slice(message),
                }
            }
            (commands::EXECUTE, Some(prepared)) => {
                let Some(known) = self.statements.get(prepared) else {
                    return unknown(out);
                };
                let missing = (known.types != prepared.types).then_some(&prepared.types[..]);
                if !append_execute(message, known.number, known.parameters, missing, out.request()) {
                    return unknown(out);
                }
                known.types.clone_from(&prepared.types);
                known.is_open = prepared.is_open;
            }
            (_, Some(prepared)) => {
                let number = self.statements.get(prepared).map_or(0, |known| {
                    known.is_open = prepared.is_open;
                    known.number
                });
                let (head, rest) = message.split_at(Header::LEN + 1);
                out.request().extend_from_slice(head);
                out.request().extend_from_slice(&number.to_le_bytes());
                out.request().extend_from_slice(rest.get(4..).unwrap_or_default());
            }
        }
        WriteResult::Whole
    }

    /// Appends the requests by which the server forgets what the statement of another session has left here,
    /// as far as this one's client could see it, and tells the client's own id.
    fn leave_nothing_of_others(&mut self, client: &Client, out: &mut Outgoing<'_>) {
        let session = self.session;
        let is_left = self.left_by != session;
        // What reads no row leaves the number of found rows as it is.
        let forgets = is_left && (self.has_warnings || client.asks_counts)
            || client.asks_found_rows && self.rows_of != session;
        // The number of changed rows is then as behind the session's own last statement, if that changed none.
        if forgets && !client.has_rows {
            forget_results(out);
        }
        if client.selects() {
            self.rows_of = session;
        }
        self.left_by = session;
        let has_id = match self.last_id {
            UNKNOWN_ID => self.id_of == session,
            known => known == client.last_id,
        };
        // Routines of the server may ask for it as well. The server keeps the id before, whoever has generated
        // it, if the client chooses one itself.
        let needs_id = client.statement.reads_session || client.may_call() || client.inserts;
        if forgets || !has_id && needs_id {
            change_last_id(client.last_id, out);
            self.last_id = client.last_id;
        }
        if forgets {
            if client.has_rows {
                forget_results(out);
            }
            (self.has_warnings, self.rows_of) = (false, session);
        }
    }

    /// Has the server prepare a statement that its client has prepared elsewhere.
    fn prepare(&mut self, prepared: &PreparedStatement, out: &mut Outgoing<'_>) -> WriteResult {
        self.telling.statement = Some((Arc::clone(&prepared.text), Arc::clone(&prepared.settings)));
        out.ask_before(commands::REPLAY_PREPARE, |out| {
            append_packet(0, out, |out| {
                out.push(0x16);
                out.extend_from_slice(&prepared.text);
            });
        });
        WriteResult::Waits
    }

    /// The server has prepared a statement. `part`: its reply, the head of it, or what follows that.
    pub(super) fn has_prepared(&mut self, part: &[u8]) {
        let (begun, rest) = match (self.telling.statement.take(), self.telling.description.take()) {
            (Some(statement), _) => (Description::of(statement, part), &b""[..]),
            (None, begun) => (begun, part),
        };
        let Some(mut description) = begun else {
            return;
        };
        if rest.is_empty() {
            let Description {
                text, settings, head, ..
            } = &description;
            let closed = self.statements.add((text, settings), head.id, head.parameters);
            self.closing.extend(closed);
        }
        match description.ends_with(rest, self.capabilities) {
            true => {
                let Description {
                    text,
                    settings,
                    reply,
                    ..
                } = &description;
                let changes = self.schema_changes.get();
                self.statements.describe((text, settings), reply, changes);
            }
            false if rest.is_empty() => self.telling.description = Some(description),
            false => {}
        }
    }

    /// Appends the requests that give the server this state. Returns whether the answers are awaited, as they
    /// are with `awaits`, or if the server has not taken the text before.
    fn bring(&mut self, settings: &Settings, reading: Reading, awaits: bool, out: &mut Outgoing<'_>) -> bool {
        let changes_schema = self.settings.schema != settings.schema && !settings.schema.is_empty();
        // The name means itself in the character set in which the client has said it.
        let is_plain = settings.schema.is_ascii();
        if changes_schema && is_plain {
            self.change_schema(settings, out);
        }
        let is_new = self.change_variables(settings, reading, awaits, out);
        if changes_schema && !is_plain {
            self.change_schema(settings, out);
        }
        is_new || changes_schema
    }

    fn change_schema(&mut self, settings: &Settings, out: &mut Outgoing<'_>) {
        self.telling.settings.schema.clone_from(&settings.schema);
        out.ask_before(commands::REPLAY_SCHEMA, |out| {
            append_packet(0, out, |out| {
                out.push(2);
                out.extend_from_slice(&settings.schema);
            });
        });
    }

    /// Appends the statement by which the server gets the variables of the session, if it has others. Returns
    /// whether its answer is awaited.
    fn change_variables(
        &mut self,
        settings: &Settings,
        reading: Reading,
        awaits: bool,
        out: &mut Outgoing<'_>,
    ) -> bool {
        let is_same = self.reading == reading && !self.has_lost_reading;
        if is_same && self.settings.has_variables_of(settings) {
            return false;
        }
        let mut text = mem::take(&mut self.telling.text);
        text.clear();
        self.append_changes(settings, reading, &mut text);
        let is_empty = text.is_empty();
        if !is_empty {
            out.ask_before(commands::REPLAY, |out| {
                append_packet(0, out, |out| {
                    out.extend_from_slice(b"\x03SET ");
                    out.extend_from_slice(&text);
                });
            });
        }
        let is_new = !is_empty && (awaits || !self.has_taken(&text));
        self.telling.settings.copy_variables(settings);
        self.telling.reading = reading;
        self.telling.text = text;
        if !is_new {
            self.has_variables();
        }
        is_new
    }

    /// The server has what it was told, or will have when it has taken a text that it has taken before.
    pub(super) fn has_variables(&mut self) {
        self.settings.copy_variables(&self.telling.settings);
        self.reading = self.telling.reading;
        (self.has_lost_reading, self.may_be_open) = (false, false);
    }

    /// Appends the assignments that give the server each variable that it has not here.
    fn append_changes(&self, wanted: &Settings, reading: Reading, text: &mut Vec<u8>) {
        let differs = |name: &[u8]| wanted.get(name) != self.settings.get(name);
        let changes_names = NAMES.iter().any(|name| differs(name));
        let has_names = changes_names && self.append_names(wanted, text);
        let is_done = |name: &[u8]| changes_names && NAMES.contains(&name);
        for (name, value) in wanted.variables() {
            if differs(name) && !is_done(name) {
                append(name, Some(value), text);
            }
        }
        for (name, _) in self.settings.variables() {
            if wanted.get(name).is_none() && !is_done(name) {
                append(name, self.begun.get(name), text);
            }
        }
        if changes_names && !has_names {
            // The collation comes last, as the character set changes it.
            for name in NAMES {
                if let Some(value) = self.names_of(wanted, name) {
                    append(name, Some(value), text);
                }
            }
        }
        self.append_reading(wanted, reading, text);
    }

    /// Appends the statement of a client that has one character set for all: it decides more than the
    /// variables show. Returns `false`, and appends nothing, if there are several.
    fn append_names(&self, wanted: &Settings, text: &mut Vec<u8>) -> bool {
        let [client, results, connection, collation] = NAMES.map(|name| self.names_of(wanted, name));
        let is_name = |name: &[u8]| {
            !name.is_empty()
                && name
                    .iter()
                    .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        };
        let is_one = client == results && client == connection;
        if let Some(client) = client
            && is_one
            && is_name(client)
            && collation.is_none_or(is_name)
        {
            text.extend_from_slice(b"NAMES ");
            text.extend_from_slice(client);
            if let Some(collation) = collation {
                text.extend_from_slice(b" COLLATE ");
                text.extend_from_slice(collation);
            }
            return true;
        }
        false
    }

    /// The wanted value of one of [`NAMES`]; `None` if the collation is that of the character set.
    fn names_of<'a>(&'a self, wanted: &'a Settings, name: &[u8]) -> Option<&'a [u8]> {
        match wanted.get(name) {
            None if name == COLLATION && wanted.get(CONNECTION).is_some() => None,
            None => self.begun.get(name),
            value => value,
        }
    }

    /// Appends the settings of a connection that only reads, or that does so no longer.
    fn append_reading(&self, wanted: &Settings, reading: Reading, text: &mut Vec<u8>) {
        let read_only: &[u8] = match self.is_mariadb {
            true => b"tx_read_only",
            false => b"transaction_read_only",
        };
        if reading.only {
            append(read_only, Some(b"ON"), text);
        } else if self.reading.only {
            append(read_only, wanted.get(read_only), text);
        }
        if reading.waits {
            append(
                b"wsrep_sync_wait",
                Some(waiting(wanted.get(b"wsrep_sync_wait"))),
                text,
            );
        } else if self.reading.waits {
            append(b"wsrep_sync_wait", wanted.get(b"wsrep_sync_wait"), text);
        }
    }

    /// The server has answered what went before a statement.
    pub(super) fn told(&mut self, command: u16, reply: &Reply, bytes: &[u8]) {
        let is_error = reply.outcome.is_error();
        if is_error && command == commands::REPLAY_ID {
            // The statement behind it has what it needs but for what another one has left.
            return;
        }
        if is_error {
            self.failed.get_or_insert_with(|| bytes.to_vec());
            if command == commands::REPLAY {
                self.doubt();
            }
            return;
        }
        match command {
            commands::REPLAY_PREPARE => self.has_prepared(bytes),
            commands::REPLAY_SCHEMA => self.settings.schema.clone_from(&self.telling.settings.schema),
            commands::REPLAY => {
                let text = mem::take(&mut self.telling.text);
                self.take(&text);
                self.telling.text = text;
                self.has_variables();
            }
            commands::REPLAY_TELL => self.has_reports(&ReplyEnd {
                bytes,
                last: reply.trailer as usize,
                capabilities: self.capabilities,
            }),
            _ => {}
        }
    }

    /// The server has not taken a text: it has what it had before, or some of what it was told. None of these
    /// values is known from now on.
    fn doubt(&mut self) {
        let told = mem::take(&mut self.telling.settings);
        for (name, value) in told.variables() {
            if self.settings.get(name) != Some(value) {
                let _ = self.settings.set(name, NOT_KNOWN);
            }
        }
        let (only, waits) = (
            self.reading.only || self.telling.reading.only,
            self.reading.waits || self.telling.reading.waits,
        );
        self.reading = Reading { only, waits };
    }
}

/// A server forgets the warnings of the statement before when one reads a table, and only then; and the number
/// of found rows when one reads anything.
fn forget_results(out: &mut Outgoing<'_>) {
    out.ask_before(commands::REPLAY_ID, |out| {
        commands::append_query(b"SELECT 1 FROM (SELECT 1) d", out);
    });
}

/// The id that a session has had generated elsewhere is what the server tells next. Nothing can go wrong with
/// that.
fn change_last_id(id: u64, out: &mut Outgoing<'_>) {
    out.ask_before(commands::REPLAY_ID, |out| {
        commands::append_query(format!("SET last_insert_id={id}").as_bytes(), out);
    });
}

/// Answers that there is no such prepared statement.
fn unknown(out: &mut Outgoing<'_>) -> WriteResult {
    let answer = out.answer();
    NO_SUCH_STATEMENT.append(1, "Unknown prepared statement handler", answer);
    WriteResult::Answered(Reply::new(Outcome::ClientError, answer.len()))
}

/// Appends the server's reply to PREPARE with a client's own number of the statement.
fn append_description(known: &[u8], number: u32, out: &mut Vec<u8>) -> Reply {
    let begun = out.len();
    out.extend_from_slice(known);
    if let Some(place) = out.get_mut(begun + Header::LEN + 1..begun + Header::LEN + 5) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    Reply::new(Outcome::Ok, known.len())
}

/// Appends that a prepared statement is needed no longer.
fn append_close(number: u32, out: &mut Vec<u8>) {
    append_packet(0, out, |out| {
        out.push(0x19);
        out.extend_from_slice(&number.to_le_bytes());
    });
}

/// Is this request one that only reads, for which any server will do?
pub(super) const fn is_read(request: &Request) -> bool {
    matches!(request.class, Class::Read)
}

/// The value of `wsrep_sync_wait` that also covers reads, for a session with this value of its own.
fn waiting(own: Option<&[u8]>) -> &[u8] {
    const ODD: [&[u8]; 8] = [b"1", b"3", b"5", b"7", b"9", b"11", b"13", b"15"];
    let own = own.and_then(|own| str::from_utf8(own).ok()?.parse::<usize>().ok());
    own.and_then(|own| ODD.get(own / 2)).copied().unwrap_or(b"1")
}

/// Appends the assignment of this value; without one, of the server's default.
fn append(name: &[u8], value: Option<&[u8]>, text: &mut Vec<u8>) {
    if !text.is_empty() {
        text.extend_from_slice(b", ");
    }
    text.extend_from_slice(b"SESSION ");
    text.extend_from_slice(name);
    text.push(b'=');
    match value {
        None => text.extend_from_slice(b"DEFAULT"),
        // Servers report so that results are not converted.
        Some(b"") if name == b"character_set_results" => text.extend_from_slice(b"NULL"),
        Some(value) => append_value(value, text),
    }
}
