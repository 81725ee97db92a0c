//! The state of one connection to a server.

use std::{collections::HashSet, sync::Arc};

use proxima_wire::mysql::{Capabilities, Status, Tracker};

use super::{
    description::Description,
    galera::Word,
    known::KnownStatements,
    offer::Offer,
    reply_end::{LastPacket, ReplyEnd},
    settings::Settings,
    stage::Stage,
    state::Client,
};
use crate::protocol::{Consistency, EndState, MemberNote, PoolCount, ReachedCount, SharedCount};

/// The most texts that are remembered to have been taken.
const MOST_TAKEN: usize = 64;

/// A statement may have generated an id: it is not known which one the server tells.
pub(super) const UNKNOWN_ID: u64 = u64::MAX;

/// The variables by which a server is asked for that.
const OF_READING: [&[u8]; 3] = [b"tx_read_only", b"transaction_read_only", b"wsrep_sync_wait"];

/// The state of a connection.
#[derive(Default)]
pub(super) struct Lane {
    /// The next step of the login.
    pub(super) stage: Stage,
    /// The pool state's note about the server.
    pub(super) noted: MemberNote,
    /// The count of the pool, and the part of it that the server has.
    pub(super) count: PoolCount,
    pub(super) reached: ReachedCount,
    /// The number by which the server knows the connection.
    pub(super) connection: u32,
    /// The capabilities on which both ends have agreed.
    pub(super) capabilities: Capabilities,
    /// The server is MariaDB.
    pub(super) is_mariadb: bool,
    /// The server follows others, and can wait until it has what they have.
    pub(super) is_galera: bool,
    /// The server's offer, until it is handed on.
    pub(super) offer: Option<Offer>,
    /// The values that variables had behind the login.
    pub(super) begun: Settings,
    /// The settings of the server here, as far as they differ from those.
    pub(super) settings: Settings,
    /// The [life](Client::life) of the session that has used the connection last.
    pub(super) session: u64,
    /// The number that the first packet of a reply must have. `None`: for a statement of several packets it
    /// is that behind the last of them.
    pub(super) first_number: Option<u8>,
    /// The id that the server tells here.
    pub(super) last_id: u64,
    /// The session that has generated it, if it is not known.
    pub(super) id_of: u64,
    /// The requirements beside the settings of that session.
    pub(super) reading: Reading,
    /// A statement has changed what the server was asked for so.
    pub(super) has_lost_reading: bool,
    /// A statement has run since the server was told that it rejects writes. What it has called may have
    /// opened the next transaction for writes, which no server reports.
    pub(super) may_be_open: bool,
    /// Texts that the server has taken here.
    taken: HashSet<Box<[u8]>>,
    /// Bytes of these texts.
    taken_bytes: usize,
    /// The prepared statements that the server knows here.
    pub(super) statements: KnownStatements,
    /// The number of changes of schemas that were seen.
    pub(super) schema_changes: SharedCount,
    /// The numbers of those that are to be closed.
    pub(super) closing: Vec<u32>,
    /// The text or schema that the server is being told.
    pub(super) telling: Telling,
    /// The server keeps something that it may not forget when it is asked to.
    pub(super) is_unknown: bool,
    /// A statement has left warnings or an error here.
    pub(super) has_warnings: bool,
    /// The number of the session whose statement was executed here last, and of that whose statement has left
    /// the number of rows that FOUND_ROWS() tells.
    pub(super) left_by: u64,
    pub(super) rows_of: u64,
    /// The reports of the server about what changes here.
    pub(super) reports: Reports,
    /// The server forgets its session before another one has the connection.
    pub(super) resets: bool,
    /// The server's error for the text before a statement, if it has not taken it.
    pub(super) failed: Option<Vec<u8>>,
}

/// The requirements of a connection beside the state of a session, for as long as it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// The server rejects writes.
    pub(super) only: bool,
    /// Each read waits until the server has what every server had acknowledged before.
    pub(super) waits: bool,
}

/// A text, or a schema, that a server is being told before a statement.
#[derive(Default)]
pub(super) struct Telling {
    pub(super) text: Vec<u8>,
    /// The settings that the server has when it has taken it.
    pub(super) settings: Settings,
    pub(super) reading: Reading,
    /// The statement that it prepares, with the state of the session in which it does.
    pub(super) statement: Option<(Arc<[u8]>, Arc<Settings>)>,
    /// The beginning of what it says of that.
    pub(super) description: Option<Description>,
}

/// The reports of a server about what changes on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reports {
    /// It reports every change.
    #[default]
    On,
    /// It reports what it reports by itself.
    Off,
    /// The same, and it has forgotten its session: its variables have the values that they have for everybody.
    Reset,
}

impl EndState for Lane {
    fn memory(&self) -> usize {
        self.begun.memory()
            + self.settings.memory()
            + self.telling.text.capacity()
            + self.telling.settings.memory()
            + self.telling.statement.as_ref().map_or(0, |(text, _)| text.len())
            + self.telling.description.as_ref().map_or(0, Description::memory)
            + self.failed.as_ref().map_or(0, Vec::capacity)
            + self.closing.capacity() * size_of::<u32>()
            + self.statements.memory()
            + self.taken_bytes
    }
}

impl Lane {
    /// The session that has the connection may have generated an id.
    pub(super) const fn generates_id(&mut self) {
        (self.last_id, self.id_of) = (UNKNOWN_ID, self.session);
    }

    /// Notes whether a reply leaves warnings, or an error. They stay until a statement reads a table.
    pub(super) fn note_warnings(&mut self, end: &ReplyEnd<'_>) {
        self.has_warnings |= match end.last_packet() {
            Some(LastPacket::Ok(ok)) => ok.warnings > 0,
            Some(LastPacket::Eof(eof)) => eof.warnings > 0,
            Some(LastPacket::Error) => true,
            None => false,
        };
    }

    /// Is it a connection to a server of a pool that knows which one takes writes?
    pub(super) fn is_of_galera_pool(&self) -> bool {
        Word(self.noted.get()).number() != 0
    }

    /// Is it a connection to a server beside the one that takes writes? `is_alone`: there is no other one
    /// where the pool does not know which one does.
    pub(super) fn is_of_reader(&self, is_alone: bool) -> bool {
        match self.is_of_galera_pool() {
            true => !Word(self.noted.get()).writes(),
            false => !is_alone,
        }
    }

    /// Must a read by this client wait where it runs? Otherwise the server has what the read must see.
    ///
    /// Invariant: that is decided when the statement leaves. What was known when the server was chosen may not
    /// hold any more: another server is behind the address, or another proxy before it.
    pub(super) fn must_wait(&self, client: &Client, word: Consistency) -> bool {
        let note = Word(self.noted.get());
        if word == Consistency::Strict || word == Consistency::Causal && note.has_others() {
            return true;
        }
        self.is_behind(client, word)
    }

    /// May the server lack what a read by this client must see?
    pub(super) fn is_behind(&self, client: &Client, word: Consistency) -> bool {
        let needed = match Word(self.noted.get()).writes() {
            true => client.seen.needs_at_writer(word, &self.count),
            false => client.seen.needs_for(word, &self.reached, &self.count),
        };
        needed.is_none_or(|needed| self.reached.get() < needed)
    }

    /// The value of a variable that the server has told at the login.
    pub(super) fn variable(&self, name: &[u8]) -> Option<&str> {
        let value = self.settings.get(name).or_else(|| self.begun.get(name))?;
        str::from_utf8(value).ok()
    }

    /// Has the server taken this text here?
    pub(super) fn has_taken(&self, text: &[u8]) -> bool {
        self.taken.contains(text)
    }

    /// The server has taken this text.
    pub(super) fn take(&mut self, text: &[u8]) {
        if self.taken.len() < MOST_TAKEN && self.taken.insert(text.into()) {
            self.taken_bytes += text.len() + size_of::<Box<[u8]>>();
        }
    }

    /// Notes the state that a reply reports of the connection, which this client has.
    pub(super) fn note(&mut self, end: &ReplyEnd<'_>, client: &Client) {
        let (settings, has_written, calls) = (&client.settings, client.may_generate_id(), client.calls);
        self.is_unknown |= client.bindings.is_unknown;
        if client.sets_id {
            self.generates_id();
        }
        let is_of_reading =
            |tracker| matches!(tracker, Tracker::Variable { name, .. } if OF_READING.contains(&name));
        match end.last_packet() {
            // Its client may have chosen the id: the server tells either that, or the one before.
            Some(LastPacket::Ok(ok)) if ok.last_insert_id > 0 => self.generates_id(),
            Some(LastPacket::Eof(_)) if has_written => self.generates_id(),
            Some(LastPacket::Ok(ok)) if has_written && (ok.is_eof || calls) => self.generates_id(),
            _ => {}
        }
        match end.last_packet() {
            Some(LastPacket::Ok(ok)) if !ok.trackers.bytes().is_empty() => {
                self.has_lost_reading |= { ok.trackers }.any(is_of_reading);
                self.settings.clone_from(settings);
            }
            // The change itself is not reported.
            Some(LastPacket::Eof(eof)) => self.has_lost_reading |= eof.status.has(Status::SESSION_CHANGED),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_waits_where_it_runs_unless_its_server_is_known_to_have_everything() {
        let noted = |writes: bool, has_others: bool| {
            Word::new(1)
                .serving(true)
                .writing(writes)
                .with_others(has_others)
                .0
        };
        let (lane, mut client) = (Lane::default(), Client::default());
        let must_wait = |client: &Client| {
            Consistency::ALL
                .map(|word| (word, lane.must_wait(client, word)).1)
                .to_vec()
        };
        let all = |strict: bool, causal: bool, session: bool| {
            Consistency::ALL
                .map(|word| match word {
                    Consistency::Strict => strict,
                    Consistency::Causal => causal,
                    Consistency::Session => session,
                    Consistency::Eventual => false,
                })
                .to_vec()
        };
        lane.noted.set(noted(false, false));
        assert_eq!(must_wait(&client), all(true, false, false), "nothing was written");
        client.seen.write(&lane.count);
        client.seen.arrive();
        assert_eq!(must_wait(&client), all(true, true, true));
        lane.noted.set(noted(true, false));
        assert_eq!(must_wait(&client), all(true, false, false), "the writer has it");
        lane.noted.set(noted(false, false));
        lane.reached.raise(lane.reached.mark(lane.count.get()));
        assert_eq!(
            must_wait(&client),
            all(true, false, false),
            "a barrier has proved it"
        );
        lane.noted.set(noted(false, true));
        assert_eq!(
            must_wait(&client),
            all(true, true, false),
            "another proxy may have written"
        );
        client.seen.read_at(&ReachedCount::default(), &lane.count);
        lane.noted.set(noted(true, false));
        assert_eq!(
            must_wait(&client),
            all(true, true, true),
            "a reader may have shown more than the writer does"
        );
        lane.reached.raise(lane.reached.mark(lane.count.raise()));
        assert_eq!(
            must_wait(&client),
            all(true, false, false),
            "now that shows it too"
        );
        lane.noted.set(noted(false, false));
        lane.reached.begin_anew();
        assert_eq!(must_wait(&client), all(true, true, true), "it is another server");
    }
}
