//! The statements by which a server is asked to report what changes of a session, and those by which it
//! forgets one.
//!
//! Invariant: no statement runs on a connection whose server does not report, but one that asks for what the
//! server reports by itself.

use proxima_wire::mysql::{
    Tracker, append_packet,
    sql::{Class, Statement},
};

use super::{
    commands::{self, append_query},
    lane::{Lane, Reading, Reports, UNKNOWN_ID},
    reply_end::{LastPacket, ReplyEnd},
    settings::{STATEMENT_ID, Settings},
    words::{begins_with, has_word},
};
use crate::protocol::Outgoing;

/// The statement behind the login: it asks the server to tell every change of a variable, of the schema, and
/// of anything else that it keeps for a session.
pub(super) const TRACK: &[u8] = b"SET SESSION session_track_system_variables='*', session_track_schema=ON, \
                                  session_track_state_change=ON";
/// Variables that every session has are set to what they are, so that the server tells their values.
pub(super) const TELL: &[u8] = b"SET SESSION character_set_client=@@character_set_client, \
                                 character_set_results=@@character_set_results, \
                                 character_set_connection=@@character_set_connection, \
                                 collation_connection=@@collation_connection, sql_mode=@@sql_mode, \
                                 time_zone=@@time_zone, wait_timeout=@@wait_timeout";
/// The server has the settings of reports that it has for everybody.
const UNTRACK: &[u8] = b"SET SESSION session_track_system_variables=DEFAULT, session_track_schema=DEFAULT, \
                         session_track_state_change=DEFAULT";

/// COM_RESET_CONNECTION.
const RESET: u8 = 0x1f;

/// Does a statement show what the server reports? A client is to see what it would see without the proxy.
pub(super) fn shows_reports(statement: Statement, text: &[u8]) -> bool {
    if statement.changes_session || statement.is_several {
        return false;
    }
    match begins_with(text, &["show"]) {
        true => has_word(text, b"variables") && may_match(text),
        false if statement.class == Class::Session && begins_with(text, &["select"]) => {
            has_word(text, b"session_track_") || has_word(text, b"session_variables")
        }
        false => false,
    }
}

/// May the pattern of SHOW VARIABLES match names that begin with `session_track_`?
fn may_match(text: &[u8]) -> bool {
    let like = text
        .windows(4)
        .position(|word| word.eq_ignore_ascii_case(b"like"));
    let pattern = like.map(|at| text[at + 4..].trim_ascii_start());
    match pattern.and_then(|pattern| pattern.get(1)) {
        Some(first) => matches!(first, b's' | b'S' | b'%' | b'_' | b'\\'),
        None => true,
    }
}

impl Lane {
    /// Appends the request with which the server forgets its session.
    pub(super) fn append_reset(&mut self, out: &mut Vec<u8>) {
        append_packet(0, out, |out| out.push(RESET));
        self.reports = Reports::Reset;
        self.settings = Settings::of_schema(&self.settings.schema);
        self.statements.forget_all();
        self.closing.clear();
        self.reading = Reading::default();
        (self.has_lost_reading, self.may_be_open) = (false, false);
        (self.last_id, self.id_of) = (UNKNOWN_ID, 0);
        self.session = 0;
    }

    /// Appends the request with which the server forgets its session, before the one of another session.
    pub(super) fn reset_before(&mut self, out: &mut Outgoing<'_>) {
        out.ask_before(commands::REPLAY_RESET, |out| self.append_reset(out));
    }

    /// Appends the requests by which the server reports again what changes.
    pub(super) fn ask_reports(&self, out: &mut Outgoing<'_>) {
        out.ask_before(commands::REPLAY_TRACK, |out| append_query(TRACK, out));
        out.ask_before(commands::REPLAY_TELL, |out| append_query(TELL, out));
    }

    /// Appends the request by which a statement finds the server's own settings of reports, behind which the
    /// server is asked for reports again.
    pub(super) fn hide_reports(&mut self, out: &mut Outgoing<'_>) {
        out.ask_before(commands::REPLAY_TRACK, |out| append_query(UNTRACK, out));
        self.reports = Reports::Off;
    }

    /// The server reports what changes from now on, and has told what most sessions change.
    pub(super) fn has_reports(&mut self, end: &ReplyEnd<'_>) {
        if self.reports == Reports::Reset
            && let Some(LastPacket::Ok(ok)) = end.last_packet()
        {
            for tracker in ok.trackers {
                if let Tracker::Variable { name, value } = tracker
                    && name != STATEMENT_ID
                    && self.begun.get(name) != Some(value)
                {
                    // It has told the same variable at the login, and could tell another server of it.
                    let _ = self.settings.set(name, value);
                }
            }
        }
        self.reports = Reports::On;
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::mysql::sql::{self, Mode};

    use super::shows_reports;

    #[test]
    fn statements_that_show_reports_are_found() {
        for (text, expected) in [
            ("SELECT @@session_track_schema", true),
            ("SELECT @@SESSION.session_track_system_variables, 1", true),
            ("SHOW VARIABLES", true),
            ("show session variables like 'session%'", true),
            ("SHOW VARIABLES LIKE '%track%'", true),
            (
                "SHOW VARIABLES WHERE variable_name = 'session_track_schema'",
                true,
            ),
            ("SELECT * FROM information_schema.session_variables", true),
            ("SHOW VARIABLES LIKE 'wait_timeout'", false),
            ("SHOW TABLES", false),
            ("SELECT @@version", false),
            ("SELECT 1", false),
            ("SET session_track_schema = 1", false),
            (
                "SET sql_mode = CONCAT(@@sql_mode, ',X'), session_track_schema = 1",
                false,
            ),
        ] {
            let statement = sql::statement(text.as_bytes(), Mode::default());
            assert_eq!(shows_reports(statement, text.as_bytes()), expected, "{text}");
        }
    }
}
