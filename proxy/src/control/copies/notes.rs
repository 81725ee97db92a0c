//! The state file: every copy that this process knew, the life in which its server was last met, and whether it owes writes.
//! A copy that the file does not know is not trusted, so none costs a repair and never a stale read. One that is older than the
//! newest debt would cost that: what cannot be written is removed, and while not even that works nobody goes on without a copy.

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
    left: Left,
}

/// What a restart would find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// What was noted last.
    Newest,
    /// No file: it trusts nobody.
    Nothing,
    /// What was noted earlier, and may be wrong.
    Older,
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
            left: Left::Newest,
        };
        notes
            .write(notes.known.values().cloned().collect())
            .map_err(|error| place(error, "written"))?;
        Ok(notes)
    }

    /// What was known of this copy.
    pub(super) fn of(&self, member: &Member) -> Option<&Note> {
        self.known.get(&(member.pool.to_string(), member.endpoint()))
    }

    /// Those of pools that have had no members yet, as nobody has named them.
    pub(super) fn of_pools(&self, has_begun: impl Fn(&str) -> bool) -> impl Iterator<Item = &Note> {
        self.known.values().filter(move |note| !has_begun(&note.pool))
    }

    /// Writes them down, or else removes what was written before.
    pub(super) fn keep(&mut self, copies: Vec<Note>) -> Left {
        let path = self.path.display();
        let left = match self.write(copies) {
            Ok(()) => {
                if self.left != Left::Newest {
                    tracing::info!(%path, "which copies owe writes is noted again");
                }
                Left::Newest
            }
            Err(error) => match self.remove() {
                Ok(()) => {
                    if self.left != Left::Nothing {
                        tracing::error!(%path, %error, "cannot note which copies owe writes, so the file is removed: a restart would find none, trust no copy and flush each. Tried again every second: is its disk full, or gone?");
                    }
                    Left::Nothing
                }
                Err(stays) => {
                    if self.left != Left::Older {
                        tracing::error!(%path, %error, %stays, "can neither note which copies owe writes nor remove the old file, which a restart would believe: writes that a copy misses are refused. Tried again every second: is its disk read-only?");
                    }
                    Left::Older
                }
            },
        };
        self.left = left;
        left
    }

    /// Whole or not at all.
    fn write(&self, copies: Vec<Note>) -> io::Result<()> {
        use std::io::Write as _;
        let mut new = self.path.as_os_str().to_owned();
        new.push(".new");
        let mut file = fs::File::create(&new)?;
        serde_json::to_writer_pretty(&mut file, &Text { copies })?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        self.sync_folder()
    }

    fn remove(&self) -> io::Result<()> {
        let unless_gone = |result: io::Result<()>| match result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        unless_gone(fs::remove_file(&self.path))?;
        unless_gone(self.sync_folder())
    }

    /// Names, too, outlive a loss of power only when they are on the disk.
    fn sync_folder(&self) -> io::Result<()> {
        let folder = self.path.parent().filter(|folder| *folder != Path::new(""));
        match fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all() {
            // Not every file system can do it.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;

    use super::*;

    fn note() -> Note {
        Note {
            pool: "cache".to_owned(),
            address: "a:1".to_owned(),
            pid: Some(1),
            uptime_seconds: Some(2),
            owes: None,
        }
    }

    #[test]
    fn what_cannot_be_written_is_not_found_by_a_restart() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("state");
        let mut notes = Notes::open(&path).unwrap();
        assert_eq!(notes.keep(vec![note()]), Left::Newest);
        assert_eq!(Notes::open(&path).unwrap().known.len(), 1);

        let obstacle = folder.path().join("state.new");
        fs::create_dir(&obstacle).unwrap();
        assert_eq!(notes.keep(vec![note()]), Left::Nothing);
        assert!(!path.exists());
        assert_eq!(notes.keep(vec![note()]), Left::Nothing, "it is gone already");

        fs::remove_dir(&obstacle).unwrap();
        assert_eq!(notes.keep(vec![note()]), Left::Newest);
        assert_eq!(Notes::open(&path).unwrap().known.len(), 1);

        folder.close().unwrap();
        assert_eq!(notes.keep(vec![note()]), Left::Nothing, "its folder is gone, too");
    }

    #[test]
    fn what_can_be_neither_written_nor_removed_is_known_to_be_old() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("state");
        let mut notes = Notes::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(notes.keep(vec![note()]), Left::Older);
        fs::remove_dir(&path).unwrap();
        assert_eq!(notes.keep(vec![note()]), Left::Newest);
    }
}
