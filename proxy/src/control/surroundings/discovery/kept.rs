//! The last good list on disk, for a start while whoever names it does not answer.

use std::{
    ffi::OsString,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{task::spawn_blocking, time::timeout};

use crate::{
    config::file,
    members::{
        discovery::{LONGEST, NodeList},
        endpoints::EndpointList,
    },
};

/// The folder for what a service keeps, where its manager names none.
const FOLDER: &str = "/var/lib/proxima";

/// Time that is waited for the disk.
const DISK: Duration = Duration::from_secs(4);

/// A list that is kept.
pub(in crate::control) trait Kept: Sized + Send + 'static {
    /// The most bytes of a text that is read.
    const LONGEST: usize;

    /// Reads the text that was kept.
    ///
    /// # Errors
    /// It is no such list.
    fn parse(text: &[u8]) -> Result<Self, String>;
}

impl Kept for NodeList {
    const LONGEST: usize = LONGEST;

    fn parse(text: &[u8]) -> Result<Self, String> {
        Self::parse(text).map_err(|error| error.to_string())
    }
}

impl Kept for EndpointList {
    const LONGEST: usize = 8 << 20;

    fn parse(text: &[u8]) -> Result<Self, String> {
        Self::parse(text).map_err(|error| error.to_string())
    }
}

/// Keeps one list.
#[derive(Clone, Debug)]
pub(in crate::control) struct Keeper {
    path: PathBuf,
    /// Whether lists are written. Who only looks at a configuration leaves everything as it is.
    writes: bool,
}

impl Keeper {
    /// Keeps the list in the file that the configuration names, or in one that is named after what it is of.
    pub(in crate::control) fn new(named: Option<&Path>, of: &str, writes: bool) -> Self {
        let default = || folder(std::env::var_os("STATE_DIRECTORY")).join(file_name(of));
        let path = named.map_or_else(default, Path::to_owned);
        Self { path, writes }
    }

    /// The list that was kept. `None`: no usable list was kept.
    pub(in crate::control) async fn read<T: Kept>(&self) -> Option<T> {
        let path = self.path.clone();
        let read = spawn_blocking(move || read::<T>(&path)).await;
        match read.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(list) => Some(list),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(%path, %error, "the list of nodes that was kept cannot be used");
                None
            }
        }
    }

    /// Keeps this list. A list that cannot be kept serves all the same.
    pub(in crate::control) async fn write(&self, text: String) {
        if !self.writes {
            return;
        }
        let path = self.path.clone();
        let written = timeout(DISK, spawn_blocking(move || write(&path, &text))).await;
        let written = match written {
            Ok(ended) => ended.unwrap_or_else(|error| Err(io::Error::other(error))),
            // The endpoint is followed all the same.
            Err(_) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the disk does not answer",
            )),
        };
        if let Err(error) = written {
            let path = self.path.display();
            tracing::warn!(
                %path, %error,
                "the list of nodes cannot be kept for the next start. Name a file with `keep`"
            );
        }
    }
}

/// The first of the folders that the service's manager names.
fn folder(named: Option<OsString>) -> PathBuf {
    let first = named.and_then(|named| std::env::split_paths(&named).next());
    first
        .filter(|folder| folder.is_absolute())
        .unwrap_or_else(|| FOLDER.into())
}

fn file_name(of: &str) -> String {
    let plain = |c: char| match c {
        '[' | ']' | ':' | '/' => '_',
        c => c,
    };
    format!("{}.nodes", of.chars().map(plain).collect::<String>())
}

fn read<T: Kept>(path: &Path) -> io::Result<T> {
    let mut text = Vec::new();
    file::open(path)?.take(T::LONGEST as u64).read_to_end(&mut text)?;
    T::parse(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Whole or not at all.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    fs::create_dir_all(folder.unwrap_or(Path::new(".")))?;
    file::replace(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn list_is_found_again_and_damage_is_no_list() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below").join("nodes");
        let keeper = Keeper::new(Some(&path), "a.cfg:1", true);
        assert_eq!(keeper.read::<NodeList>().await, None);
        let list = NodeList::parse(b"7\na|10.0.0.1|1 b||2").unwrap();
        keeper.write(list.text()).await;
        assert_eq!(keeper.read().await, Some(list.clone()));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        fs::write(&path, "7\na|10.0.0.1").unwrap();
        assert_eq!(keeper.read::<NodeList>().await, None);
        Keeper::new(Some(&path), "a.cfg:1", false)
            .write(list.text())
            .await;
        assert_eq!(
            keeper.read::<NodeList>().await,
            None,
            "who only looks writes nothing"
        );
    }

    #[test]
    fn writes_at_the_same_time_leave_one_whole_list() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nodes");
        let texts = ["1\na||1 b||1\n", "2\na||1\n", "3\na||1 b||1 c||1\n"];
        std::thread::scope(|scope| {
            for text in texts {
                let path = &path;
                scope.spawn(move || (0..20).for_each(|_| write(path, text).unwrap()));
            }
        });
        assert!(texts.contains(&&*fs::read_to_string(&path).unwrap()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn default_file_is_named_after_what_the_list_is_of() {
        for (named, expected) in [
            (None, FOLDER),
            (Some("/a"), "/a"),
            (Some("/a:/b"), "/a"),
            (Some("a"), FOLDER),
            (Some(""), FOLDER),
        ] {
            assert_eq!(folder(named.map(Into::into)), Path::new(expected), "{named:?}");
        }
        assert_eq!(file_name("a.cfg.x:11211"), "a.cfg.x_11211.nodes");
        assert_eq!(file_name("[::1]:1"), "___1__1.nodes");
        assert_eq!(file_name("unix:/run/m"), "unix__run_m.nodes");
    }
}
