//! mcrouter's front door: its command line and its configuration file, as what Proxima runs.
//!
//! ```text
//!  arguments ─▶ flags (table: options) ─▶ settings, frame ─────────┐
//!                                              │                    ├─▶ schema::Config ─▶ front
//!  file ─▶ json ─▶ tree ─▶ pools, build (names, `A|B|C`), handles ──┘
//! ```
//!
//! What mcrouter knows and Proxima does not serve is refused by name and line when it would change what clients get, and
//! said otherwise. What mcrouter does not know it ignores, and so does this, with a warning.

mod build;
mod flags;
mod frame;
mod front;
mod handles;
mod hash;
mod help;
mod json;
mod keep_writing;
mod object;
mod options;
mod pools;
mod server;
mod settings;
mod tree;

pub use flags::Validate;
pub use front::{Exit, Front, Start, start};
