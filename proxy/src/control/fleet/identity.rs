//! The identity of this proxy: what it keeps in its directory, and what it was told of its fleet.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::fleet::{Stay, keeper::MissedByPeer};

/// What stands in the directory beside the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Facts {
    /// The name of the peer whose directory it is; `None`: it was written before names were.
    #[serde(default)]
    pub(super) name: Option<String>,
    /// The identity, drawn when the directory was empty.
    pub(super) identity: u128,
    /// The fleet; `None`: none yet.
    pub(super) fleet: Option<u128>,
    /// The last stay of the last process, and whether it ended with a goodbye. What a process that did not
    /// had under way is lost with it.
    pub(super) stay: Option<Stay>,
    pub(super) clean: bool,
    /// Keys of which the own copies may hold what others do not.
    #[serde(default)]
    pub(super) uncertain: MissedByPeer,
}

/// The identity of this proxy.
pub(super) struct OwnIdentity {
    pub(super) name: String,
    dir: PathBuf,
    facts: Mutex<Facts>,
    /// Holds the lock on the directory while the process lives.
    _lock: fs::File,
}

/// The file in the directory.
const FILE: &str = "peer.json";

/// A directory is not made that of a new peer.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// A proxy that runs has it. The operator stops that first.
    #[error("{path}: a proxy uses it; stop it first", path = .0.display())]
    InUse(PathBuf),
    /// It is that of a peer of a fleet.
    #[error("{path}: it is that of a peer of fleet {fleet:032x}; `--force` makes it forget that", path = .path.display())]
    #[allow(missing_docs, reason = "the message names the fields")]
    Known { path: PathBuf, fleet: u128 },
    /// It cannot be read or written.
    #[error("{path}: {source}", path = .path.display())]
    #[allow(missing_docs, reason = "the message names the fields")]
    File { path: PathBuf, source: io::Error },
}

/// Makes a directory that of a new peer: it forgets its fleet, its votes and its log. What the copies hold is
/// unknown to a new peer, so that they are flushed when it starts.
///
/// # Errors
/// See [`InitError`].
pub fn init_directory(dir: &Path, force: bool) -> Result<(), InitError> {
    let told = |source| InitError::File {
        path: dir.to_owned(),
        source,
    };
    fs::create_dir_all(dir).map_err(told)?;
    let lock = fs::File::create(dir.join("lock")).map_err(told)?;
    lock.try_lock().map_err(|_| InitError::InUse(dir.to_owned()))?;
    let facts = fs::read(dir.join(FILE)).ok();
    let facts = facts.and_then(|text| serde_json::from_slice::<Facts>(&text).ok());
    if let Some(fleet) = facts.and_then(|facts| facts.fleet)
        && !force
    {
        return Err(InitError::Known {
            path: dir.to_owned(),
            fleet,
        });
    }
    for file in [FILE, "journal"] {
        match fs::remove_file(dir.join(file)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(told(error)),
            _ => {}
        }
    }
    Ok(())
}

impl OwnIdentity {
    /// Opens the directory of a proxy of this name. `draw` gives the identity of a new one.
    ///
    /// # Errors
    /// The directory cannot be read or written, its file is damaged, or it is that of another peer.
    pub(super) fn open(name: String, dir: &Path, draw: u128) -> io::Result<Self> {
        let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", dir.display()));
        fs::create_dir_all(dir).map_err(told)?;
        let lock = fs::File::create(dir.join("lock")).map_err(told)?;
        lock.try_lock()
            .map_err(|error| told(io::Error::other(format!("another process uses it ({error})"))))?;
        let facts = match fs::read(dir.join(FILE)) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| told(error.into()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Facts {
                identity: draw,
                clean: true,
                ..Facts::default()
            },
            Err(error) => return Err(told(error)),
        };
        // Two voters with one identity could elect two leaders.
        if let Some(known) = facts.name.as_ref().filter(|known| **known != name) {
            return Err(told(io::Error::other(format!(
                "it is the directory of the peer {known}, and this one is {name}: give each peer its own. `proxima \
                 fleet init --force` makes it that of a new peer"
            ))));
        }
        let named = Some(name.clone());
        let who = Self {
            name,
            dir: dir.to_owned(),
            facts: Mutex::new(facts),
            _lock: lock,
        };
        who.change(|facts| facts.name = named).map_err(told)?;
        Ok(who)
    }

    /// The directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// What is known now.
    pub(super) fn facts(&self) -> Facts {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes what is known, and writes it through to the disk.
    pub(super) fn change(&self, change: impl FnOnce(&mut Facts)) -> io::Result<()> {
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = facts.clone();
        change(&mut next);
        let path = self.dir.join(FILE);
        let fresh = path.with_extension("new");
        fs::write(&fresh, serde_json::to_vec(&next)?)?;
        fs::File::open(&fresh)?.sync_all()?;
        fs::rename(&fresh, &path)?;
        fs::File::open(&self.dir)?.sync_all()?;
        *facts = next;
        Ok(())
    }
}
