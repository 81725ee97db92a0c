//! The state file on its disk. One that is older than the newest missed write would cost a stale read: a file
//! that cannot be written is removed, and while it cannot be removed either, no write goes on without a copy.
//!
//! * `record`: the contents of the file
//! * `lock`: one process at a time uses it
//! * `writer`: it is written by a thread of its own
#![allow(
    clippy::disallowed_types,
    reason = "runs on a thread of its own and on the control thread"
)]

mod lock;
mod record;
mod writer;

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use self::{lock::Lock, record::Contents};
pub use self::{
    record::{PreviousRun, Record},
    writer::{WriteReport, Writer},
};

/// An open state file.
#[derive(Debug)]
struct StateFile {
    path: PathBuf,
    left: RestartState,
    boot_id: Option<String>,
    _lock: Lock,
}

/// The state that a restart would find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartState {
    /// The contents that were to be written last.
    Newest,
    /// No file: it trusts no copy.
    Nothing,
    /// Earlier contents, which may be wrong.
    Older,
}

impl StateFile {
    /// Locks the file, reads it if it is there, and writes that it is in use: whatever ends this process now,
    /// it was no clean end.
    ///
    /// # Errors
    /// The file cannot be locked, read, understood or written; the text says what to do.
    fn open(path: &Path) -> io::Result<(Self, PreviousRun)> {
        let told = |error: io::Error, text: &str| {
            io::Error::new(error.kind(), format!("{} {text}: {error}", path.display()))
        };
        let lock = Lock::take(path)?;
        let mut is_first = false;
        let contents = match fs::read(path) {
            Ok(text) => record::read(&text).map_err(|error| {
                told(
                    error,
                    "is no state file (remove it, and every copy is repaired before it is read)",
                )
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                is_first = lock.is_new;
                Contents::default()
            }
            Err(error) => return Err(told(error, "cannot be read")),
        };
        let boot_id = record::boot_id();
        let known = PreviousRun::new(contents, boot_id.as_deref(), is_first);
        let file = Self {
            path: path.to_owned(),
            left: RestartState::Newest,
            boot_id,
            _lock: lock,
        };
        file.write(known.records().cloned().collect(), false)
            .map_err(|error| told(error, "cannot be written"))?;
        Ok((file, known))
    }

    /// Writes these records, or else removes the file. `clean`: this is the last write, and no request is
    /// unanswered.
    fn keep(&mut self, copies: Vec<Record>, clean: bool) -> RestartState {
        let path = self.path.display();
        let left = match self.write(copies, clean) {
            Ok(()) => {
                if self.left != RestartState::Newest {
                    tracing::info!(%path, "the state file is written again");
                }
                RestartState::Newest
            }
            Err(error) => match self.remove() {
                Ok(()) => {
                    if self.left != RestartState::Nothing {
                        tracing::error!(
                            %path, %error,
                            "cannot write which copies missed writes, so the state file is removed: a \
                             restart would find none, trust no copy and flush each. Tried again every \
                             second: is its disk full, or gone?"
                        );
                    }
                    RestartState::Nothing
                }
                Err(stays) => {
                    if self.left != RestartState::Older {
                        tracing::error!(
                            %path, %error, %stays,
                            "can neither write which copies missed writes nor remove the old state file, \
                             which a restart would believe: writes that a copy misses are refused. Tried \
                             again every second: is its disk read-only?"
                        );
                    }
                    RestartState::Older
                }
            },
        };
        self.left = left;
        left
    }

    /// Whole or not at all.
    fn write(&self, copies: Vec<Record>, clean: bool) -> io::Result<()> {
        let contents = Contents {
            clean,
            boot_id: self.boot_id.clone(),
            copies,
        };
        let mut new = self.path.as_os_str().to_owned();
        new.push(".new");
        let mut file = fs::File::create(&new)?;
        serde_json::to_writer_pretty(&mut file, &contents)?;
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

    fn record() -> Record {
        let text = r#"{"copies": [
            {"pool": "cache", "address": "a:1", "pid": 1, "uptime_seconds": 2, "missed": "nothing"}]}"#;
        record::read(text.as_bytes()).unwrap().copies.remove(0)
    }

    fn known(path: &Path) -> usize {
        StateFile::open(path).unwrap().1.records().count()
    }

    #[test]
    fn end_is_clean_only_if_the_file_says_so() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("state");
        let clean = || StateFile::open(&path).unwrap().1.clean;
        assert!(!clean(), "there was none");
        assert!(!clean(), "it was opened, and no more");
        StateFile::open(&path).unwrap().0.keep(vec![record()], true);
        assert!(clean());
        assert!(!clean(), "it was in use since");
    }

    #[test]
    fn first_process_is_told_from_one_that_finds_its_file_gone() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("state");
        let is_first = || StateFile::open(&path).unwrap().1.is_first;
        assert!(is_first());
        assert!(!is_first());
        fs::remove_file(&path).unwrap();
        assert!(!is_first());
    }

    #[test]
    fn file_that_cannot_be_written_is_not_found_by_a_restart() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("state");
        let (mut file, _) = StateFile::open(&path).unwrap();
        assert_eq!(file.keep(vec![record()], false), RestartState::Newest);
        drop(file);
        assert_eq!(known(&path), 1);

        let (mut file, _) = StateFile::open(&path).unwrap();
        let obstacle = folder.path().join("state.new");
        fs::create_dir(&obstacle).unwrap();
        assert_eq!(file.keep(vec![record()], false), RestartState::Nothing);
        assert!(!path.exists());
        assert_eq!(
            file.keep(vec![record()], false),
            RestartState::Nothing,
            "it is gone already"
        );

        fs::remove_dir(&obstacle).unwrap();
        assert_eq!(file.keep(vec![record()], false), RestartState::Newest);
        drop(file);
        assert_eq!(known(&path), 1);

        let (mut file, _) = StateFile::open(&path).unwrap();
        folder.close().unwrap();
        assert_eq!(
            file.keep(vec![record()], false),
            RestartState::Nothing,
            "its folder is gone, too"
        );
    }

    #[test]
    fn file_that_can_be_neither_written_nor_removed_is_known_to_be_old() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("state");
        let (mut file, _) = StateFile::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(file.keep(vec![record()], false), RestartState::Older);
        fs::remove_dir(&path).unwrap();
        assert_eq!(file.keep(vec![record()], false), RestartState::Newest);
    }
}
