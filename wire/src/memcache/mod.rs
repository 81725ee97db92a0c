//! The memcached text protocol, classic and meta commands.
//!
//! [`request()`] and [`reply()`] read the head of a message, [`rewrite()`], [`single`] and
//! [`rewrite_reply_key`] write a changed one, [`default_reply()`] answers as a cache that holds nothing.
//!
//! **A request is accepted only if every memcached that is served reads the same length from it and answers
//! it once.** On a connection that many clients share, a server that takes a value's bytes for commands, or
//! is silent where a reply is awaited, would make clients get each other's replies. The codec therefore
//! refuses requests that only some servers understand, or that they read in different ways: flags that begin
//! with neither a letter nor a digit, lengths that are not up to ten digits (`4294967297` is 1 to some), text
//! behind a number, more words than a command has, a mode of several letters, base64 with bytes outside its
//! alphabet, blanks before the command, CR and NUL inside a line, and `delete noreply`.
//!
//! A refused request is answered, and the bytes behind it are swallowed, as by the newest memcached.
//! `captures/` holds its answers, and `captures/differ.tsv` those of the oldest and the newest supported
//! server to some thousand lines.
//!
//! [`item`] is for items that the proxy itself reads and stores.
//!
//! Servers before 1.6.10 read other meta commands than these: see [`meta_commands`].

mod base64;
mod command;
mod default_reply;
mod discovery;
mod effect;
pub mod error;
mod fetch;
mod held;
pub mod item;
mod key;
pub mod lease;
mod line;
mod meta;
mod number;
mod quiet;
mod read_back;
mod reply;
mod reply_key;
mod request;
mod rewrite;
mod server;
mod text;
mod version;

pub use command::Command;
pub use default_reply::default_reply;
pub use discovery::Discovery;
pub use effect::{effect, follow_up, removal};
pub use fetch::{fetch, store_fetched};
pub use key::{KEY, is_valid_key, key, keys, next_key, single, take_key};
pub use line::LINE;
pub use number::{LONGEST_TTL, number, time};
pub use quiet::silenced;
pub use read_back::{read_back, store_read_back, undo_read_back};
pub use reply::{hit, is_reply_whole, reply};
pub use reply_key::{is_foreign, reply_key, rewrite_reply_key};
pub use request::{is_value_end, request};
pub use rewrite::{Rewrite, rewrite};
pub use server::meta_commands;
pub use version::{mark_reply, mark_request};

/// The limits of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest value in bytes, without its line end.
    pub value: u64,
    /// Whether it may have [mcrouter's own commands](Command::is_mcrouters). Servers that mcrouter has are not
    /// asked for their version in advance: meta commands [need proof](crate::message::Request::needs_proof).
    pub mcrouters: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            value: 64 << 20,
            mcrouters: false,
        }
    }
}
