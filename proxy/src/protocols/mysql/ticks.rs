//! The ticks of a pool's clock: which statements may have written, and what a reply lets a session see.

use proxima_wire::mysql::{Status, sql::Class};

use super::{
    commands,
    galera::Word,
    reply_end::{LastPacket, ReplyEnd},
    state::Client,
};
use crate::protocol::Replier;

impl Client {
    /// A reply to this command, or a part of it, has come, and goes to the client. `end`: the end of it;
    /// `None` if the reply goes on.
    ///
    /// Invariant: a write is counted before a byte of its reply leaves.
    pub(super) fn see(&mut self, by: &Replier<'_>, command: u16, end: Option<&ReplyEnd<'_>>) {
        let note = Word(by.noted.get());
        if note.number() == 0 {
            // Its pool knows no writer, and counts nothing.
            return;
        }
        let has_run = commands::is_statement(command) || command == commands::EXECUTE;
        match self.is_read && !note.writes() {
            // Readers are asked in transactions that only read.
            true => self.seen.read_at(by.reached, by.count),
            false if has_run && !self.has_written_nothing(end) => self.seen.write(by.count),
            false => self.seen.read_at_writer(by.count),
        }
    }

    /// Has the statement under way certainly written nothing that others can see? A read may call what writes.
    fn has_written_nothing(&self, end: Option<&ReplyEnd<'_>>) -> bool {
        let status = match end.and_then(ReplyEnd::last_packet) {
            Some(LastPacket::Ok(ok)) => ok.status,
            Some(LastPacket::Eof(eof)) => eof.status,
            Some(LastPacket::Error) | None => return false,
        };
        let stays_open = status.has(Status::IN_TRANSACTION) && !status.has(Status::MORE_RESULTS);
        match self.statement.class {
            _ if self.statement.is_several || self.calls => false,
            // What it has written is seen when its transaction ends.
            Class::Read | Class::LockingRead | Class::Write => stays_open,
            // It begins one where none was open, or takes back what was written in one.
            Class::Transaction if self.rolls_back => true,
            Class::Transaction => self.is_plain && !self.ends && !self.has_transaction(),
            _ => false,
        }
    }
}
