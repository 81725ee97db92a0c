//! Front doors: where a configuration comes from.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::config::{self, ConfigError, Loaded, schema};

/// A source of configurations. Asked at the start and after every change of its files.
pub trait Front: Send + Sync {
    /// Reads the configuration as it is now.
    ///
    /// # Errors
    /// It is refused; the running one stays.
    fn load(&self) -> Result<Loaded, ConfigError>;

    /// What people call it.
    fn name(&self) -> String;

    /// Wait this long after a change before it is read.
    fn delay(&self) -> Duration {
        Duration::ZERO
    }

    /// Follow changes of the files?
    fn follows(&self) -> bool {
        true
    }
}

/// Our own YAML file.
#[derive(Debug)]
pub struct Yaml(pub PathBuf);

impl Front for Yaml {
    fn load(&self) -> Result<Loaded, ConfigError> {
        config::load(&self.0)
    }

    fn name(&self) -> String {
        self.0.display().to_string()
    }
}

/// Nothing is configured: the embedded store, so that a first try needs no server.
#[derive(Debug)]
pub struct Embedded {
    pub listen: String,
    pub admin: String,
}

impl Front for Embedded {
    fn load(&self) -> Result<Loaded, ConfigError> {
        let text = format!("listeners: [{{address: \"{}\", route: embedded}}]\nadmin: \"{}\"\n", self.listen, self.admin);
        let mut loaded = config::parse(&text, Path::new("(built in)"))?;
        loaded.files_watched.clear();
        Ok(loaded)
    }

    fn name(&self) -> String {
        "the built-in default (embedded store, no servers)".into()
    }
}

/// The lists of servers of pools, whatever their source.
pub(super) fn servers(
    config: &schema::Config,
) -> Result<BTreeMap<String, Vec<schema::Server>>, ConfigError> {
    let mut listed = BTreeMap::new();
    for (name, pool) in &config.pools {
        let servers = match &pool.source {
            schema::Source::Static(servers) => servers.clone(),
            schema::Source::File(path) => config::servers::load(path)?,
        };
        listed.insert(name.clone(), servers);
    }
    Ok(listed)
}
