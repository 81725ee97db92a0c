//! The reasons for which bytes are no message of this protocol.

use thiserror::Error;

/// A mistake of the other end. No later byte of its connection can be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// Packets are numbered, and another number was due.
    #[error("packet number {found} came where number {expected} is due")]
    Sequence {
        /// The number that is due.
        expected: u8,
        /// The number that came.
        found: u8,
    },
    /// A message without a byte, where the first byte tells what it is.
    #[error("an empty message")]
    Empty,
    /// The first byte of a message that is not possible there.
    #[error("the byte {0:#04x} begins no message that is possible here")]
    FirstByte(u8),
    /// A message ends before its last field, or a length in it is larger than the message.
    #[error("the {0} ends too early")]
    Truncated(&'static str),
    /// A message does not end with its last field.
    #[error("the {0} has bytes behind its end")]
    Trailing(&'static str),
    /// A message is longer than any that is sent in earnest.
    #[error("the {0} is too long")]
    TooLong(&'static str),
    /// More columns than a server allows.
    #[error("a result of {0} columns")]
    Columns(u64),
    /// The server asks for a file of the client (`LOAD DATA LOCAL INFILE`). This is never offered.
    #[error("the server asks for a file of the client, which was not offered")]
    LocalInfile,
    /// The server reports progress. This is never offered.
    #[error("the server reports progress, which was not asked for")]
    Progress,
    /// The other end speaks a protocol that is older than 4.1, or a handshake other than version 10.
    #[error("the {0} is of a protocol that is not served")]
    Version(&'static str),
}
