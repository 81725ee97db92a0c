//! Further files that a configuration names.

use std::path::{Path, PathBuf};

use crate::{
    config::Diagnostic,
    frontdoor::mcrouter::dump::{Origin, Texts},
};

/// Files of one configuration.
const FILES: usize = 1_000;
/// Bytes of all of them.
const BYTES: usize = 64 << 20;

/// The files, which are read once each.
#[derive(Debug)]
pub(super) struct Sources<'a> {
    origin: Origin<'a>,
    folder: PathBuf,
    files: Texts,
    bytes: usize,
}

impl<'a> Sources<'a> {
    pub(super) fn new(origin: Origin<'a>, folder: Option<PathBuf>) -> Self {
        Self {
            origin,
            folder: folder.unwrap_or_default(),
            files: Texts::new(),
            bytes: 0,
        }
    }

    /// The text that is imported as `path`: a path from the folder of the configuration, or `file:PATH`.
    pub(super) fn imported(&mut self, path: &str) -> Result<String, Diagnostic> {
        match path.strip_prefix("file:") {
            Some(path) => self.named(path),
            None => self.read(self.folder.join(path)),
        }
    }

    /// The text of the file at `path`, which is a path from the working directory.
    pub(super) fn named(&mut self, path: &str) -> Result<String, Diagnostic> {
        self.read(Path::new(path).to_owned())
    }

    fn read(&mut self, path: PathBuf) -> Result<String, Diagnostic> {
        if let Some(text) = self.files.get(&path).filter(|text| !text.is_empty()) {
            return Ok(text.clone());
        }
        if self.files.len() >= FILES {
            return Err(Diagnostic::whole(format!("more than {FILES} files are read")));
        }
        let read = self.origin.read(&path);
        // A file that is missing now is followed, too.
        let text = read.as_ref().map_or_else(|_| String::new(), Clone::clone);
        self.bytes = self.bytes.saturating_add(text.len());
        self.files.insert(path, text);
        if self.bytes > BYTES {
            return Err(Diagnostic::whole(format!(
                "files of more than {BYTES} bytes are read"
            )));
        }
        read
    }

    pub(super) fn into_files(self) -> Texts {
        self.files
    }
}
