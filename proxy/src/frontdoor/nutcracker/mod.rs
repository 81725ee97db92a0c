//! Reads twemproxy's command line and configuration file as a configuration of Proxima's.
//!
//! ```text
//!  arguments ─▶ flags (table: options) ─▶ base ──▶ start ───▶ schema::Config
//!                                                    ▲
//!  file ─▶ Node ─▶ file ─▶ pool ─▶ settings (table: keys), listen, server
//! ```
//!
//! [`start()`] is the way in: it gives a [`Run`], which has a configuration and can read it again, or a
//! [`StartError`], which says why not. What twemproxy refuses is refused here as well, with its text for
//! scripts, and with ours for people, which names line and remedy.

mod base;
mod error;
mod file;
mod flags;
mod help;
mod listen;
mod options;
mod pool;
mod server;
mod settings;
mod shown;
mod start;
mod tls;
mod value;

pub use error::{OptionError, StartError};
pub use options::DETACHED;
pub use start::{Run, Start, parse, start};
