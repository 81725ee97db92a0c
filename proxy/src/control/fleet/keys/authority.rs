//! The authority of a fleet.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};

use crate::control::fleet::security::NAME;

/// Clocks of peers may be behind by this much.
const EARLIER: Duration = Duration::hours(1);

/// An authority, by its key. Its certificate says nothing but that it is one.
pub(super) struct Authority(Issuer<'static, KeyPair>);

/// A certificate and its key, in PEM form.
pub(super) struct Signed {
    pub(super) certificate: String,
    pub(super) key: String,
}

fn params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
        .distinguished_name
        .push(DnType::CommonName, "proxima fleet authority");
    params
}

impl Authority {
    /// A new authority, with its certificate and its key.
    ///
    /// # Errors
    /// This system has no key for it.
    pub(super) fn make() -> Result<(Self, Signed), rcgen::Error> {
        let key = KeyPair::generate()?;
        let signed = Signed {
            certificate: params().self_signed(&key)?.pem(),
            key: key.serialize_pem(),
        };
        Ok((Self(Issuer::new(params(), key)), signed))
    }

    /// The authority that has this key, in PEM form.
    ///
    /// # Errors
    /// It is no key.
    pub(super) fn of(key: &str) -> Result<Self, rcgen::Error> {
        Ok(Self(Issuer::new(params(), KeyPair::from_pem(key)?)))
    }

    /// A certificate of a peer. `name` is for people: what proves a peer is who has signed. `life` is the time from
    /// now for which it holds; `None`: for ever.
    ///
    /// # Errors
    /// This system has no key for it.
    pub(super) fn sign(
        &self,
        name: &str,
        life: Option<(OffsetDateTime, Duration)>,
    ) -> Result<Signed, rcgen::Error> {
        let mut params = CertificateParams::new([NAME.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        // Two authorities of a fleet differ in their keys alone.
        params.use_authority_key_identifier_extension = true;
        if let Some((now, life)) = life {
            params.not_before = now - EARLIER;
            params.not_after = now + life;
        }
        let key = KeyPair::generate()?;
        Ok(Signed {
            certificate: params.signed_by(&key, &self.0)?.pem(),
            key: key.serialize_pem(),
        })
    }
}
