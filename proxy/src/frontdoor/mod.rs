//! Front doors: where a configuration comes from, and what it comes to.
//!
//! * [`YamlFile`], [`BuiltIn`]: our own format, under the options of `proxima run`
//! * [`mcrouter`]: mcrouter's options and file
//!
//! Each gives a checked [`schema::Config`](crate::config::schema::Config); behind this point nothing knows
//! which one it was.

pub mod mcrouter;

mod yaml;

use std::time::Duration;

use crate::config::{ConfigError, Loaded};
pub use yaml::{BuiltIn, YamlFile};

/// A source of configurations. It is asked at the start and after every change of its files.
pub trait ConfigSource: Send + Sync {
    /// Reads the configuration as it is now.
    ///
    /// # Errors
    /// It is missing or refused; the running one stays.
    fn load(&self) -> Result<Loaded, ConfigError>;

    /// What people call it.
    fn name(&self) -> String;

    /// Wait this long after a change before it is read.
    fn delay(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether changes of the files take effect by themselves.
    fn follows(&self) -> bool {
        true
    }
}
