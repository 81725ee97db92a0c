//! Our own format, with options of the command line that replace values in it.

use std::path::{Path, PathBuf};

use super::ConfigSource;
use crate::config::{self, ConfigError, Loaded, Overrides};

/// A file in our YAML.
#[derive(Debug)]
pub struct YamlFile {
    /// The path of the file. Paths in the file are relative to it.
    pub path: PathBuf,
    /// Options that replace values in it.
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

/// The built-in configuration: the embedded store, so that a first try needs no server.
#[derive(Debug)]
pub struct BuiltIn {
    /// Options that replace values in it.
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
