//! The files of one set, read into memory.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use xxhash_rust::xxh3::Xxh3Default;

use super::TlsError;
use crate::config::{file, schema::Identity};

/// The files in which systems keep the list of authorities that they trust.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// Bytes of one file at most.
const LIMIT: u64 = 4 << 20;

/// The authorities of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Authorities {
    /// None is needed.
    Nobody,
    /// Those in this file.
    File(PathBuf),
    /// Those that the system trusts.
    System,
}

/// The files of one set.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) identity: Option<Identity>,
    pub(super) authorities: Authorities,
}

/// The stamp of a file, which tells its versions apart without reading it; `None` if there is no file.
pub(super) type Stamp = Option<(u64, u64, u64, [i64; 4])>;

/// The contents of a set, read one after the other.
pub(super) struct Contents {
    /// Certificate and key.
    pub(super) identity: Option<[Vec<u8>; 2]>,
    /// The authorities, and where they stand.
    pub(super) authorities: Option<(PathBuf, Vec<u8>)>,
}

impl Files {
    /// The versions of all files.
    pub(super) fn stamps(&self) -> Vec<Stamp> {
        let identity = self.identity.iter();
        let identity = identity.flat_map(|identity| [&*identity.certificate, &*identity.key]);
        let authorities = match &self.authorities {
            Authorities::Nobody => None,
            Authorities::File(path) => Some(path.as_path()),
            Authorities::System => system(),
        };
        identity.chain(authorities).map(stamp).collect()
    }

    /// Reads all files.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub(super) fn read(&self) -> Result<Contents, TlsError> {
        let identity = match &self.identity {
            Some(identity) => Some([read(&identity.certificate)?, read(&identity.key)?]),
            None => None,
        };
        let authorities = match &self.authorities {
            Authorities::Nobody => None,
            Authorities::File(path) => Some((path.clone(), read(path)?)),
            Authorities::System => {
                let path = system().ok_or(TlsError::NoAuthorities)?;
                Some((path.to_owned(), read(path)?))
            }
        };
        Ok(Contents {
            identity,
            authorities,
        })
    }
}

impl Contents {
    /// A number that other contents do not have.
    pub(super) fn digest(&self) -> u128 {
        let mut hasher = Xxh3Default::new();
        let identity = self.identity.iter().flatten();
        for text in identity.chain(self.authorities.as_ref().map(|(_, text)| text)) {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text);
        }
        hasher.digest128()
    }
}

/// The system's list of authorities.
fn system() -> Option<&'static Path> {
    SYSTEM.iter().map(Path::new).find(|path| path.exists())
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    file::read_bytes(path, LIMIT).map_err(|error| TlsError::file(path, error))
}

fn stamp(path: &Path) -> Stamp {
    let meta = fs::metadata(path).ok()?;
    let times = [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()];
    Some((meta.dev(), meta.ino(), meta.size(), times))
}
