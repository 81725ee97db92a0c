//! Keys as they stand in a Secret, and what is due with them.
//!
//! An authority is exchanged in three runs, between which every peer has to see the Secret: the new one is trusted
//! as well; it signs; the former one is not trusted any more.

use rustls::pki_types::{CertificateDer, pem::PemObject};
use time::{Duration, OffsetDateTime};

use super::authority::{Authority, Signed};
use crate::tls::expiry;

/// Life of a certificate.
const LIFE: Duration = Duration::days(90);
/// A certificate that has less than this left is made anew.
const LEFT: Duration = Duration::days(30);

/// The keys of a fleet, in PEM form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bundle {
    /// The certificates of the authorities that are trusted.
    pub(super) authorities: String,
    /// The key of the authority that signs.
    pub(super) authority_key: String,
    /// The key of the authority that will sign, while the other one is exchanged.
    pub(super) next_key: String,
    /// The certificate of the peers, and its key.
    pub(super) certificate: String,
    pub(super) key: String,
}

/// What was done with the keys, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// There were none.
    Made,
    /// The certificate was made anew.
    Renewed,
    /// A new authority is trusted.
    Trusted,
    /// The new authority has signed.
    Signed,
    /// The former authority is not trusted any more.
    Dropped,
}

/// Why keys cannot be used. The operator has to mend the Secret, or delete it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum BadKeys {
    #[error("it has `{0}` and lacks `{1}`: it was not made by this command, or somebody has changed it")]
    Parts(&'static str, &'static str),
    #[error("its keys cannot be used: {0}")]
    Authority(#[from] rcgen::Error),
}

impl Bundle {
    /// Does what is due at this time, and what `rotate` asks for: the next step of the exchange of the authority.
    /// Returns that; `None`: nothing.
    ///
    /// Invariant: the key of an authority is never lost while a certificate that it has signed may be in use.
    ///
    /// # Errors
    /// The keys cannot be used.
    pub(super) fn keep(&mut self, now: OffsetDateTime, rotate: bool) -> Result<Option<Due>, BadKeys> {
        match (self.authorities.is_empty(), self.authority_key.is_empty()) {
            (true, true) => {
                let (authority, Signed { certificate, key }) = Authority::make()?;
                (self.authorities, self.authority_key) = (certificate, key);
                self.sign(&authority, now)?;
                return Ok(Some(Due::Made));
            }
            (false, true) => return Err(BadKeys::Parts("ca.crt", "ca.key")),
            (true, false) => return Err(BadKeys::Parts("ca.key", "ca.crt")),
            (false, false) => {}
        }
        if rotate {
            return self.rotate(now).map(Some);
        }
        let left = end(&self.certificate).map_or(Duration::ZERO, |end| end - now);
        if left >= LEFT && !self.key.is_empty() {
            return Ok(None);
        }
        self.sign(&Authority::of(&self.authority_key)?, now)?;
        Ok(Some(Due::Renewed))
    }

    fn rotate(&mut self, now: OffsetDateTime) -> Result<Due, BadKeys> {
        if !self.next_key.is_empty() {
            self.authority_key = std::mem::take(&mut self.next_key);
            self.sign(&Authority::of(&self.authority_key)?, now)?;
            return Ok(Due::Signed);
        }
        let authorities = split(&self.authorities);
        if let [_, .., newest] = &*authorities {
            self.authorities = newest.clone();
            return Ok(Due::Dropped);
        }
        let (_, Signed { certificate, key }) = Authority::make()?;
        self.authorities.push_str(&certificate);
        self.next_key = key;
        Ok(Due::Trusted)
    }

    fn sign(&mut self, authority: &Authority, now: OffsetDateTime) -> Result<(), BadKeys> {
        let Signed { certificate, key } = authority.sign("proxima fleet peer", Some((now, LIFE)))?;
        (self.certificate, self.key) = (certificate, key);
        Ok(())
    }
}

/// The end of a certificate. `None`: the text has no certificate.
fn end(certificate: &str) -> Option<OffsetDateTime> {
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).ok()?;
    OffsetDateTime::from_unix_timestamp(expiry(&der)?).ok()
}

/// The certificates in a text.
fn split(text: &str) -> Vec<String> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    let parts = text.split(BEGIN).skip(1);
    parts.map(|part| format!("{BEGIN}{part}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(days: i64) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + Duration::days(20_000 + days)
    }

    #[test]
    fn a_certificate_is_renewed_behind_two_thirds_of_its_life_and_the_authority_stays() {
        let mut bundle = Bundle::default();
        assert_eq!(bundle.keep(at(0), false).unwrap(), Some(Due::Made));
        assert_eq!(end(&bundle.certificate), Some(at(90)));
        let made = bundle.clone();
        for day in [0, 30, 60] {
            assert_eq!(bundle.keep(at(day), false).unwrap(), None, "day {day}");
        }
        assert_eq!(bundle, made);
        assert_eq!(bundle.keep(at(61), false).unwrap(), Some(Due::Renewed));
        assert_eq!(end(&bundle.certificate), Some(at(151)));
        assert_ne!(bundle.key, made.key);
        let authority = |bundle: &Bundle| (bundle.authorities.clone(), bundle.authority_key.clone());
        assert_eq!(authority(&bundle), authority(&made));
    }

    #[test]
    fn an_authority_is_exchanged_in_three_runs() {
        let mut bundle = Bundle::default();
        bundle.keep(at(0), false).unwrap();
        let first = bundle.clone();
        assert_eq!(bundle.keep(at(1), true).unwrap(), Some(Due::Trusted));
        assert_eq!(split(&bundle.authorities).len(), 2);
        assert!(bundle.authorities.starts_with(&first.authorities));
        assert_eq!(
            (&bundle.authority_key, &bundle.certificate),
            (&first.authority_key, &first.certificate)
        );
        // What is due in between leaves the exchange where it is.
        let trusted = bundle.clone();
        assert_eq!(bundle.keep(at(61), false).unwrap(), Some(Due::Renewed));
        assert_eq!(
            (&bundle.authorities, &bundle.next_key),
            (&trusted.authorities, &trusted.next_key)
        );
        assert_eq!(bundle.keep(at(62), true).unwrap(), Some(Due::Signed));
        assert_eq!(bundle.authority_key, trusted.next_key);
        assert_eq!(bundle.authorities, trusted.authorities);
        assert_eq!(bundle.keep(at(63), true).unwrap(), Some(Due::Dropped));
        assert_eq!(bundle.authorities, trusted.authorities[first.authorities.len()..]);
        assert_eq!(bundle.keep(at(63), false).unwrap(), None);
        assert_eq!(bundle.keep(at(64), true).unwrap(), Some(Due::Trusted));
    }

    #[test]
    fn keys_of_which_a_part_is_missing_are_left_alone() {
        let mut bundle = Bundle::default();
        bundle.keep(at(0), false).unwrap();
        let without = |change: fn(&mut Bundle)| {
            let mut changed = bundle.clone();
            change(&mut changed);
            let kept = changed.clone();
            (
                changed.keep(at(0), false).map_err(|error| error.to_string()),
                changed == kept,
            )
        };
        let (told, is_kept) = without(|bundle| bundle.authority_key.clear());
        assert!(told.unwrap_err().contains("has `ca.crt` and lacks `ca.key`") && is_kept);
        let (told, is_kept) = without(|bundle| bundle.authorities.clear());
        assert!(told.unwrap_err().contains("has `ca.key` and lacks `ca.crt`") && is_kept);
        // A certificate can be made again.
        assert_eq!(
            without(|bundle| bundle.certificate.clear()).0,
            Ok(Some(Due::Renewed))
        );
        assert_eq!(without(|bundle| bundle.key.clear()).0, Ok(Some(Due::Renewed)));
    }
}
