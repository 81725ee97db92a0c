//! Front doors: where a configuration comes from.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    cli::Run,
    config::{self, Complaint, ConfigError, Loaded, compat::mcrouter, schema},
};

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

/// Our own YAML file, under a command line.
#[derive(Debug)]
pub struct Yaml {
    pub path: PathBuf,
    pub run: Run,
}

impl Front for Yaml {
    fn load(&self) -> Result<Loaded, ConfigError> {
        let mut loaded = config::load(&self.path)?;
        apply(&self.run, &mut loaded, &self.path)?;
        Ok(loaded)
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// Nothing is configured: the embedded store, so that a first try needs no server.
#[derive(Debug)]
pub struct Embedded {
    pub run: Run,
}

impl Front for Embedded {
    fn load(&self) -> Result<Loaded, ConfigError> {
        let mut loaded = config::built_in()?;
        apply(&self.run, &mut loaded, Path::new(config::BUILT_IN))?;
        Ok(loaded)
    }

    fn name(&self) -> String {
        "the built-in default (embedded store, no servers)".into()
    }
}

fn apply(run: &Run, loaded: &mut Loaded, path: &Path) -> Result<(), ConfigError> {
    run.apply(loaded)
        .map_err(|problem| ConfigError::one(path, Complaint::whole(problem)))
}

/// mcrouter's options and file.
#[derive(Debug)]
pub struct Mcrouter(pub mcrouter::Front);

impl Front for Mcrouter {
    fn load(&self) -> Result<Loaded, ConfigError> {
        self.0.load()
    }

    fn name(&self) -> String {
        let files: Vec<_> = self
            .0
            .loaded
            .files_watched
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        format!(
            "mcrouter's {}",
            if files.is_empty() {
                "--config-str".into()
            } else {
                files.join(", ")
            }
        )
    }

    fn delay(&self) -> Duration {
        self.0.reload_after.unwrap_or_default()
    }

    fn follows(&self) -> bool {
        self.0.reload_after.is_some()
    }
}

/// The servers of each pool.
pub(super) type Lists = BTreeMap<String, Vec<schema::Server>>;

/// The lists of servers of pools. One that DNS names is empty.
pub(super) fn listed(config: &schema::Config) -> Result<Lists, ConfigError> {
    let mut listed = BTreeMap::new();
    for (name, pool) in &config.pools {
        let servers = match &pool.source {
            schema::Source::Static(servers) => servers.clone(),
            schema::Source::File(path) => config::servers::load(path)?,
            schema::Source::Dns(_) => Vec::new(),
        };
        listed.insert(name.clone(), servers);
    }
    Ok(listed)
}
