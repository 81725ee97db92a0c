//! The protocol of Redis and Valkey: RESP2, RESP3 and inline commands.
//!
//! [`request()`] parses the head of a request: [`frame()`] finds its end, [`Command`] describes the command,
//! [`each_key`] finds its keys. [`inline`] makes an array of an inline command. [`reply()`] reads a server's
//! messages, and [`append_empty`] answers as an empty server.
//!
//! **A request is accepted only if every server that is served reads the same length from it and answers
//! it.** Servers close a connection on which they read nonsense, and many clients share one. A request that
//! any server refuses is therefore refused here, in the servers' words, and its client is closed as the
//! servers close it: wrong lengths, bulk strings that do not end in CR LF (which Redis takes and Valkey 9.1
//! does not), lines without an end, quotes that are not closed, and the first words of HTTP.
//!
//! An incomplete message is never read again from its beginning. A [`Parse`](crate::message::Parse) keeps the
//! state of its reading.

mod answer;
mod args;
mod command;
mod empty;
pub mod error;
mod frame;
pub mod glob;
pub mod inline;
mod keys;
mod lookup;
mod name;
mod number;
mod reply;
mod request;
mod state;
mod transaction;

pub use args::Args;
pub use command::{Changes, Combine, Command, Handling};
pub use empty::{append_empty, append_empty_transaction, only_a_server};
pub use frame::{Frame, Kind, frame, rest};
pub use keys::{append_part, each_key};
pub use lookup::{DECLARED, INLINE, TRANSACTION, UNKNOWN, find, replies};
pub use number::{append_number, integer};
pub use reply::{Expect, reply, whole};
pub use request::{blocks, request};
pub use transaction::commands;

/// The limits of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest bulk string in bytes.
    pub value: u64,
}

/// The largest bulk string that servers take by default (`proto-max-bulk-len`), in bytes.
pub const LARGEST_BULK: u64 = 512 << 20;

/// The most bytes of an inline command, and of the line of a length or a short reply (`PROTO_INLINE_MAX_SIZE`
/// of the servers).
pub const LINE: usize = 64 * 1024;
