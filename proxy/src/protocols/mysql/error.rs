//! Errors that the proxy itself answers, as a server would.

use proxima_wire::{
    message::Outcome,
    mysql::{ErrPacket, Header},
};

use super::words::has_word;
use crate::protocol::{Failed, Fate};

/// An error with its number and its SQL state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Error(pub(super) u16, pub(super) [u8; 5]);

/// A user or a password that is not known.
pub(super) const ACCESS_DENIED: Error = Error(1045, *b"28000");
/// A message that is not served, or that no server knows.
pub(super) const UNKNOWN_COMMAND: Error = Error(1047, *b"08S01");
/// A schema that does not exist, or that the user may not see.
pub(super) const NO_SCHEMA: [u16; 2] = [1049, 1044];
/// KILL of a connection that is not there.
pub(super) const NO_SUCH_THREAD: Error = Error(1094, *b"HY000");
/// A prepared statement that is not there.
pub(super) const NO_SUCH_STATEMENT: Error = Error(1243, *b"HY000");
/// A cursor that is not open.
pub(super) const NO_CURSOR: Error = Error(1421, *b"HY000");
/// Too many prepared statements.
pub(super) const TOO_MANY_STATEMENTS: Error = Error(1461, *b"42000");
/// A value that a variable cannot have.
pub(super) const WRONG_VALUE: Error = Error(1231, *b"42000");
/// Anything else that the proxy cannot do.
pub(super) const OTHER: Error = Error(1105, *b"HY000");
/// The client's words at a login cannot be understood.
pub(super) const BAD_HANDSHAKE: Error = Error(1043, *b"08S01");
/// As many clients are this user as may be.
pub(super) const TOO_MANY_CLIENTS: Error = Error(1203, *b"42000");
/// A method of login that is not served.
pub(super) const NO_METHOD: Error = Error(1251, *b"08004");
/// The client speaks plainly where it must not.
pub(super) const NEEDS_TLS: Error = Error(3159, *b"HY000");
/// The statement writes, and only reads are served.
pub(super) const READ_ONLY: Error = Error(1290, *b"HY000");
/// A transaction that only reads is to write.
pub(super) const READ_ONLY_TRANSACTION: u16 = 1792;
/// The connection is lost in the midst of a statement.
const LOST: Error = Error(2013, *b"HY000");
/// All connections to a server are in use.
const NO_ROOM: Error = Error(TOO_MANY_CONNECTIONS, *b"08004");
/// Too many requests wait.
const BUSY: Error = Error(1041, *b"HY000");

/// The text of [`READ_ONLY`], as a server has it.
pub(super) const READ_ONLY_TEXT: &str =
    "The server is running with the --read-only option so it cannot execute this statement";

impl Error {
    /// Appends the error as the packet with this number.
    pub(super) fn append(self, sequence: u8, text: &str, out: &mut Vec<u8>) {
        let Self(code, state) = self;
        ErrPacket {
            code,
            state: Some(state),
            message: text.as_bytes(),
        }
        .append(sequence, out);
    }

    /// The error for a request that has failed.
    pub(super) const fn of(failed: &Failed<'_>) -> Self {
        match (failed.fate, failed.outcome) {
            (Fate::Lost | Fate::Blamed, _) => LOST,
            (Fate::Unsent, Outcome::Overloaded) if !failed.server.is_empty() => NO_ROOM,
            (Fate::Unsent, Outcome::Overloaded) => BUSY,
            (Fate::Unsent, _) => OTHER,
        }
    }
}

/// A server has as many connections as it may have.
pub(super) const TOO_MANY_CONNECTIONS: u16 = 1040;
/// A user has as many connections at a server as it may have.
pub(super) const TOO_MANY_OF_USER: u16 = 1203;
/// The same, or as many within an hour.
pub(super) const TOO_MUCH_OF_USER: u16 = 1226;

/// Does the number say that a server has no room for one more connection, or takes none of this host?
pub(super) const fn is_of_room(number: u16) -> bool {
    matches!(
        number,
        TOO_MANY_CONNECTIONS | TOO_MANY_OF_USER | TOO_MUCH_OF_USER | 1129 | 1130 | 1053
    )
}

/// Does the number say that there is no such user, that the password is wrong or over, or that the account is
/// locked?
pub(super) const fn is_of_account(number: u16) -> bool {
    matches!(number, 1045 | 1698 | 1862 | 3118 | 4151)
}

/// Is it the text of a server that takes no writes, among those of other options that prevent a statement?
pub(super) fn is_read_only(text: &[u8]) -> bool {
    has_word(text, b"read-only")
}

/// Is it the error of a server that may serve no longer: not ready, shutting down, or for reads alone?
pub(super) fn ends_service(packet: &[u8]) -> bool {
    let error = packet
        .get(Header::LEN..)
        .and_then(|payload| ErrPacket::read(payload).ok());
    error.is_some_and(|error| match error.code {
        1047 => error.message.starts_with(b"WSREP"),
        1053 | 1290 => true,
        _ => false,
    })
}

/// The outcome of a request that a server answers with this error.
pub(super) fn outcome(error: &ErrPacket<'_>) -> Outcome {
    match error.code {
        // The number is also that of a command that is not known.
        1047 if error.message.starts_with(b"WSREP") => Outcome::TryAgain,
        1053 => Outcome::Shutdown,
        _ => Outcome::ClientError,
    }
}
