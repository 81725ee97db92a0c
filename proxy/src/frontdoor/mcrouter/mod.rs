//! Reads mcrouter's command line and configuration file as a configuration of Proxima's.
//!
//! ```text
//!  arguments ─▶ flags (table: options) ─▶ settings, base ──────────────────┐
//!                      constants ◀───────────┘                            ├─▶ schema::Config ─▶ start
//!  file ─▶ json ─▶ preprocess ─▶ tree ─▶ pools, builder (`A|B|C`), handles ┘
//! ```
//!
//! [`start()`] is the way in: it gives a [`Run`], which has a configuration and can read it again, or a
//! [`StartError`], which says why not. Features of mcrouter that Proxima does not support are refused by name
//! and line where they would change clients' replies, and logged otherwise. Unknown options are ignored with
//! a warning; mcrouter ignores them, too.

mod base;
mod builder;
mod constants;
mod door;
mod dump;
mod error;
mod flags;
mod fleet;
mod handles;
mod help;
mod json;
mod keep_writing;
mod load;
mod object;
mod options;
mod pools;
mod prefix;
mod preprocess;
mod runtime;
mod server;
mod settings;
mod start;
mod threads;
mod tls;
mod tree;

pub use door::Door;
pub use error::{OptionError, StartError};
pub use start::{Run, Start, start};
