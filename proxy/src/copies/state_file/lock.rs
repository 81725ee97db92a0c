//! A lock for the state file: two processes would overwrite each other's records of missed writes.

use std::{
    fs::{File, TryLockError},
    io::{Error, ErrorKind, Read, Result, Write},
    path::Path,
};

/// The lock on a state file. The kernel releases it when the process ends. It is on a file beside the state
/// file, which is replaced with each write.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
    /// No process has ever had it.
    pub(super) is_new: bool,
}

impl Lock {
    /// # Errors
    /// Another process has it, or it cannot be locked; the text says what to do.
    pub(super) fn take(path: &Path) -> Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let place = Path::new(&name).display();
        let told = |kind: ErrorKind, text: String| Err(Error::new(kind, text));
        let is_new = !Path::new(&name).exists();
        let mut file = match File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&name)
        {
            Ok(file) => file,
            Err(error) => return told(error.kind(), format!("{place} cannot be written: {error}")),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                let holder = match holder.trim() {
                    "" => String::new(),
                    pid => format!(" (pid {pid})"),
                };
                return told(
                    ErrorKind::WouldBlock,
                    format!(
                        "{} is used by another process{holder}; stop that one, or give this one a `state` \
                         of its own",
                        path.display()
                    ),
                );
            }
            Err(TryLockError::Error(error)) => {
                return told(
                    error.kind(),
                    format!(
                        "{place} cannot be locked: {error}; some network file systems cannot: put `state` on \
                         a disk of this host"
                    ),
                );
            }
        }
        let written = file
            .set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        match written {
            Ok(()) => Ok(Self { _file: file, is_new }),
            Err(error) => told(error.kind(), format!("{place} cannot be written: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;

    use super::*;

    #[test]
    fn the_second_is_refused_and_told_who_is_first() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("state");
        let first = Lock::take(&path).unwrap();
        let refused = Lock::take(&path).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains(&format!("(pid {})", std::process::id())),
            "{refused}"
        );
        assert!(first.is_new);
        drop(first);
        assert!(!Lock::take(&path).unwrap().is_new);
    }

    #[test]
    fn where_nothing_can_be_locked_it_is_said_so() {
        let folder = tempdir().unwrap();
        let error = Lock::take(&folder.path().join("none/state")).unwrap_err();
        assert!(
            error.to_string().contains("state.lock cannot be written"),
            "{error}"
        );
    }
}
