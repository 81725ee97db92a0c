//! The certificate that the process makes for itself, for clients that want TLS where no certificate is
//! named.
//!
//! Nobody has signed it: it keeps what is said from those who listen, and proves nothing.

use std::sync::Arc;

use rcgen::generate_simple_self_signed;
use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    sign::CertifiedKey,
};

use super::{TlsError, provider};

/// The name in the certificate.
const NAME: &str = "proxima";

/// A new certificate with its key.
pub(super) fn own() -> Result<Arc<CertifiedKey>, TlsError> {
    let made = generate_simple_self_signed([NAME.to_owned()]);
    let made = made.map_err(|error| TlsError::Library(error.to_string()))?;
    let certificate = CertificateDer::from(made.cert.der().to_vec());
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    Ok(Arc::new(CertifiedKey::from_der(
        vec![certificate],
        key,
        &provider(),
    )?))
}
