//! twemproxy's command line and configuration file, as what Proxima runs.
//!
//! ```text
//!  arguments ─▶ flags (table: options) ─▶ given ─▶ start ───▶ schema::Config
//!                                                    ▲
//!  file ─▶ Node ─▶ file ─▶ pool ─▶ settings (table: keys), listen, server
//! ```
//!
//! [`start()`] is the way in: it gives a [`Run`], which has a configuration and can read it again, or a
//! [`Refused`], which says why not. What twemproxy refuses is refused, with its text for scripts and ours,
//! with line and remedy, for people.

mod error;
mod file;
mod flags;
mod given;
mod help;
mod listen;
mod options;
mod pool;
mod server;
mod settings;
mod start;
mod tls;
mod value;

pub use error::{OptionError, Refused};
pub use options::DETACHED;
pub use start::{Run, Start, parse, start};
