//! Where the servers of a pool come from. Each source is a file: how its key is read, and how its servers
//! are.
//!
//! * `listed`: the configuration names them (`servers`)
//! * [`mod@file`]: a file does, which is followed (`file`)
//! * `dns`: DNS does, which the control thread asks again and again (`dns`)
//!
//! What the rest of the program has to know of a source it asks [`Source`], so that another one is a file
//! here, a variant there, the arms that the compiler then misses below, and a row for its key in
//! `yaml/pool.rs`.

pub mod file;

mod dns;
mod listed;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

pub(super) use self::{dns::DnsForm, listed::ServerForm};
use super::{
    Complaint, ConfigError, Place,
    reading::Reading,
    schema::{Config, Dns, Server, Source},
};

/// The servers of each pool.
pub type Lists = BTreeMap<String, Vec<Server>>;

/// The servers of all pools, as far as they can be read at once.
///
/// # Errors
/// A file of servers is missing or refused.
pub fn lists(config: &Config) -> Result<Lists, ConfigError> {
    let mut lists = Lists::new();
    for (name, pool) in &config.pools {
        lists.insert(name.clone(), pool.source.read()?);
    }
    Ok(lists)
}

impl Source {
    /// The servers that the configuration itself names, which stay as they are; `None`: those of others come
    /// and go.
    pub fn fixed(&self) -> Option<&[Server]> {
        match self {
            Self::Static(servers) => Some(servers),
            Self::File(_) | Self::Dns(_) => None,
        }
    }

    /// The file that names the servers, to be read again when it changes.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Static(_) | Self::Dns(_) => None,
        }
    }

    /// The question to DNS that names the servers, to be asked again and again.
    pub fn question(&self) -> Option<&Dns> {
        match self {
            Self::Dns(question) => Some(question),
            Self::Static(_) | Self::File(_) => None,
        }
    }

    /// The servers as they are now; none where they are asked for over the network.
    ///
    /// # Errors
    /// The file that names them is missing or refused.
    pub fn read(&self) -> Result<Vec<Server>, ConfigError> {
        match self {
            Self::Static(servers) => Ok(servers.clone()),
            Self::File(path) => file::load(path),
            Self::Dns(_) => Ok(Vec::new()),
        }
    }

    /// With a path in it relative to `folder`.
    pub(super) fn below(self, folder: &Path) -> Self {
        match self {
            Self::File(path) => Self::File(folder.join(path)),
            Self::Static(_) | Self::Dns(_) => self,
        }
    }
}

/// The source that a pool's keys name; the pool stands at `at`.
pub(super) fn chosen(
    listed: Option<Vec<(Place, Server)>>,
    file: Option<PathBuf>,
    dns: Option<Dns>,
    at: Place,
    cx: &Reading,
) -> Result<Source, Complaint> {
    let given = [
        ("servers", listed.is_some()),
        ("file", file.is_some()),
        ("dns", dns.is_some()),
    ];
    let mut given = given.iter().filter(|(_, given)| *given).map(|(key, _)| key);
    if let (Some(one), Some(other)) = (given.next(), given.next()) {
        return Err(cx
            .refuse(at, format!("the pool has both `{one}` and `{other}`"))
            .with_remedy("keep one"));
    }
    match (listed, file, dns) {
        (Some(listed), ..) => listed::source(listed, at, cx),
        (_, Some(file), _) => Ok(Source::File(file)),
        (_, _, Some(dns)) => Ok(Source::Dns(dns)),
        (None, None, None) => Err(cx
            .refuse(at, "the pool has no servers")
            .with_remedy("write `servers`, `file` or `dns`")),
    }
}
