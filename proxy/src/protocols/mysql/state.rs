//! The state of one client's session.

use proxima_wire::{
    message::Request,
    mysql::{
        Capabilities, Header, OkPacket, SALT, Status, Tracker,
        sql::{self, Charset, Class, Mode, Statement},
        statement_id,
    },
};

use super::{
    binding::Binding,
    commands,
    identity::Identity,
    pending::Pending,
    prepared::{PreparedStatement, PreparedStatements},
    reply_end::{LastPacket, ReplyEnd},
    seen::Seen,
    settings::{STATEMENT_ID, Settings},
    step::Step,
    words::{begins_with, ends_transaction, has_word, is_charset, may_read_table, sets_role},
};
use crate::protocol::{Consistency, Door, Doubt, EndState, Session, UserConnection};

/// The state of a session.
#[derive(Default)]
pub(super) struct Client {
    /// The next step of the login.
    pub(super) step: Step,
    /// The salt with which the client proves that it knows the password.
    pub(super) salt: [u8; SALT],
    /// The capabilities on which the client and the proxy have agreed.
    pub(super) capabilities: Capabilities,
    /// The lowest byte of the number of the collation.
    pub(super) collation: u8,
    /// The servers' way of reading texts, as the greeting has told it.
    pub(super) reads: Mode,
    /// The door of the client's listener.
    pub(super) door: Door,
    /// The client has proved another password than the one that is known.
    pub(super) doubt: Option<Doubt>,
    /// The question to a server about the client's login.
    pub(super) pending: Option<Box<Pending>>,
    /// The identity with which the client's statements run.
    pub(super) identity: Option<Identity>,
    /// Its connection, counted for its user.
    pub(super) user_connection: Option<UserConnection>,
    /// The settings that every connection that it uses must have.
    pub(super) settings: Settings,
    /// The status that a server has told last.
    pub(super) status: Status,
    /// The reasons why the session stays at its connection.
    pub(super) bindings: Bindings,
    /// The statements that the client has prepared, and the one that it prepares.
    pub(super) prepared: PreparedStatements,
    pub(super) preparing: Option<PreparedStatement>,
    /// The number of the one that is executed.
    pub(super) executing: u32,
    /// The number of the first packet of a reply that the proxy makes.
    pub(super) sequence: u8,
    /// The effects of the statement that was planned last.
    pub(super) statement: Statement,
    /// The text that is executed in its place.
    pub(super) instead: Option<Vec<u8>>,
    /// The state that it leaves, if its server keeps state that no server reports.
    pub(super) leaves: Binding,
    /// It ends a transaction by its words; it takes back what was written in one.
    pub(super) ends: bool,
    pub(super) rolls_back: bool,
    /// It begins a transaction, or ends the open one, and does nothing else.
    pub(super) is_plain: bool,
    /// The collation that the statement names.
    pub(super) collation_said: Option<Box<[u8]>>,
    /// It was planned as a read, for which any server will do.
    pub(super) is_read: bool,
    /// The session has its connection since such a read.
    pub(super) is_at_reader: bool,
    /// It asks for what the statement before has left, and reads no table beside that.
    pub(super) only_residue: bool,
    /// It calls a procedure.
    pub(super) calls: bool,
    /// Its server runs it whole, or not at all.
    pub(super) is_whole: bool,
    /// Its server has not run it, or has rolled it back, so that it may be given to one again.
    pub(super) goes_again: bool,
    /// It only asks for what the statement before has left.
    pub(super) only_asks: bool,
    /// It may ask for the number of rows that the statement before has found, or for that or the number of
    /// those that it has changed.
    pub(super) asks_found_rows: bool,
    pub(super) asks_counts: bool,
    /// It may set the id that the server tells, by itself.
    pub(super) sets_id: bool,
    /// It adds rows, whose ids its client may have chosen.
    pub(super) inserts: bool,
    /// It was a read, and yet it changes what the reader keeps for the session.
    pub(super) changes_session: bool,
    /// The reply, or the part of one, that was noted last is one of those.
    pub(super) has_changed_session: bool,
    /// The statement before the one under way has been answered with rows.
    pub(super) has_rows: bool,
    /// The id that was generated last.
    pub(super) last_id: u64,
    /// The number of times that the client has begun anew.
    pub(super) lives: u16,
    /// What it has written and seen.
    pub(super) seen: Seen,
    /// How fresh its reads are, where it has said that itself.
    pub(super) consistency: Option<Consistency>,
}

/// Does a statement only ask for what the one before has left?
pub(super) fn asks_for_residue(statement: Statement) -> bool {
    statement.reads_session && statement.class == Class::Session && !statement.changes_session
}

/// The state of a session that nothing binds to a connection.
pub(super) const FREE: &str = "free";
/// The state of such a session for as long as it keeps the connection that it has used last.
pub(super) const RECENT: &str = "recent";

/// The words with which such statements begin. Those of distributed transactions are about others.
const PLAIN: [&str; 4] = ["begin", "start", "commit", "rollback"];

/// Does a server run this statement whole, or not at all, outside of transactions? A procedure may have been
/// committed in part, and rows that are loaded. INSERT, REPLACE, UPDATE and DELETE, as they stand, are
/// neither.
fn is_whole(statement: Statement, text: &[u8]) -> bool {
    match statement.class {
        Class::Write => matches!(
            sql::without_comments(text).first().map(u8::to_ascii_lowercase),
            Some(b'i' | b'r' | b'u' | b'd')
        ),
        Class::Read | Class::LockingRead | Class::Ddl | Class::Transaction => true,
        Class::Session | Class::Admin | Class::Unknown => false,
    }
}

/// A statement that sets more is looked at no further.
const LONGEST_SET: usize = 4096;

/// The reasons why a session stays at one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bindings {
    /// For good, as the server keeps state that no server reports.
    pub(super) reason: Option<Binding>,
    /// For one more transaction.
    pub(super) once: bool,
    /// For the statement behind the one under way.
    pub(super) pends: bool,
    /// For one more statement, if that asks for what the one before has left.
    pub(super) residue: bool,
    /// The statement before has left what its client will ask for: a number of rows that it had counted.
    pub(super) is_certain: bool,
    /// The statement before has left what its client is likely to ask for: warnings, or an error.
    pub(super) is_likely: bool,
    /// For this many more statements that go to the same server, as an id was generated.
    pub(super) id: u8,
    /// The server keeps what it may not forget when it is asked to: an active role, or what a routine has
    /// changed without a name.
    pub(super) is_unknown: bool,
    /// Autocommit is off, and a statement has begun a transaction, whatever its server says.
    pub(super) is_implicit: bool,
    /// A statement that may have begun a transaction has failed, and no server has told since whether one is
    /// open.
    pub(super) is_hidden: bool,
}

/// The statements behind one that has generated an id for which a session keeps its connection. The id is
/// told other connections later, which is not exact where a client has chosen it.
const ID_STATEMENTS: u8 = 5;

impl Bindings {
    /// Does it end by itself with a statement that asks for nothing?
    pub(super) const fn is_loose(self) -> bool {
        self.reason.is_none() && !self.once
    }

    /// Is the client likely to ask for what its statement has left?
    pub(super) const fn is_firm(self) -> bool {
        self.is_likely || self.id > 0
    }
}

impl EndState for Client {
    fn memory(&self) -> usize {
        let preparing = self.preparing.as_ref();
        self.settings.memory()
            + self.prepared.memory()
            + preparing.map_or(0, PreparedStatement::memory)
            + self.collation_said.as_ref().map_or(0, |said| said.len())
            + self
                .identity
                .as_ref()
                .map_or(0, |identity| identity.user.capacity())
            + self.instead.as_ref().map_or(0, Vec::capacity)
            + self.step.memory()
            + self.pending.as_ref().map_or(0, |pending| pending.memory())
    }
}

impl Client {
    /// The state of this session.
    pub(super) fn of(session: &Session) -> Option<&Self> {
        session.state.get()
    }

    /// The number of the session, which is another one when its client has begun anew: nothing that a server
    /// keeps for it is its own from then on.
    pub(super) fn life(&self, session: &Session) -> u64 {
        session.id << 16 | u64::from(self.lives)
    }

    /// The client begins anew, with nothing but its settings.
    pub(super) fn begin_anew(&mut self, settings: Settings) {
        self.settings = settings;
        (self.bindings, self.status, self.last_id) = (Bindings::default(), Status::AUTOCOMMIT, 0);
        self.has_rows = false;
        self.consistency = None;
        self.prepared = PreparedStatements::default();
        self.lives = self.lives.wrapping_add(1);
    }

    /// The mode in which a text is read.
    pub(super) fn mode(&self) -> Mode {
        let own = self
            .settings
            .mode(Charset::of_collation(u16::from(self.collation)), self.status);
        // The variable says more than the greeting, which tells what all sessions begin with.
        match self.settings.get(b"sql_mode") {
            Some(_) => own,
            None => Mode {
                ansi_quotes: own.ansi_quotes || self.reads.ansi_quotes,
                no_backslash_escapes: own.no_backslash_escapes || self.reads.no_backslash_escapes,
                ..own
            },
        }
    }

    /// Does the server keep nothing for the session but what the statement before has left?
    pub(super) const fn is_loose(&self) -> bool {
        self.bindings.is_loose() && !self.prepared.is_any_open()
    }

    /// This statement is planned.
    pub(super) fn begin(&mut self, statement: Statement, text: &[u8]) {
        (self.collation_said, self.instead) = (None, None);
        self.only_asks = asks_for_residue(statement) && begins_with(text, &["select", "show"]);
        self.asks_found_rows = statement.reads_session && has_word(text, b"found_rows");
        self.asks_counts = self.asks_found_rows || statement.reads_session && has_word(text, b"row_count");
        self.only_residue = asks_for_residue(statement) && !may_read_table(text);
        let sets = statement.changes_session || statement.class == Class::Session;
        self.sets_id = sets && has_word(text, b"last_insert_id");
        let writes = statement.class == Class::Write;
        self.calls = writes && begins_with(text, &["call"]);
        self.is_whole = !statement.is_several && !statement.changes_session && is_whole(statement, text);
        self.inserts = writes && begins_with(text, &["insert", "replace", "load"]) || statement.is_several;
        if statement.class == Class::Session && text.len() < LONGEST_SET {
            self.collation_said = sql::collation(text).map(Into::into);
            if is_charset(text) {
                self.keep(Binding::Collation);
            }
        }
        if statement.changes_session && self.bindings.reason.is_none() {
            self.leaves = Binding::of(text);
        }
        self.ends = statement.class == Class::Transaction && ends_transaction(text);
        self.rolls_back = self.ends && begins_with(text, &["rollback"]);
        self.is_plain = statement.class == Class::Transaction && begins_with(text, &PLAIN);
        let may_set = matches!(statement.class, Class::Session | Class::Unknown) || statement.is_several;
        if may_set && sets_role(text) {
            self.bindings.is_unknown = true;
            // Some servers do not tell that a role is active.
            self.keep(Binding::State);
        }
        self.statement = statement;
        (self.is_read, self.goes_again) = (false, false);
        (self.changes_session, self.has_changed_session) = (false, false);
        self.bindings.pends = false;
    }

    /// The text of this statement, or of the prepared one that is executed.
    pub(super) fn text<'a>(&'a self, request: &Request, message: &'a [u8]) -> &'a [u8] {
        let rest = message.get(Header::LEN..).unwrap_or_default();
        match request.command {
            commands::EXECUTE => {
                let prepared = statement_id(rest).and_then(|number| self.prepared.get(number));
                prepared.map_or(b"", |prepared| &prepared.text)
            }
            _ => rest.get(1..).unwrap_or_default(),
        }
    }

    /// The capabilities agreed on with the servers of this client, as far as they decide how replies are
    /// read.
    pub(super) fn agreed(&self) -> Capabilities {
        self.identity.as_ref().map_or(self.capabilities, Identity::wanted)
    }

    /// May a statement that only reads run at any server that has the data?
    pub(super) fn may_read_anywhere(&self) -> bool {
        let isolation = |name: &[u8]| self.settings.get(name) == Some(b"SERIALIZABLE");
        self.is_loose()
            && !self.is_in_transaction()
            && !isolation(b"tx_isolation")
            && !isolation(b"transaction_isolation")
    }

    /// Has a read changed what its server keeps for the session? Without details a server may say so of one
    /// that has changed nothing.
    pub(super) fn is_changed_by(&self, end: &ReplyEnd<'_>) -> bool {
        match end.last_packet() {
            Some(LastPacket::Ok(ok)) => { ok.trackers }.any(|tracker| match tracker {
                Tracker::Variable { name, .. } => name != STATEMENT_ID,
                Tracker::Schema(schema) => schema != self.settings.schema,
                Tracker::State(_) => true,
                _ => false,
            }),
            Some(LastPacket::Eof(eof)) => eof.status.has(Status::SESSION_CHANGED),
            Some(LastPacket::Error) | None => false,
        }
    }

    /// May the statement under way call a routine that asks for the id that was generated last?
    pub(super) const fn may_call(&self) -> bool {
        self.calls || matches!(self.statement.class, Class::Unknown | Class::LockingRead)
    }

    /// May the statement under way show what others have written, or begin a transaction that does?
    pub(super) const fn may_show(&self) -> bool {
        let class = self.statement.class;
        let shows = matches!(class, Class::Read | Class::LockingRead | Class::Unknown);
        shows || self.calls || self.statement.is_several || self.is_plain && !self.ends
    }

    /// May the statement under way leave another number of found rows?
    pub(super) const fn selects(&self) -> bool {
        let reads = matches!(
            self.statement.class,
            Class::Read | Class::LockingRead | Class::Unknown
        );
        let asks = self.statement.reads_session || self.statement.changes_session;
        reads || self.calls || self.statement.is_several || asks
    }

    /// May the statement under way change a schema?
    pub(super) const fn may_change_schema(&self) -> bool {
        self.calls || self.statement.is_several || matches!(self.statement.class, Class::Ddl | Class::Unknown)
    }

    /// May the statement under way have generated an id?
    pub(super) const fn may_generate_id(&self) -> bool {
        self.calls
            || self.statement.is_several
            || matches!(self.statement.class, Class::Write | Class::Unknown)
    }

    /// May the statement under way be given to another server, if this one has not run it? Nothing binds the
    /// session to this one, and a statement that its server has not run whole has not run at all.
    pub(super) fn may_begin_anew(&self) -> bool {
        let is_free = self.is_loose() && !self.has_transaction() && !self.bindings.pends;
        self.is_whole && is_free && !self.door.rejects_writes
    }

    /// The same for a statement that its server has rolled back, which was a transaction of its own. A change
    /// of a schema is none.
    pub(super) fn may_run_again(&self) -> bool {
        let is_own = !matches!(self.statement.class, Class::Transaction | Class::Ddl);
        is_own && self.may_begin_anew() && self.has_autocommit()
    }

    /// Is a transaction open, or does the next statement begin one?
    pub(super) fn is_in_transaction(&self) -> bool {
        self.has_transaction() || !self.has_autocommit()
    }

    /// Is a transaction open? Without autocommit every statement that may have read something has begun one:
    /// locks of what it has read may be kept although the server says that there is none.
    pub(super) const fn has_transaction(&self) -> bool {
        self.status.has(Status::IN_TRANSACTION)
            || self.status.has(Status::IN_READ_ONLY_TRANSACTION)
            || self.bindings.is_implicit
            || self.bindings.is_hidden
    }

    /// May the statement under way change data?
    pub(super) const fn may_write(&self) -> bool {
        matches!(
            self.statement.class,
            Class::Write | Class::Ddl | Class::Transaction | Class::Unknown
        )
    }

    pub(super) fn has_autocommit(&self) -> bool {
        self.settings.get(b"autocommit") != Some(b"OFF")
    }

    /// Notes the state reported by the reply, or by a part of the reply, to the statement that was planned
    /// last.
    pub(super) fn note(&mut self, end: &ReplyEnd<'_>) {
        let told = end.last_packet();
        if !end.goes_on() {
            // Settings for the next transaction count until one has ended. What fails, or uses no table of an
            // engine with transactions, leaves them as they are.
            let is_error = matches!(told, Some(LastPacket::Error));
            let ends = !is_error && (self.is_plain || self.statement.class == Class::Ddl);
            self.bindings.once = std::mem::take(&mut self.bindings.pends) || self.bindings.once && !ends;
            // The numbers of found and changed rows, warnings, an id.
            self.bindings.residue = true;
            self.bindings.is_certain = self.statement.changes_session && self.leaves == Binding::FoundRows;
            self.bindings.is_likely = false;
            self.bindings.id = self.bindings.id.saturating_sub(1);
            self.has_rows = match &told {
                Some(LastPacket::Ok(ok)) => ok.is_eof,
                Some(LastPacket::Eof(_)) => true,
                Some(LastPacket::Error) | None => false,
            };
        }
        // The text says more of it than the reply does.
        if self.statement.changes_session && !self.is_told(told.as_ref()) {
            self.keep(self.leaves);
        }
        match told {
            Some(LastPacket::Ok(ok)) => self.note_ok(&ok),
            Some(LastPacket::Eof(eof)) => {
                if eof.status.has(Status::SESSION_CHANGED) {
                    self.bindings.is_unknown |= !self.is_forgettable();
                    self.keep(Binding::State);
                }
                self.bindings.is_likely |= eof.warnings > 0;
                self.note_status(eof.status);
            }
            Some(LastPacket::Error) => {
                self.bindings.is_likely = true;
                self.bindings.is_hidden |= self.hides_begin();
            }
            None => {}
        }
        self.note_transaction(matches!(told, Some(LastPacket::Error)));
    }

    /// Is the change of state that the statement under way leaves one that its server forgets when it is
    /// asked to? What a text hides may be a role, which it keeps.
    const fn is_forgettable(&self) -> bool {
        let is_named = !matches!(
            self.leaves,
            Binding::State | Binding::SqlPrepare | Binding::Variable
        );
        self.statement.changes_session && !self.statement.is_several && is_named
    }

    /// Does the reply tell what the statement under way leaves, or is that over with the next statement?
    fn is_told(&self, told: Option<&LastPacket<'_>>) -> bool {
        match (self.leaves, told) {
            (Binding::FoundRows, _) => !self.statement.is_several,
            // `LAST_INSERT_ID(value)` in an UPDATE, the usual way to number things.
            (Binding::Result, Some(LastPacket::Ok(ok))) => {
                let tells = ok.last_insert_id > 0 || ok.affected_rows == 0;
                self.statement.class == Class::Write && !self.statement.is_several && tells
            }
            _ => false,
        }
    }

    /// May the statement under way have begun a transaction before it failed? Errors tell nothing of that.
    const fn hides_begin(&self) -> bool {
        self.calls || self.statement.is_several
    }

    /// Notes whether a transaction is open that was begun without words for it.
    fn note_transaction(&mut self, is_error: bool) {
        self.bindings.is_implicit = !self.has_autocommit()
            && match self.statement.class {
                Class::Session => self.bindings.is_implicit,
                Class::Transaction if self.ends && !is_error => false,
                // It ends the transaction before it, and leaves none.
                Class::Ddl if !is_error => false,
                _ => true,
            };
    }

    fn note_ok(&mut self, ok: &OkPacket<'_>) {
        let (mut explains, mut has_changed) = (false, ok.is_cut);
        for tracker in ok.trackers {
            explains |= match tracker {
                Tracker::Variable { name, .. } => name != STATEMENT_ID,
                Tracker::Schema(_) => true,
                _ => false,
            };
            has_changed |= matches!(tracker, Tracker::State(_));
        }
        let said = self.collation_said.take();
        if !self.settings.note(ok.trackers, said.as_deref()) {
            self.keep(Binding::Variable);
        }
        // SET and USE report all that they change, but user variables, which the text shows.
        let is_explained = explains && self.statement.class == Class::Session;
        if has_changed && !is_explained {
            self.bindings.is_unknown |= !self.is_forgettable();
            self.keep(Binding::State);
        }
        if !self.settings.schema.is_ascii() && self.mode().charset != Charset::Utf8 {
            self.keep(Binding::Schema);
        }
        if ok.last_insert_id > 0 {
            self.last_id = ok.last_insert_id;
            self.bindings.id = ID_STATEMENTS;
        }
        self.bindings.is_likely |= ok.warnings > 0;
        self.note_status(ok.status);
    }

    fn note_status(&mut self, status: Status) {
        self.status = status;
        self.bindings.is_hidden = false;
        let value: &[u8] = match status.has(Status::AUTOCOMMIT) {
            true => b"ON",
            false => b"OFF",
        };
        let known = self.settings.get(b"autocommit");
        if known.is_some_and(|known| known != value) || known.is_none() && value == b"OFF" {
            // It is a variable that every server has.
            let _ = self.settings.set(b"autocommit", value);
        }
    }

    /// The reason that binds the session to its connection now, in a word; `None` before its login.
    pub(super) fn binds(&self) -> Option<&'static str> {
        self.identity.as_ref()?;
        Some(match self.bindings.reason {
            Some(binding) => binding.word(),
            None if self.has_transaction() => "transaction",
            None if self.bindings.once => "next_transaction",
            None if self.prepared.is_any_open() => "open_cursor",
            None => FREE,
        })
    }

    /// Keeps the session at its connection for good.
    pub(super) fn keep(&mut self, reason: Binding) {
        self.bindings.reason.get_or_insert(reason);
    }
}
