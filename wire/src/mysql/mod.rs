//! The protocol of MySQL and MariaDB: packets, logins, replies, and the effects of statements.
//!
//! [`Packets`] reads messages in parts of any size; a message may span several packets. [`Greeting`],
//! [`Hello`], [`ChangeUser`] and [`AuthSwitch`] are the messages of a login, in which [`password`] proves a
//! password. [`Command`] describes a command, and [`ReplyReader`] finds the end of its reply. [`sql`]
//! classifies statements.
//!
//! **Rows and column definitions are relayed as bytes.** The reader looks at the first byte and the length of
//! a message, and understands only what changes the state of a connection: OK, EOF and ERR packets, the head
//! of a result and of a prepared statement. These it keeps while they come in parts, up to
//! [`LONGEST_CONTROL`] bytes. Nothing else takes memory, however large a reply is.
//!
//! **A server is not trusted.** Wrong sequence numbers, lengths that do not fit and bytes that begin no reply
//! are a [`Fault`], after which the connection must be closed: no later byte of it can be understood.
//!
//! Only protocol 4.1 is supported. Messages of capabilities that are never offered to a server are a fault as
//! well: files of clients, progress reports, cached metadata.

mod auth;
mod bytes;
mod capabilities;
mod change_user;
mod command;
mod eof;
mod err;
mod event;
mod fault;
mod greeting;
mod hello;
mod ok;
mod packet;
mod packets;
pub mod password;
mod prepare_ok;
mod replies;
mod reply;
pub mod sql;
mod stage;
mod status;
mod tracker;

pub use auth::{AuthMore, AuthSwitch};
pub use capabilities::Capabilities;
pub use change_user::ChangeUser;
pub use command::{Command, Shape, Target, statement_id};
pub use eof::EofPacket;
pub use err::ErrPacket;
pub use event::Event;
pub use fault::Fault;
pub use greeting::{Greeting, SALT, SPOKEN};
pub use hello::{Attributes, Hello, LONGEST_HELLO, Login, TlsRequest};
pub use ok::OkPacket;
pub use packet::{Header, LARGEST_PACKET, append_packet};
pub use packets::{Packets, Piece};
pub use prepare_ok::PrepareOk;
pub use replies::{ReplyPart, find};
pub use reply::{LONGEST_CONTROL, ReplyReader, Step};
pub use status::Status;
pub use tracker::{Tracker, Trackers, append_schema, append_variable};
