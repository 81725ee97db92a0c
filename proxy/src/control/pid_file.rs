//! The file with the number of the process, for those who manage it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A file with the number of this process. It is removed at the end, if that number still stands in it.
#[derive(Debug)]
pub(super) struct PidFile(PathBuf);

impl PidFile {
    /// Writes the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write(path: &Path) -> io::Result<Self> {
        fs::write(path, std::process::id().to_string())?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Another process may have written its own number meanwhile. Whoever has removed the file has done
        // what is to be done.
        let own = std::process::id().to_string();
        if fs::read_to_string(&self.0).is_ok_and(|number| number == own) {
            let _ = fs::remove_file(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_file_is_removed_at_the_end_unless_another_process_has_written_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        drop(PidFile::write(&path).unwrap());
        assert!(!path.exists());
        let own = PidFile::write(&path).unwrap();
        fs::write(&path, "1").unwrap();
        drop(own);
        assert_eq!(fs::read_to_string(&path).unwrap(), "1");
    }
}
