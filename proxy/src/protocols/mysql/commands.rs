//! The commands by which requests are planned, routed and counted: the effects of a statement, and the
//! messages of the protocol that are no statements.

use proxima_wire::mysql::{Command, Shape, append_packet, sql::Class};

pub(super) const READ: u16 = 0;
pub(super) const SESSION: u16 = 5;
pub(super) const UNKNOWN: u16 = 7;
pub(super) const QUIT: u16 = 8;
pub(super) const INIT_DB: u16 = 9;
pub(super) const PING: u16 = 10;
pub(super) const CHANGE_USER: u16 = 11;
pub(super) const PREPARE: u16 = 12;
pub(super) const EXECUTE: u16 = 13;
pub(super) const LONG_DATA: u16 = 14;
pub(super) const CLOSE: u16 = 15;
pub(super) const RESET_STATEMENT: u16 = 16;
pub(super) const SET_OPTION: u16 = 17;
pub(super) const FETCH: u16 = 18;
pub(super) const RESET_CONNECTION: u16 = 19;
pub(super) const STATISTICS: u16 = 20;
pub(super) const FIELD_LIST: u16 = 21;
pub(super) const PROCESS_KILL: u16 = 22;
/// A message that no server is given.
pub(super) const REJECTED: u16 = 23;
/// Statements of the proxy's own, by which a connection gets the state of a session.
pub(super) const REPLAY: u16 = 24;
pub(super) const REPLAY_SCHEMA: u16 = 25;
pub(super) const REPLAY_ID: u16 = 26;
pub(super) const REPLAY_PREPARE: u16 = 27;
pub(super) const REPLAY_RESET: u16 = 28;
pub(super) const REPLAY_TRACK: u16 = 29;
pub(super) const REPLAY_TELL: u16 = 30;
/// A statement of the proxy's own that ends another one.
pub(super) const CANCEL: u16 = 31;
/// The question that members are asked again and again.
pub(super) const MONITOR: u16 = 32;

/// The names of all commands, the classes of statements first.
pub(super) static NAMES: [&str; 33] = [
    "read",
    "locking-read",
    "write",
    "ddl",
    "transaction",
    "session",
    "admin",
    "unknown",
    "quit",
    "init-db",
    "ping",
    "change-user",
    "prepare",
    "execute",
    "send-long-data",
    "close-statement",
    "reset-statement",
    "set-option",
    "fetch",
    "reset-connection",
    "statistics",
    "field-list",
    "process-kill",
    "rejected",
    "replay",
    "replay-schema",
    "replay-id",
    "replay-prepare",
    "reset",
    "replay-track",
    "replay-tell",
    "cancel",
    "monitor",
];

/// The command of a message with this first byte. The command of a statement is known when its text was read.
pub(super) const fn of(first: u8) -> u16 {
    match first {
        0x01 => QUIT,
        0x02 => INIT_DB,
        0x03 => UNKNOWN,
        0x04 => FIELD_LIST,
        0x09 => STATISTICS,
        0x0c => PROCESS_KILL,
        0x0e => PING,
        0x11 => CHANGE_USER,
        0x16 => PREPARE,
        0x17 => EXECUTE,
        0x18 => LONG_DATA,
        0x19 => CLOSE,
        0x1a => RESET_STATEMENT,
        0x1b => SET_OPTION,
        0x1c => FETCH,
        0x1f => RESET_CONNECTION,
        _ => REJECTED,
    }
}

/// The command of a statement of this class.
pub(super) const fn of_class(class: Class) -> u16 {
    match class {
        Class::Read => READ,
        Class::LockingRead => 1,
        Class::Write => 2,
        Class::Ddl => 3,
        Class::Transaction => 4,
        Class::Session => SESSION,
        Class::Admin => 6,
        Class::Unknown => UNKNOWN,
    }
}

/// Is it a statement whose text says what it does?
pub(super) const fn is_statement(command: u16) -> bool {
    command <= UNKNOWN
}

/// Does the proxy send it before a request, so that its server has the state of the session?
pub(super) const fn goes_before(command: u16) -> bool {
    matches!(command, REPLAY..=REPLAY_TELL)
}

/// Is it about a prepared statement, whose number it has?
pub(super) const fn names_prepared(command: u16) -> bool {
    matches!(command, EXECUTE | LONG_DATA | CLOSE | RESET_STATEMENT | FETCH)
}

/// The shape of the reply to a command.
pub(super) const fn shape(command: u16) -> Shape {
    match command {
        0..=UNKNOWN | EXECUTE | REPLAY | REPLAY_ID | REPLAY_TRACK | REPLAY_TELL | CANCEL | MONITOR => {
            Shape::Results
        }
        PREPARE | REPLAY_PREPARE => Shape::Prepared,
        FETCH => Shape::Rows,
        FIELD_LIST => Shape::Columns,
        STATISTICS => Shape::Text,
        _ => Shape::Done,
    }
}

/// Appends a statement of the proxy's own.
pub(super) fn append_query(text: &[u8], out: &mut Vec<u8>) {
    append_packet(0, out, |out| {
        out.push(3);
        out.extend_from_slice(text);
    });
}

/// The name of a message with this first byte, as the servers' manuals have it.
pub(super) fn manual_name(first: u8) -> &'static str {
    Command::of(first).map_or("this command", |command| command.name)
}

#[cfg(test)]
mod tests {
    use proxima_wire::mysql::{Command, Shape, sql::Class};

    use super::{NAMES, REJECTED, is_statement, of, of_class, shape};

    #[test]
    fn classes_have_their_words() {
        for (class, word) in Class::ALL {
            assert_eq!(NAMES[usize::from(of_class(class))], word);
            assert!(is_statement(of_class(class)));
        }
    }

    #[test]
    fn what_is_passed_on_has_the_shape_of_the_codecs_table() {
        for command in Command::all() {
            let number = of(command.number);
            let answered = !matches!(command.shape, Shape::Nothing | Shape::Login);
            if number != REJECTED && answered {
                assert_eq!(shape(number), command.shape, "{}", command.name);
            }
        }
    }
}
