//! A daemon as twemproxy is one: detached, with its number in a file.

use std::{
    env,
    ffi::OsString,
    fs, io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::frontdoor::nutcracker::DETACHED;

/// Starts this program once more with the same arguments, detached. That one is the daemon.
///
/// # Errors
/// It cannot be started.
pub fn detach(arguments: impl IntoIterator<Item = OsString>) -> io::Result<()> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let name = arguments.first().cloned().unwrap_or_default();
    let is_called_so = Path::new(&name)
        .file_name()
        .is_some_and(|name| name == "nutcracker");
    // The arguments of twemproxy's begin behind the name that it is called by.
    let at = (if is_called_so { 1 } else { 2 }).min(arguments.len());
    arguments.insert(at, format!("--{DETACHED}").into());
    Command::new(env::current_exe()?)
        .arg0(name)
        .args(arguments.into_iter().skip(1))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(drop)
}

/// Leaves the session of the terminal.
pub fn leave_terminal() {
    // It fails only where this process leads a session already.
    let _ = rustix::process::setsid();
}

/// A file with the number of this process. It is removed at the end, if that number still stands in it.
#[derive(Debug)]
pub struct PidFile(PathBuf);

impl PidFile {
    /// Writes the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(path: &Path) -> io::Result<Self> {
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
