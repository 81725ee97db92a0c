//! The file with the number of the process, for those who manage it.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// The longest number, with the line end that others write behind it.
const LONGEST: u64 = 24;

/// A file with the number of this process. It is removed at the end, if that number still stands in it.
#[derive(Debug)]
pub(in crate::control) struct PidFile(PathBuf);

impl PidFile {
    /// Makes the file, in the place of one that an earlier process has left. No symbolic link is followed,
    /// and nothing but a file with a number is replaced: in a folder that others write to, a link may lead to
    /// a file of this user.
    ///
    /// # Errors
    /// It cannot be made, or something else is there.
    pub(in crate::control) fn write(path: &Path) -> io::Result<Self> {
        match number_in(path) {
            Ok(_) => fs::remove_file(path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut file = File::create_new(path)?;
        file.write_all(std::process::id().to_string().as_bytes())?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Another process may have written its own number meanwhile. Whoever has removed the file has done
        // what is to be done.
        let own = std::process::id().to_string();
        if number_in(&self.0).is_ok_and(|number| number == own) {
            let _ = fs::remove_file(&self.0);
        }
    }
}

/// The number in a file, which may be empty.
fn number_in(path: &Path) -> io::Result<String> {
    let refused = |why| Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    let opened = File::options()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path);
    let file = match opened {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            return refused(
                "a symbolic link is there and is not followed; remove it, or choose another path",
            );
        }
        opened => opened?,
    };
    let mut text = String::new();
    let is_read = file.metadata()?.is_file() && file.take(LONGEST + 1).read_to_string(&mut text).is_ok();
    let is_number = text.len() as u64 <= LONGEST && text.trim_end().bytes().all(|byte| byte.is_ascii_digit());
    match is_read && is_number {
        true => Ok(text.trim_end().to_owned()),
        false => refused("something that is no pid file is there and is not replaced; choose another path"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pid_file_of_an_earlier_process_is_replaced_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for left in ["", "123", "123\n"] {
            fs::write(path("pid"), left).unwrap();
            drop(PidFile::write(&path("pid")).unwrap());
        }
        fs::write(path("precious"), "precious").unwrap();
        fs::write(path("number"), "1".repeat(100)).unwrap();
        fs::create_dir(path("folder")).unwrap();
        for target in ["precious", "nothing", "pid"] {
            std::os::unix::fs::symlink(path(target), path(&format!("link to {target}"))).unwrap();
        }
        let made = std::process::Command::new("mkfifo").arg(path("fifo")).status();
        assert!(made.unwrap().success());
        for name in [
            "precious",
            "number",
            "folder",
            "fifo",
            "link to precious",
            "link to nothing",
            "link to pid",
        ] {
            let error = PidFile::write(&path(name)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{name}: {error}");
            assert!(fs::symlink_metadata(path(name)).is_ok(), "{name}");
        }
        assert_eq!(fs::read_to_string(path("precious")).unwrap(), "precious");
        assert!(!path("nothing").exists());
    }

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
