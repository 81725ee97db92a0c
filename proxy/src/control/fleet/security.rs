//! Mutual TLS among peers: a certificate of the fleet's authority makes a peer.

use std::{
    fs, io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};

use crate::config::{file, schema::Tls};

/// The name that every certificate of a fleet has. Peers come and go with their addresses; what proves a peer
/// is the authority that has signed for it.
pub(crate) const NAME: &str = "proxima-fleet";

/// How channels are protected.
pub(super) struct Security {
    files: Option<Tls>,
    loaded: Mutex<Option<Loaded>>,
}

#[derive(Clone)]
struct Loaded {
    changed: Vec<SystemTime>,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Security {
    /// Reads the files; `None`: channels are not protected.
    ///
    /// # Errors
    /// A file cannot be read, or is not what it should be; the text names it.
    pub(super) fn open(files: Option<Tls>) -> io::Result<Self> {
        let loaded = files.as_ref().map(load).transpose()?;
        Ok(Self {
            files,
            loaded: Mutex::new(loaded),
        })
    }

    fn current(&self) -> Option<Loaded> {
        let files = self.files.as_ref()?;
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded
            .as_ref()
            .is_some_and(|loaded| loaded.changed != changed(files))
        {
            match load(files) {
                Ok(fresh) => {
                    tracing::info!("fleet: certificates were read again");
                    *loaded = Some(fresh);
                }
                Err(error) => {
                    tracing::error!(%error, "fleet: new certificates cannot be used; the old ones are");
                    if let Some(loaded) = loaded.as_mut() {
                        loaded.changed = changed(files);
                    }
                }
            }
        }
        loaded.clone()
    }

    /// How this end connects; `None`: without protection.
    pub(super) fn client(&self) -> Option<Arc<ClientConfig>> {
        Some(self.current()?.client)
    }

    /// How this end accepts; `None`: without protection.
    pub(super) fn server(&self) -> Option<Arc<ServerConfig>> {
        Some(self.current()?.server)
    }
}

fn changed(files: &Tls) -> Vec<SystemTime> {
    let at = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
    [&files.certificate, &files.key, &files.ca]
        .iter()
        .map(|path| at(path).unwrap_or(SystemTime::UNIX_EPOCH))
        .collect()
}

fn load(files: &Tls) -> io::Result<Loaded> {
    let told = |path: &Path, error: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
    };
    let changed = changed(files);
    let read = |path: &Path| file::read_bytes(path, file::LIMIT).map_err(|error| told(path, &error));
    let chain = |path: &Path| -> io::Result<Vec<CertificateDer<'static>>> {
        let all: Vec<_> = CertificateDer::pem_slice_iter(&read(path)?)
            .collect::<Result<_, _>>()
            .map_err(|error| told(path, &error))?;
        match all.is_empty() {
            true => Err(told(path, &"there is no certificate")),
            false => Ok(all),
        }
    };
    let key = || PrivateKeyDer::from_pem_slice(&read(&files.key)?).map_err(|error| told(&files.key, &error));
    let mut roots = RootCertStore::empty();
    for certificate in chain(&files.ca)? {
        roots.add(certificate).map_err(|error| told(&files.ca, &error))?;
    }
    let roots = Arc::new(roots);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions = [&rustls::version::TLS13];
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
        .build()
        .map_err(|error| told(&files.ca, &error))?;
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .map_err(io::Error::other)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain(&files.certificate)?, key()?)
        .map_err(|error| told(&files.certificate, &error))?;
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain(&files.certificate)?, key()?)
        .map_err(|error| told(&files.certificate, &error))?;
    Ok(Loaded {
        changed,
        client: Arc::new(client),
        server: Arc::new(server),
    })
}
