//! Front doors: configuration sources and their formats.
//!
//! * [`YamlFile`], [`BuiltIn`]: our own format, under the options of `proxima run`
//! * [`mcrouter`]: mcrouter's options and file
//! * [`nutcracker`]: twemproxy's options and file
//!
//! Each front door gives a checked [`schema::Config`](crate::config::schema::Config). Routes, servers and
//! copies see this configuration alone. Three other parts depend on the door: a listener words its own
//! replies in the door's reply style, `admin` answers mcrouter's and twemproxy's requests for statistics, and
//! `control` passes a [`mcrouter::Door`] on to it and reports changes of health through the [`ConfigSource`].

pub mod mcrouter;
pub mod nutcracker;

mod yaml;

use std::{fmt, time::Duration};

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

/// A change of a server's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthChange {
    /// It is no longer asked.
    Ejected {
        /// It was late; otherwise a connection was lost or refused.
        was_late: bool,
    },
    /// It is asked again.
    Returned,
    /// The configuration no longer names it, or names it otherwise, and its ejection is forgotten.
    Forgotten,
}

/// How many servers are not asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EjectedCounts {
    /// Those that were late.
    pub late: usize,
    /// Those to which a connection was lost or refused.
    pub lost: usize,
}

/// A configuration source. It is read at the start and after every change of its files.
pub trait ConfigSource: Send + Sync {
    /// Reads the current configuration.
    ///
    /// # Errors
    /// The configuration is missing or refused; the running one stays.
    fn load(&self) -> Result<Loaded, ConfigError>;

    /// The configuration with its macros expanded, as JSON. `None` if its format has no macros.
    fn expanded(&self) -> Option<Result<String, ConfigError>> {
        None
    }

    /// Its name for operators.
    fn name(&self) -> String;

    /// Time from a change until it is read.
    fn delay(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether the ejection of a server is forgotten when a change drops the address and time-out with which
    /// it was found, even if the server is still named with another time-out.
    fn forgets_ejections(&self) -> bool {
        false
    }

    /// Says what has become of a server, if it has words of its own for that.
    fn say(&self, _: &dyn fmt::Display, _: HealthChange, _: EjectedCounts) {}

    /// Whether changes of the files take effect by themselves.
    fn follows(&self) -> bool {
        true
    }
}
