//! The contents of a set of files, once they are known to fit each other.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    Error, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};

use super::{
    TlsError,
    expiry::expiry,
    files::{Authorities, Contents, Files},
    provider,
};
use crate::config::schema::Identity;

/// A certificate with its key, and authorities.
pub(super) struct Set {
    /// The certificate that is shown; `None` to show no certificate.
    pub(super) identity: Option<Arc<CertifiedKey>>,
    /// The authorities that must have signed the other end's certificate; `None` if it needs no certificate.
    pub(super) authorities: Option<Arc<RootCertStore>>,
    /// The files with certificates that are shown or trusted, and until when the first of each to end is
    /// valid, in seconds since 1970.
    pub(super) expiries: Vec<(PathBuf, i64)>,
}

impl Set {
    /// Parses the contents of these files.
    ///
    /// # Errors
    /// A file is not what it should be, or they do not fit each other.
    pub(super) fn of(files: &Files, contents: &Contents) -> Result<Self, TlsError> {
        let mut expiries = Vec::new();
        let identity = match (&files.identity, &contents.identity) {
            (Some(names), Some([certificate, key])) => {
                let chain = certificates(&names.certificate, certificate)?;
                expiries.extend(first_end(&names.certificate, &chain));
                Some(certified(names, chain, key)?)
            }
            _ => None,
        };
        let authorities = match &contents.authorities {
            None => None,
            Some((path, text)) => {
                let all = certificates(path, text)?;
                // Each of the system's authorities expires some day, and others remain.
                if files.authorities != Authorities::System {
                    expiries.extend(first_end(path, &all));
                }
                Some(Arc::new(roots(path, all, &files.authorities)?))
            }
        };
        Ok(Self {
            identity,
            authorities,
            expiries,
        })
    }
}

fn certificates(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    match all {
        Ok(all) if all.is_empty() => Err(TlsError::file(path, "there is no certificate in it")),
        Ok(all) => Ok(all),
        Err(error) => Err(TlsError::file(path, error)),
    }
}

/// The end of the certificate of this file that ends first.
fn first_end(path: &Path, all: &[CertificateDer<'_>]) -> Option<(PathBuf, i64)> {
    let ends = all.iter().filter_map(|certificate| expiry(certificate));
    Some((path.to_owned(), ends.min()?))
}

fn certified(
    names: &Identity,
    chain: Vec<CertificateDer<'static>>,
    key: &[u8],
) -> Result<Arc<CertifiedKey>, TlsError> {
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| TlsError::file(&names.key, error))?;
    match CertifiedKey::from_der(chain, key, &provider()) {
        Ok(certified) => Ok(Arc::new(certified)),
        Err(Error::InconsistentKeys(_)) => Err(TlsError::Mismatch {
            certificate: names.certificate.clone(),
            key: names.key.clone(),
        }),
        Err(Error::InvalidCertificate(why)) => Err(TlsError::file(&names.certificate, format!("{why:?}"))),
        Err(why) => Err(TlsError::file(&names.key, why)),
    }
}

fn roots(
    path: &Path,
    all: Vec<CertificateDer<'static>>,
    authorities: &Authorities,
) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    if *authorities == Authorities::System {
        // It may hold certificates from before there were rules.
        roots.add_parsable_certificates(all);
    } else {
        for certificate in all {
            roots
                .add(certificate)
                .map_err(|error| TlsError::file(path, error))?;
        }
    }
    Ok(roots)
}
