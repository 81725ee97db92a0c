//! All sets of certificates of the process.
#![allow(
    clippy::disallowed_types,
    reason = "the control thread makes and follows them; workers never ask here"
)]

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use parking_lot::Mutex;

use super::{
    Acceptor, Connector, TlsError,
    connector::{Settings, settings},
    file_watch::Look,
};
use crate::{
    config::schema::{ClientTls, ServerTls},
    event_log::kind,
    protocol::PasswordKey,
};

/// All sets of certificates of the process. Where two parts of a configuration name the same files, they are
/// one set.
#[derive(Debug, Default)]
pub struct Certificates {
    acceptors: Mutex<HashMap<ServerTls, Weak<Acceptor>>>,
    settings: Mutex<HashMap<ClientTls, Weak<Settings>>>,
    own: Mutex<Option<Arc<Acceptor>>>,
    password_key: Mutex<Option<Arc<PasswordKey>>>,
    renewed: AtomicU64,
    refused: AtomicU64,
}

/// The validity of a file's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The end of the one in use, in seconds since 1970.
    pub until: i64,
    /// The file has the certificate that is in use.
    pub is_current: bool,
}

impl Certificates {
    /// The acceptor of those who connect there.
    ///
    /// # Errors
    /// The files cannot be used.
    pub fn acceptor(&self, tls: &ServerTls) -> Result<Arc<Acceptor>, TlsError> {
        let known = &mut *self.acceptors.lock();
        if let Some(acceptor) = known.get(tls).and_then(Weak::upgrade) {
            return Ok(acceptor);
        }
        let acceptor = Arc::new(Acceptor::new(tls)?);
        known.insert(tls.clone(), Arc::downgrade(&acceptor));
        Ok(acceptor)
    }

    /// The same with a certificate that the process has made for itself, the same one for all listeners.
    ///
    /// # Errors
    /// None can be made.
    pub fn own_acceptor(&self) -> Result<Arc<Acceptor>, TlsError> {
        let own = &mut *self.own.lock();
        let made = match own.take() {
            Some(made) => made,
            None => Arc::new(Acceptor::with_own()?),
        };
        Ok(Arc::clone(own.insert(made)))
    }

    /// The key with which clients of any listener encrypt passwords where there is no TLS.
    ///
    /// # Errors
    /// None can be made.
    pub fn password_key(&self) -> Result<Arc<PasswordKey>, TlsError> {
        let key = &mut *self.password_key.lock();
        let made = match key.take() {
            Some(made) => made,
            None => {
                let made = PasswordKey::new().map_err(|error| TlsError::Library(error.to_string()))?;
                Arc::new(made)
            }
        };
        Ok(Arc::clone(key.insert(made)))
    }

    /// The connector for a server on this host. `None` for a server at a Unix socket, which has no host name.
    ///
    /// # Errors
    /// The files or the name cannot be used.
    pub fn connector(&self, tls: &ClientTls, host: Option<&str>) -> Result<Connector, TlsError> {
        let name = tls.name.as_deref().or(host);
        let name = name.ok_or_else(|| TlsError::Name(String::new()))?;
        Connector::new(self.settings(tls)?, name)
    }

    fn settings(&self, tls: &ClientTls) -> Result<Arc<Settings>, TlsError> {
        // The name is each server's own.
        let key = ClientTls {
            name: None,
            ..tls.clone()
        };
        let known = &mut *self.settings.lock();
        if let Some(settings) = known.get(&key).and_then(Weak::upgrade) {
            return Ok(settings);
        }
        let made = Arc::new(settings(&key)?);
        known.insert(key, Arc::downgrade(&made));
        Ok(made)
    }

    /// Returns whether anything uses certificates from files.
    pub fn are_used(&self) -> bool {
        !self.acceptors.lock().is_empty() || !self.settings.lock().is_empty()
    }

    /// Looks at all files, and uses those that have changed and can be used.
    pub fn look(&self) {
        for (tls, acceptor) in living(&self.acceptors) {
            self.note(&tls.identity.certificate, acceptor.look());
        }
        for (tls, settings) in living(&self.settings) {
            let identity = tls.identity.map(|identity| identity.certificate);
            let file = identity.or(tls.ca).unwrap_or_default();
            self.note(&file, settings.look());
        }
    }

    fn note(&self, file: &std::path::Path, look: Look) {
        let certificate = file.display();
        match look {
            Look::Same => {}
            Look::Renewed => {
                self.renewed.fetch_add(1, Relaxed);
                tracing::info!(target: kind::CERTIFICATES, %certificate, "certificates were read again: new connections use them");
            }
            Look::Refused(error) => {
                self.refused.fetch_add(1, Relaxed);
                tracing::error!(target: kind::CERTIFICATES, %certificate, %error, "new certificates cannot be used; the ones before stay in use");
            }
        }
    }

    /// The validity of the certificates in use, by file.
    pub fn validities(&self) -> BTreeMap<PathBuf, Validity> {
        let acceptors = living(&self.acceptors).into_iter();
        let acceptors = acceptors.map(|(_, acceptor)| acceptor.watch.expiries());
        let settings = living(&self.settings).into_iter();
        let settings = settings.map(|(_, settings)| settings.expiries());
        let mut all: BTreeMap<PathBuf, Validity> = BTreeMap::new();
        for (expiries, is_current) in acceptors.chain(settings) {
            for (file, until) in expiries {
                let known = all.entry(file).or_insert(Validity { until, is_current });
                known.until = known.until.min(until);
                known.is_current &= is_current;
            }
        }
        all
    }

    /// The number of times that changed files were taken into use, and that they could not be.
    pub fn looks(&self) -> [u64; 2] {
        [&self.renewed, &self.refused].map(|count| count.load(Relaxed))
    }
}

/// The sets that something uses. The others are forgotten.
fn living<K: Clone + Eq + std::hash::Hash, T>(known: &Mutex<HashMap<K, Weak<T>>>) -> Vec<(K, Arc<T>)> {
    let known = &mut *known.lock();
    known.retain(|_, set| set.strong_count() > 0);
    let living = known.iter();
    living
        .filter_map(|(files, set)| Some((files.clone(), set.upgrade()?)))
        .collect()
}
