//! Follows files by `stat`, five times a second. This works alike for symbolic links, renames, mounted
//! ConfigMaps and network file systems, where inotify, which watches one inode, does not.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Tells one version of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let meta = fs::metadata(path).ok()?;
        Some(Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
        })
    }
}

/// The files of one configuration.
#[derive(Debug, Default)]
pub(in crate::control) struct FileWatcher {
    seen: Vec<(PathBuf, Option<Stamp>)>,
}

impl FileWatcher {
    /// Returns whether any of these files has changed since the last call. The first call for a file only
    /// remembers it.
    pub(in crate::control) fn changed(&mut self, files: Vec<PathBuf>) -> bool {
        let now: Vec<_> = files
            .into_iter()
            .map(|file| {
                let stamp = Stamp::of(&file);
                (file, stamp)
            })
            .collect();
        let changed = now.iter().any(|(file, stamp)| {
            self.seen
                .iter()
                .any(|(known, before)| known == file && before != stamp)
        });
        self.seen = now;
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::FileWatcher;

    #[test]
    fn sees_rewrites_renames_and_retargeted_links() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (file, other, link) = (path("a"), path("b"), path("link"));
        std::fs::write(&file, "1").unwrap();
        std::fs::write(&other, "22").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut watcher = FileWatcher::default();
        let files = || vec![file.clone(), link.clone()];
        assert!(!watcher.changed(files()), "seen for the first time");
        assert!(!watcher.changed(files()));
        std::fs::write(&file, "111").unwrap();
        assert!(watcher.changed(files()));
        std::fs::rename(&other, &file).unwrap();
        assert!(watcher.changed(files()));
        std::fs::remove_file(&link).unwrap();
        assert!(watcher.changed(files()));
        assert!(!watcher.changed(files()));
    }
}
