//! From the text of a configuration to [`schema::Config`].
//!
//! ```text
//!  our YAML ─▶ yaml/events ─▶ Node ─▶ yaml/{top,pool}, routes ─▶ schema::Config ─▶ check ─▶ Loaded
//!                             (document: a tree whose every part knows its line and column)
//! ```
//!
//! * [`schema`]: what a configuration says; the only thing the rest of the proxy reads
//! * [`routes`]: the tree of routes, by families; `hash`: how keys choose; `protocol`: names of protocols
//! * `document`, `error`, `reading`: places in the text, and diagnostics that name them
//! * `form`, `section`: what may stand where, said once; the reader, the JSON Schema and the reference read
//!   it
//! * `file`: reads one; `passwords`: reads those that the configuration names; `yaml`: our format;
//!   [`source`]: where servers come from
//! * `foreign`: tells other programs' files from bad ones of ours
//! * `near_settings`: the file of settings that were kept while the proxy ran
//! * `overrides`: what the command line puts in its place
//! * `distribution`: hashes by their names
//! * `check`: what only the whole can tell: unknown names, cycles, listeners in each other's way
//! * [`describe`]: JSON Schema and reference pages, from the same forms
//!
//! Other programs' formats are front doors of their own ([`frontdoor`](crate::frontdoor)): they make the same
//! [`schema::Config`] of the same nodes, under the same checks.

pub mod describe;
pub mod routes;
pub mod schema;
pub mod source;

pub(crate) mod check;
mod distribution;
pub(crate) mod document;
mod error;
pub(crate) mod file;
mod foreign;
mod form;
mod hash;
mod load;
pub(crate) mod near_settings;
pub(crate) mod operations;
mod overrides;
mod passwords;
mod protocol;
pub(crate) mod reading;
mod section;
pub(crate) mod suggest;
mod users;
mod yaml;

pub use distribution::distribution;
pub use document::Place;
pub use error::{ConfigError, Diagnostic};
pub use form::{BadAddress, BadListenAddress, listen_address, listen_socket};
pub(crate) use form::{check_address, parse_duration};
pub use load::{BUILT_IN, BUILT_IN_REDIS, Loaded, built_in, load, parse};
pub(crate) use load::{load_peer, version_hash};
pub use overrides::Overrides;
pub(crate) use yaml::{PeerFile, parse_tree as parse_yaml};
