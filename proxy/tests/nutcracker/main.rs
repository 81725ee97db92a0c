//! twemproxy's command line and configuration file, as its users write them.

mod file;
mod flags;
mod refusals;
#[path = "../../../wire/tests/memcache/rows.rs"]
mod rows;

use std::path::Path;

use proxima::{
    config::{ConfigError, schema::Config},
    frontdoor::nutcracker,
};

/// The configuration of a text, which would have been read from the file `F`.
pub(crate) fn parse(text: &str) -> Result<Config, ConfigError> {
    nutcracker::parse(text, Path::new("F")).map(|loaded| loaded.config)
}

/// A pool `a` of one server, with these keys above the servers.
pub(crate) fn pool(keys: &str) -> String {
    format!("a:\n  listen: 127.0.0.1:22121\n{keys}  servers:\n    - 10.0.0.1:11211:1\n")
}

/// A pool `a` with this server in line 4.
pub(crate) fn server(text: &str) -> String {
    format!("a:\n  listen: 127.0.0.1:22121\n  servers:\n    - {text}\n")
}
