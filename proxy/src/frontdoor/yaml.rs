//! Our own format, with what the command line puts in its place.

use std::path::{Path, PathBuf};

use super::ConfigSource;
use crate::config::{self, ConfigError, Loaded, Overrides};

/// A file in our YAML.
#[derive(Debug)]
pub struct YamlFile {
    /// Where it is; what it names is relative to it.
    pub path: PathBuf,
    /// What the command line puts in its place.
    pub overrides: Overrides,
}

impl ConfigSource for YamlFile {
    fn load(&self) -> Result<Loaded, ConfigError> {
        self.overrides.applied(config::load(&self.path)?, &self.path)
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// What is served where nothing is configured: the embedded store, so that a first try needs no server.
#[derive(Debug)]
pub struct BuiltIn {
    /// What the command line puts in its place.
    pub overrides: Overrides,
}

impl ConfigSource for BuiltIn {
    fn load(&self) -> Result<Loaded, ConfigError> {
        self.overrides
            .applied(config::built_in()?, Path::new(config::BUILT_IN))
    }

    fn name(&self) -> String {
        "the built-in default (embedded store, no servers)".into()
    }
}
