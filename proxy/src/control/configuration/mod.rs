//! The configuration: what is read, when, and how a change takes effect.
//!
//! ```text
//!  files, DNS, operators ─▶ follow ─▶ reload: read, prepare, plan, apply ─▶ workers, and the other rooms
//!  proxima check, explain ─▶ offline
//! ```

mod explain;
pub(in crate::control) mod follow;
pub(in crate::control) mod offline;
pub(in crate::control) mod own_copies;
pub(in crate::control) mod reload;
mod trace;

use std::{collections::BTreeMap, net::IpAddr, path::PathBuf, sync::Arc, time::SystemTime};

pub use self::trace::{NodeView, Trace};
use crate::{
    config::{
        ConfigError, Loaded,
        schema::{Config, HealthListener, NearKept},
        source::Lists,
    },
    control::{Proxy, surroundings::host},
    random::Random,
    route::Tree,
};

/// The running configuration, and what became of the newest one that was read.
pub(super) struct Configuration {
    loaded: Loaded,
    /// The servers of each pool.
    servers: Lists,
    /// The addresses of host names in server addresses.
    hosts: BTreeMap<String, IpAddr>,
    /// The control thread's own tree.
    tree: Tree,
    /// The version by which every worker serves.
    version: Arc<str>,
    changed: SystemTime,
    attempted: SystemTime,
    reloads: Reloads,
    /// The source of chance for `explain`.
    random: Random,
}

/// How the configuration was changed since the start.
#[derive(Clone, Debug, Default)]
pub struct Reloads {
    /// Changes that took effect.
    pub done: u64,
    /// Changes that were refused.
    pub failed: u64,
    /// Why the newest configuration was refused. `None`: it is in effect.
    pub refused: Option<String>,
}

impl Configuration {
    /// The first configuration, before any worker serves by it.
    pub(super) fn new(loaded: Loaded, random: Random) -> Self {
        let now = SystemTime::now();
        Self {
            loaded,
            servers: Lists::new(),
            hosts: BTreeMap::new(),
            tree: Tree::empty(),
            version: "".into(),
            changed: now,
            attempted: now,
            reloads: Reloads::default(),
            random,
        }
    }

    /// The running configuration.
    pub(super) fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// The servers of each pool.
    pub(super) fn servers(&self) -> &Lists {
        &self.servers
    }

    /// The control thread's own tree, by which nothing is served.
    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The version by which every worker serves.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// When it took effect, and when one was last read, whatever became of that.
    pub(super) fn times(&self) -> (SystemTime, SystemTime) {
        (self.changed, self.attempted)
    }

    /// How it was changed since the start.
    pub(super) fn reloads(&self) -> &Reloads {
        &self.reloads
    }

    /// Notes the settings of the near cache that a file keeps by now: the next reload compares with them what
    /// the file says then.
    pub(super) fn set_near_kept(&mut self, kept: NearKept) {
        self.loaded.config.near.kept = kept;
    }
}

impl Proxy {
    /// The version of the running configuration, the same on every proxy that has the same text.
    pub fn version(&self) -> String {
        self.rooms().configuration.version.to_string()
    }

    /// The text of the running configuration.
    pub fn config(&self) -> String {
        self.rooms().configuration.loaded.text.clone()
    }

    /// The MD5 digests of the texts of the files of the running configuration.
    pub fn digests(&self) -> Vec<(PathBuf, String)> {
        self.rooms().configuration.loaded.digests.clone()
    }

    /// The configuration without macros, as JSON. `None`: its format has none.
    pub fn expanded(&self) -> Option<Result<String, ConfigError>> {
        self.source.expanded()
    }

    /// The health listeners of the running configuration.
    pub fn health_listeners(&self) -> Vec<HealthListener> {
        self.rooms().configuration.loaded.config.health.clone()
    }

    /// Whether `name` is a name of this machine, or one that the configuration gives to the admin port.
    pub fn is_called(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name);
        let is = |other: &String| other.eq_ignore_ascii_case(name);
        self.rooms()
            .configuration
            .loaded
            .config
            .admin_hosts
            .iter()
            .any(is)
            || host::names().iter().any(is)
    }
}
