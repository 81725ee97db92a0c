//! A value made of a set of files, and made again when they change.
#![allow(
    clippy::disallowed_types,
    reason = "a worker takes the newest with each connection, and none waits for another to make it"
)]

use std::{path::PathBuf, sync::Arc};

use parking_lot::{Mutex, RwLock};

use super::{
    TlsError,
    files::{Authorities, Files, Stamp},
    set::Set,
};

/// A file may be written twice within the resolution of its stamp: for this many looks after a change it is
/// read again, whatever its stamp says.
const AGAIN: u8 = 3;

type Make<T> = Box<dyn Fn(&Set) -> Result<T, TlsError> + Send + Sync>;

/// A value made of a set of files.
pub(super) struct FileWatch<T> {
    files: Files,
    make: Make<T>,
    current: RwLock<Arc<T>>,
    seen: Mutex<FileState>,
}

/// The state of the files at the last look.
struct FileState {
    stamps: Vec<Stamp>,
    /// The digest of the last contents, or the reason why they could not be read.
    last: Result<u128, TlsError>,
    /// The reason why the last contents are not in use; `None` if they are.
    refused: Option<TlsError>,
    /// Looks that read the files whatever their stamps say.
    again: u8,
    /// The ends of the certificates in use, by file, in seconds since 1970.
    expiries: Vec<(PathBuf, i64)>,
}

/// The result of a look at files.
pub(super) enum Look {
    /// The files have not changed.
    Same,
    /// The new files are in use from now on.
    Renewed,
    /// What was in use before stays, for this reason.
    Refused(TlsError),
}

impl<T> FileWatch<T> {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// They cannot be used.
    pub(super) fn new(
        files: Files,
        make: impl Fn(&Set) -> Result<T, TlsError> + Send + Sync + 'static,
    ) -> Result<Self, TlsError> {
        // The stamps come first: a change while the files are read is seen in the next look.
        let stamps = files.stamps();
        let contents = files.read()?;
        let set = Set::of(&files, &contents)?;
        let made = make(&set)?;
        Ok(Self {
            files,
            make: Box::new(make),
            current: RwLock::new(Arc::new(made)),
            seen: Mutex::new(FileState {
                stamps,
                last: Ok(contents.digest()),
                refused: None,
                again: AGAIN,
                expiries: set.expiries,
            }),
        })
    }

    /// A value that no files have made, and that never changes.
    pub(super) fn unchanging(made: T) -> Self {
        let files = Files {
            identity: None,
            authorities: Authorities::Nobody,
        };
        Self {
            files,
            make: Box::new(|_| Err(TlsError::Library("there are no files".into()))),
            current: RwLock::new(Arc::new(made)),
            seen: Mutex::new(FileState {
                stamps: Vec::new(),
                last: Ok(0),
                refused: None,
                again: 0,
                expiries: Vec::new(),
            }),
        }
    }

    /// The value in use.
    pub(super) fn current(&self) -> Arc<T> {
        Arc::clone(&self.current.read())
    }

    /// The ends of the certificates in use by file, and whether the files say what is in use.
    pub(super) fn expiries(&self) -> (Vec<(PathBuf, i64)>, bool) {
        let seen = self.seen.lock();
        (seen.expiries.clone(), seen.refused.is_none())
    }

    /// Looks at the files, and uses what they say if they have changed and can be used.
    pub(super) fn look(&self) -> Look {
        let stamps = self.files.stamps();
        let seen = &mut *self.seen.lock();
        if stamps != seen.stamps {
            seen.stamps = stamps;
            seen.again = AGAIN;
        } else if seen.again > 0 {
            seen.again -= 1;
        } else {
            return Look::Same;
        }
        let read = self.files.read();
        let digest = match &read {
            Ok(contents) => Ok(contents.digest()),
            Err(error) => Err(error.clone()),
        };
        if digest == seen.last {
            return Look::Same;
        }
        seen.last = digest;
        let set = read.and_then(|contents| Set::of(&self.files, &contents));
        match set.and_then(|set| Ok(((self.make)(&set)?, set.expiries))) {
            Ok((made, expiries)) => {
                *self.current.write() = Arc::new(made);
                seen.expiries = expiries;
                seen.refused = None;
                Look::Renewed
            }
            Err(error) => {
                seen.refused = Some(error.clone());
                Look::Refused(error)
            }
        }
    }
}
