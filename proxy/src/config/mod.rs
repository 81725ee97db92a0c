//! From the text of a configuration to [`schema::Config`], whichever front door it comes through.
//!
//! ```text
//!  our YAML ──▶ yaml/events ─▶ Node ─▶ yaml/{top,pool,hash,route} ─┐
//!                              (document: a tree whose every       ├─▶ schema::Config ─▶ check ─▶ Loaded
//!  mcrouter ──▶ compat/mcrouter/json ─▶ Node ─▶ pools, routes ─────┘
//!               part knows its line and column)
//! ```
//!
//! * [`schema`]: what a configuration says; the only thing the rest of the proxy reads
//! * `document`, `error`, `reading`: places in the text, and complaints that name them
//! * `form`, `section`: what may stand where, said once; the reader, the JSON Schema and the reference read it
//! * `file`: reads one; `yaml`: our format; `servers`: files of servers; [`compat`]: other programs' formats
//! * `distribution`: hashes by their names
//! * `check`: what only the whole can tell: unknown names, cycles, listeners in each other's way
//! * [`describe`]: JSON Schema and reference pages, from the same forms

pub mod compat;
pub mod describe;
pub mod schema;
pub mod servers;

mod check;
mod distribution;
mod document;
mod error;
mod file;
mod foreign;
mod form;
mod load;
mod operations;
mod reading;
mod section;
mod suggest;
mod yaml;

pub use distribution::distribution;
pub use document::Place;
pub use error::{Complaint, ConfigError};
pub use form::{listen_address, listen_socket};
pub use load::{BUILT_IN, Loaded, built_in, load, parse};
