//! Every command of the protocol, with what it is about and the shape of its reply.

/// The target of a command, which decides where it may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A statement, whose text says what it does.
    Statement,
    /// A statement that was prepared before, by the number that the server gave it.
    Prepared,
    /// The state of the session.
    Session,
    /// The connection: it asks nothing of the data.
    Connection,
    /// One server, and not its data.
    Server,
    /// It is answered with an error: the connection would become something else, or no client sends it.
    Rejected,
}

/// The shape of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// There is no reply.
    Nothing,
    /// OK, EOF or ERR.
    Done,
    /// A text without any mark, or ERR.
    Text,
    /// Any number of results, each of which is OK, or columns and rows.
    Results,
    /// The number of the statement, with its parameters and columns.
    Prepared,
    /// Rows without columns.
    Rows,
    /// Definitions of columns alone.
    Columns,
    /// OK or ERR; before that the server may ask the client more questions.
    Login,
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The first byte of its message.
    pub number: u8,
    /// Its name as in the servers' manuals.
    pub name: &'static str,
    /// Its target.
    pub target: Target,
    /// The shape of its reply.
    pub shape: Shape,
}

/// One row of the table.
const fn row(number: u8, name: &'static str, target: Target, shape: Shape) -> Command {
    Command {
        number,
        name,
        target,
        shape,
    }
}

use Target::{Connection, Prepared, Rejected, Server, Session, Statement};

/// The commands of both servers. A server answers those that it does not know with ERR.
static COMMANDS: [Command; 39] = [
    row(0x00, "COM_SLEEP", Rejected, Shape::Done),
    row(0x01, "COM_QUIT", Connection, Shape::Nothing),
    row(0x02, "COM_INIT_DB", Session, Shape::Done),
    row(0x03, "COM_QUERY", Statement, Shape::Results),
    row(0x04, "COM_FIELD_LIST", Connection, Shape::Columns),
    row(0x05, "COM_CREATE_DB", Rejected, Shape::Done),
    row(0x06, "COM_DROP_DB", Rejected, Shape::Done),
    row(0x07, "COM_REFRESH", Server, Shape::Done),
    row(0x08, "COM_SHUTDOWN", Server, Shape::Done),
    row(0x09, "COM_STATISTICS", Server, Shape::Text),
    row(0x0a, "COM_PROCESS_INFO", Server, Shape::Results),
    row(0x0b, "COM_CONNECT", Rejected, Shape::Done),
    row(0x0c, "COM_PROCESS_KILL", Server, Shape::Done),
    row(0x0d, "COM_DEBUG", Server, Shape::Done),
    row(0x0e, "COM_PING", Connection, Shape::Done),
    row(0x0f, "COM_TIME", Rejected, Shape::Done),
    row(0x10, "COM_DELAYED_INSERT", Rejected, Shape::Done),
    row(0x11, "COM_CHANGE_USER", Session, Shape::Login),
    row(0x12, "COM_BINLOG_DUMP", Rejected, Shape::Done),
    row(0x13, "COM_TABLE_DUMP", Rejected, Shape::Done),
    row(0x14, "COM_CONNECT_OUT", Rejected, Shape::Done),
    row(0x15, "COM_REGISTER_SLAVE", Rejected, Shape::Done),
    row(0x16, "COM_STMT_PREPARE", Statement, Shape::Prepared),
    row(0x17, "COM_STMT_EXECUTE", Prepared, Shape::Results),
    row(0x18, "COM_STMT_SEND_LONG_DATA", Prepared, Shape::Nothing),
    row(0x19, "COM_STMT_CLOSE", Prepared, Shape::Nothing),
    row(0x1a, "COM_STMT_RESET", Prepared, Shape::Done),
    row(0x1b, "COM_SET_OPTION", Session, Shape::Done),
    row(0x1c, "COM_STMT_FETCH", Prepared, Shape::Rows),
    row(0x1d, "COM_DAEMON", Rejected, Shape::Done),
    row(0x1e, "COM_BINLOG_DUMP_GTID", Rejected, Shape::Done),
    row(0x1f, "COM_RESET_CONNECTION", Session, Shape::Done),
    // MySQL's alone.
    row(0x20, "COM_CLONE", Rejected, Shape::Done),
    row(
        0x21,
        "COM_SUBSCRIBE_GROUP_REPLICATION_STREAM",
        Rejected,
        Shape::Done,
    ),
    // MariaDB's alone. Clients send these only where the server has offered them.
    row(0xfa, "COM_STMT_BULK_EXECUTE", Rejected, Shape::Results),
    row(0xfb, "COM_SLAVE_WORKER", Rejected, Shape::Done),
    row(0xfc, "COM_SLAVE_IO", Rejected, Shape::Done),
    row(0xfd, "COM_SLAVE_SQL", Rejected, Shape::Done),
    row(0xfe, "COM_MULTI", Rejected, Shape::Done),
];

impl Command {
    /// All commands, by number.
    pub const fn all() -> &'static [Self] {
        &COMMANDS
    }

    /// The command with this first byte.
    #[inline]
    pub fn of(number: u8) -> Option<&'static Self> {
        match COMMANDS.get(usize::from(number)) {
            // The numbers of the first rows are their positions.
            Some(command) if command.number == number => Some(command),
            _ => COMMANDS.iter().find(|command| command.number == number),
        }
    }
}

/// The number of the prepared statement in a message of [`Target::Prepared`]: four bytes behind the first.
/// `None`: the message is too short. MariaDB takes [`u32::MAX`] for the statement that was prepared last.
pub fn statement_id(message: &[u8]) -> Option<u32> {
    let (id, _) = message.get(1..)?.split_first_chunk()?;
    Some(u32::from_le_bytes(*id))
}

#[cfg(test)]
mod tests {
    use super::{Command, statement_id};

    #[test]
    fn every_command_is_found_by_its_number_and_no_other_byte_is_one() {
        let found = (0..=u8::MAX).filter_map(Command::of).collect::<Vec<_>>();
        assert_eq!(found, Command::all().iter().collect::<Vec<_>>());
        for number in 0..=u8::MAX {
            assert!(Command::of(number).is_none_or(|command| command.number == number));
        }
    }

    #[test]
    fn the_number_of_a_statement_is_absent_in_a_short_message() {
        assert_eq!(statement_id(b"\x17\x01\x02\x00\x00rest"), Some(0x201));
        assert_eq!(statement_id(b"\x17\x01\x02\x00"), None);
        assert_eq!(statement_id(b""), None);
    }
}
