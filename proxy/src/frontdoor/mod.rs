//! Front doors: configuration sources and their formats.
//!
//! * [`YamlFile`], [`BuiltIn`]: our own format, under the options of `proxima run`
//! * [`mcrouter`]: mcrouter's options and file
//! * [`nutcracker`]: twemproxy's options and file
//!
//! Each front door gives a checked [`schema::Config`](crate::config::schema::Config). The rest of the program
//! does not know which front door it came through.

pub mod mcrouter;
pub mod nutcracker;

mod yaml;

use std::time::Duration;

use crate::config::{ConfigError, Loaded};
pub use yaml::{BuiltIn, YamlFile};

/// The result of another program's command line.
#[derive(Debug)]
pub enum Start<R> {
    /// Print this and exit with 0.
    Print(String),
    /// Serve what was asked for.
    Run(Box<R>),
}

/// A configuration source. It is read at the start and after every change of its files.
pub trait ConfigSource: Send + Sync {
    /// Reads the current configuration.
    ///
    /// # Errors
    /// The configuration is missing or refused; the running one stays.
    fn load(&self) -> Result<Loaded, ConfigError>;

    /// The configuration as it is without macros, as JSON. `None`: its format has none.
    fn expanded(&self) -> Option<Result<String, ConfigError>> {
        None
    }

    /// Its name for operators.
    fn name(&self) -> String;

    /// Time from a change until it is read.
    fn delay(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether changes of the files take effect by themselves.
    fn follows(&self) -> bool {
        true
    }
}
