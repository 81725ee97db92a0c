//! The last good configuration on disk, for a start that finds a bad one.
#![allow(
    clippy::disallowed_methods,
    reason = "looks at the age of a file at the start, and sets it"
)]

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::flags::Flags;
use crate::config::{Diagnostic, file};

const DEFAULT_ROOT: &str = "/var/mcrouter/config";

/// Letters of a path that do not stand in the name of its dump.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');

/// The folder with the files of the last good configuration.
#[derive(Clone, Debug)]
pub(super) struct Dump {
    folder: PathBuf,
    max_age: Duration,
}

impl Dump {
    /// The dump that the options ask for. `None` if no dump is kept. The folder that is used without an
    /// option must be there: an operator who wants a dump creates it.
    pub(super) fn of(flags: &Flags) -> Option<Self> {
        let root = PathBuf::from(flags.text("config-dump-root"));
        let is_wanted = match flags.is_given("config-dump-root") {
            true => !root.as_os_str().is_empty(),
            false => Path::new(DEFAULT_ROOT).is_dir(),
        };
        is_wanted.then(|| Self {
            folder: root.join(flags.text("service-name")).join(flags.router_name()),
            max_age: Duration::from_secs(flags.number("max-dumped-config-age")),
        })
    }

    /// Keeps the files of a configuration that is good.
    pub(super) fn keep(&self, texts: &Texts) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        // A file that may be missing, and is, has an empty text.
        for (path, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
            let kept = self.path_of(path);
            if file::read_bytes(&kept, file::LIMIT).is_ok_and(|kept| kept == text.as_bytes()) {
                // Its age counts from the last time that it was good.
                File::open(&kept)?.set_modified(SystemTime::now())?;
                continue;
            }
            let mut new = kept.clone().into_os_string();
            new.push(".new");
            fs::write(&new, text)?;
            fs::rename(new, kept)?;
        }
        Ok(())
    }

    /// The text of the file at `path` as it was when the configuration was last good.
    pub(super) fn read(&self, path: &Path) -> Result<String, Diagnostic> {
        let kept = self.path_of(path);
        let age = fs::metadata(&kept)
            .and_then(|about| about.modified())
            .map(|kept| {
                // A file from the future is a new one.
                SystemTime::now().duration_since(kept).unwrap_or_default()
            });
        match age {
            Ok(age) if age < self.max_age => file::read(&kept),
            Ok(age) => Err(Diagnostic::whole(format!("its dump is {} s old", age.as_secs()))),
            Err(error) => Err(Diagnostic::whole(format!("there is no dump of it: {error}"))),
        }
    }

    fn path_of(&self, path: &Path) -> PathBuf {
        let path = path.to_string_lossy();
        self.folder.join(utf8_percent_encode(&path, NAME).to_string())
    }
}

/// The source of a configuration's texts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin<'a> {
    /// From the files themselves.
    Files,
    /// From their dumps.
    Dump(&'a Dump),
}

impl Origin<'_> {
    /// The text of a file.
    pub(super) fn read(self, path: &Path) -> Result<String, Diagnostic> {
        match self {
            Self::Files => file::read(path),
            Self::Dump(dump) => dump.read(path),
        }
    }
}

/// The files of a configuration with their texts.
pub(super) type Texts = BTreeMap<PathBuf, String>;
