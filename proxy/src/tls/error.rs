//! The reasons why TLS cannot be set up.

use std::path::{Path, PathBuf};

/// The files of a set, or the name of a server, cannot be used. The operator has to correct them.
#[allow(missing_docs, reason = "the messages name the fields")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is not what it should be.
    #[error("{}: {problem}", path.display())]
    File { path: PathBuf, problem: String },
    /// The key of another certificate stands beside this one.
    #[error("{}: this is not the key of {}", key.display(), certificate.display())]
    Mismatch { certificate: PathBuf, key: PathBuf },
    /// This system has no list of authorities where one is expected.
    #[error("this system has no list of authorities: name a file with them in `ca`")]
    NoAuthorities,
    /// No certificate can have this name.
    #[error("`{0}` is no name that a certificate can have: write it in `name`")]
    Name(String),
    /// The library refuses what it is given.
    #[error("{0}")]
    Library(String),
}

impl TlsError {
    /// A problem with this file.
    pub(super) fn file(path: &Path, problem: impl ToString) -> Self {
        Self::File {
            path: path.to_owned(),
            problem: problem.to_string(),
        }
    }
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        Self::Library(error.to_string())
    }
}
