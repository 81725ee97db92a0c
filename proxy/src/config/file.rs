//! Files that make up a configuration.
//!
//! Invariant: no file makes the process wait. It is looked at before it is read, and only a regular one is
//! read: a FIFO would block whoever opens it, and a device may have no end. What the process was started with
//! (`/dev/stdin`, `<(…)` of a shell) may be a pipe, which has some seconds to end.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Diagnostic;

/// Bytes of a file at most.
pub(crate) const LIMIT: u64 = 16 << 20;
/// A pipe that brings nothing for this long is given up.
const SILENCE: Duration = Duration::from_secs(5);

/// Reads a file as text. A byte order mark is skipped.
pub(crate) fn read(path: &Path) -> Result<String, Diagnostic> {
    let cannot = |why: String| Diagnostic::whole(format!("cannot be read: {why}"));
    let bytes = read_bytes(path, LIMIT).map_err(|error| cannot(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| cannot("it is not UTF-8".into()))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Reads a file of at most `limit` bytes.
///
/// # Errors
/// It cannot be read, is too large, or is no regular file.
pub(crate) fn read_bytes(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    let mut file = file.take(limit + 1);
    loop {
        match file.read_to_end(&mut bytes) {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => await_bytes(file.get_ref())?,
            Err(error) => return Err(error),
        }
    }
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it has more than {limit} bytes")));
    }
    Ok(bytes)
}

/// Puts a file with these bytes in the place of the one at this path: whole or not at all, and not before it is
/// on the disk.
///
/// # Errors
/// The folder or the disk does not take it. The old file stays then.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (new, mut file) = create_beside(path)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // What is left of it serves nobody.
        let _ = fs::remove_file(&new);
    }
    written?;
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    match File::open(folder.unwrap_or(Path::new(".")))?.sync_all() {
        // Not every file system can do it.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// A new file beside this one, which no other write has: two writers may replace one file, and a write that was
/// not waited for goes on.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut number = 0_u64;
    loop {
        let mut new = path.as_os_str().to_owned();
        new.push(format!(".{number}.new"));
        match File::create_new(&new) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            created => return Ok((new.into(), created?)),
        }
    }
}

/// Opens a file to read it, and waits for nobody.
///
/// # Errors
/// It cannot be opened, or is no regular file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    let kind = file.metadata()?.file_type();
    let what = match () {
        () if kind.is_file() => return Ok(file),
        () if kind.is_fifo() && is_inherited(path) => return Ok(file),
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a FIFO",
        () => "a device",
    };
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("it is {what}; put a regular file in its place"),
    ))
}

/// Is this a descriptor that the process was started with?
fn is_inherited(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

/// Waits until a pipe has more bytes, or has ended.
fn await_bytes(file: &File) -> io::Result<()> {
    let timeout = Timespec {
        tv_sec: SILENCE.as_secs() as i64,
        tv_nsec: 0,
    };
    let ready = poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&timeout))?;
    match ready {
        0 => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "nobody writes to this pipe",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::net::UnixListener};

    use super::*;

    fn refusal(path: &Path) -> String {
        read(path).unwrap_err().to_string()
    }

    #[test]
    fn only_a_regular_file_is_read_and_nothing_makes_the_reader_wait() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "\u{feff}text").unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        assert_eq!(read(&path("file")).unwrap(), "text");
        assert_eq!(read(&path("link")).unwrap(), "text");
        let made = std::process::Command::new("mkfifo").arg(path("fifo")).status();
        assert!(made.unwrap().success());
        std::os::unix::fs::symlink(path("fifo"), path("link to it")).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        for (name, why) in [
            ("fifo", "a FIFO"),
            ("link to it", "a FIFO"),
            ("", "a folder"),
            ("none", "No such"),
        ] {
            let told = refusal(&path(name));
            assert!(told.contains(why), "{name}: {told}");
        }
        refusal(&path("socket"));
        assert!(refusal(Path::new("/dev/zero")).contains("a device"));
    }

    #[test]
    fn file_that_is_too_large_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        File::create(&path).unwrap().set_len(LIMIT + 1).unwrap();
        assert!(refusal(&path).contains("more than 16777216 bytes"));
    }

    #[test]
    fn pipe_that_the_process_was_started_with_is_read_to_its_end() {
        use std::{io::Write as _, os::fd::AsRawFd as _, thread};

        let (reader, mut writer) = io::pipe().unwrap();
        let path = format!("/dev/fd/{}", reader.as_raw_fd());
        let read = thread::spawn(move || read(Path::new(&path)));
        for part in ["one ", "two"] {
            thread::sleep(Duration::from_millis(20));
            writer.write_all(part.as_bytes()).unwrap();
        }
        drop(writer);
        assert_eq!(read.join().unwrap().unwrap(), "one two");
        drop(reader);
    }
}
