//! Keys in a folder.

use std::{
    fs, io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use super::authority::Authority;

/// Keys cannot be made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum KeysError {
    /// The folder cannot be written to, or the authority in it cannot be read.
    #[error("{path}: {source}", path = path.display())]
    File { path: PathBuf, source: io::Error },
    /// The authority in the folder is none.
    #[error("the authority's files cannot be used: {0}")]
    Authority(#[from] rcgen::Error),
}

fn read(path: &Path) -> Result<Option<String>, KeysError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(KeysError::File {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Writes a file that only its owner reads. An existing one is left alone.
fn write(path: &Path, text: &str) -> Result<(), KeysError> {
    let told = |source| KeysError::File {
        path: path.to_owned(),
        source,
    };
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    io::Write::write_all(&mut options.open(path).map_err(told)?, text.as_bytes()).map_err(told)
}

/// Makes an authority in `folder`, unless there is one, and a certificate for each of these names. Returns
/// the files that were written.
///
/// # Errors
/// See [`KeysError`].
pub fn make_keys(folder: &Path, names: &[String]) -> Result<Vec<PathBuf>, KeysError> {
    fs::create_dir_all(folder).map_err(|source| KeysError::File {
        path: folder.to_owned(),
        source,
    })?;
    let mut written = Vec::new();
    let (ca, ca_key) = (folder.join("ca.pem"), folder.join("ca.key"));
    let authority = match read(&ca_key)? {
        Some(key) => Authority::of(&key)?,
        None => {
            let (authority, made) = Authority::make()?;
            write(&ca_key, &made.key)?;
            write(&ca, &made.certificate)?;
            written.extend([ca, ca_key]);
            authority
        }
    };
    for name in names {
        let signed = authority.sign(name, None)?;
        let (path, key_path) = (
            folder.join(format!("{name}.pem")),
            folder.join(format!("{name}.key")),
        );
        write(&key_path, &signed.key)?;
        write(&path, &signed.certificate)?;
        written.extend([path, key_path]);
    }
    Ok(written)
}
