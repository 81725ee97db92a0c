//! The state file: every copy that this process knew, the life in which its server was last met, and whether it owes writes.
//! A copy that the file does not know is not trusted, so an old file or none costs a repair and never a stale read.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::members::{Member, copies::Incarnation};

/// What is noted, and where.
#[derive(Debug)]
pub(super) struct Notes {
    path: PathBuf,
    /// By pool and address: what the process before this one knew.
    pub(super) known: BTreeMap<(String, String), Note>,
}

/// One copy.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Note {
    pool: String,
    address: String,
    /// Of the server's process, and how long it ran when it was met; none: it never was.
    pid: Option<u64>,
    uptime_seconds: Option<u64>,
    /// Why it owes writes; none: it owes nothing.
    pub(super) owes: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    copies: Vec<Note>,
}

impl Note {
    pub(super) fn new(member: &Member, met: Option<Incarnation>, owes: Option<String>) -> Self {
        Self {
            pool: member.pool.to_string(),
            address: member.endpoint(),
            pid: met.map(|met| met.pid),
            uptime_seconds: met.map(|met| met.uptime.as_secs()),
            owes,
        }
    }

    pub(super) fn met(&self) -> Option<Incarnation> {
        Some(Incarnation {
            pid: self.pid?,
            uptime: Duration::from_secs(self.uptime_seconds?),
        })
    }
}

impl Notes {
    /// Reads the file, if it is there, and sees that it can be written.
    ///
    /// # Errors
    /// It can be neither read nor understood nor written; the text says what to do.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let place = |error: io::Error, what: &str| {
            io::Error::new(
                error.kind(),
                format!("{} cannot be {what}: {error}", path.display()),
            )
        };
        let text = match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                let text = format!(
                    "{}: {error}; remove it, and every copy is repaired before it is read",
                    path.display()
                );
                io::Error::new(io::ErrorKind::InvalidData, text)
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Text::default(),
            Err(error) => return Err(place(error, "read")),
        };
        let known = text
            .copies
            .into_iter()
            .map(|note| ((note.pool.clone(), note.address.clone()), note))
            .collect();
        let notes = Self {
            path: path.to_owned(),
            known,
        };
        notes
            .write(notes.known.values().cloned().collect())
            .map_err(|error| place(error, "written"))?;
        Ok(notes)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What was known of this copy.
    pub(super) fn of(&self, member: &Member) -> Option<&Note> {
        self.known.get(&(member.pool.to_string(), member.endpoint()))
    }

    /// Those of pools that have had no members yet, as nobody has named them.
    pub(super) fn of_pools(&self, has_begun: impl Fn(&str) -> bool) -> impl Iterator<Item = &Note> {
        self.known.values().filter(move |note| !has_begun(&note.pool))
    }

    /// Whole or not at all.
    pub(super) fn write(&self, copies: Vec<Note>) -> io::Result<()> {
        use std::io::Write as _;
        let mut new = self.path.as_os_str().to_owned();
        new.push(".new");
        let mut file = fs::File::create(&new)?;
        serde_json::to_writer_pretty(&mut file, &Text { copies })?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&new, &self.path)
    }
}
