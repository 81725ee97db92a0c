//! Our own format, with options of the command line that replace values in it.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use socket2::{Domain, Socket, Type};

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
    overrides: Overrides,
    /// Clients of Redis are served, too.
    with_redis: bool,
}

impl BuiltIn {
    /// The built-in configuration under these options. Clients of Redis are served unless another program
    /// has their port, which is logged, or a listener's address is given.
    pub fn new(overrides: Overrides) -> Self {
        let free = match overrides.listen {
            None => is_free(config::BUILT_IN_REDIS),
            Some(_) => Ok(false),
        };
        let with_redis = free.unwrap_or_else(|error| {
            let address = config::BUILT_IN_REDIS;
            tracing::warn!("Redis is not served: cannot listen on {address}: {error}");
            false
        });
        Self {
            overrides,
            with_redis,
        }
    }
}

/// Checks that no process listens at this address.
fn is_free(address: &str) -> std::io::Result<bool> {
    let address: SocketAddr = address.parse().map_err(std::io::Error::other)?;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // What is left of closed connections does not count.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    Ok(true)
}

impl ConfigSource for BuiltIn {
    fn load(&self) -> Result<Loaded, ConfigError> {
        self.overrides
            .applied(config::built_in(self.with_redis)?, Path::new(config::BUILT_IN))
    }

    fn name(&self) -> String {
        "the built-in default (embedded store, no servers)".into()
    }
}
