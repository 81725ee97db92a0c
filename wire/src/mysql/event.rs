//! The contents of a reply's messages.

use super::{AuthMore, AuthSwitch, EofPacket, ErrPacket, OkPacket, PrepareOk};

/// The contents of a message that is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// There are only bytes to pass on.
    Bytes,
    /// A result begins, with so many columns.
    Columns(u32),
    /// A statement was prepared.
    Prepared(PrepareOk),
    /// A statement is done, or the rows of a result end.
    Ok(OkPacket<'a>),
    /// Definitions or rows end.
    Eof(EofPacket),
    /// The reply ends with an error.
    Err(ErrPacket<'a>),
    /// The server asks the client to log in by another method.
    AuthSwitch(AuthSwitch<'a>),
    /// The server goes on with the method of the login.
    AuthMore(AuthMore<'a>),
}
