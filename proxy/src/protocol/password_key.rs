//! The key with which passwords are encrypted where there is no TLS, as `caching_sha2_password` does.
//!
//! An attacker between two ends can offer a key of its own: this one keeps a password from those who only
//! listen.

use std::fmt;

use aws_lc_rs::{
    encoding::{AsDer, PublicKeyX509Der},
    error::Unspecified,
    rsa::{
        KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, PrivateDecryptingKey,
        PublicEncryptingKey,
    },
};
use base64::{Engine, prelude::BASE64_STANDARD};

const BEGIN: &str = "-----BEGIN PUBLIC KEY-----\n";
const END: &str = "-----END PUBLIC KEY-----\n";
/// Characters of a line of a key's text (RFC 7468).
const LINE: usize = 64;

/// A key of the proxy's own.
pub struct PasswordKey {
    key: OaepPrivateDecryptingKey,
    text: Vec<u8>,
}

impl PasswordKey {
    /// A new key. To make one takes some tenths of a second.
    ///
    /// # Errors
    /// The system gives no random bits.
    pub fn new() -> Result<Self, Unspecified> {
        let key = PrivateDecryptingKey::generate(KeySize::Rsa2048)?;
        let public: PublicKeyX509Der<'_> = key.public_key().as_der()?;
        let encoded = BASE64_STANDARD.encode(public.as_ref());
        let mut text = BEGIN.to_owned();
        for line in encoded.as_bytes().chunks(LINE) {
            text.extend(line.iter().copied().map(char::from));
            text.push('\n');
        }
        text.push_str(END);
        Ok(Self {
            key: OaepPrivateDecryptingKey::new(key)?,
            text: text.into_bytes(),
        })
    }

    /// The public half in PEM form, which clients are told.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Decrypts a text; `None` if it was not encrypted with the public half.
    pub fn decrypt(&self, encrypted: &[u8]) -> Option<Vec<u8>> {
        let mut plain = vec![0; self.key.min_output_size()];
        let open = self.key.decrypt(&OAEP_SHA1_MGF1SHA1, encrypted, &mut plain, None);
        let len = open.ok()?.len();
        plain.truncate(len);
        Some(plain)
    }
}

/// Encrypts a secret with a public key in PEM form. `None` if these bytes are no such key, or if the secret
/// is too long for it.
pub fn encrypt(text: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
    let text = str::from_utf8(text).ok()?;
    let (_, rest) = text.split_once(BEGIN.trim_ascii_end())?;
    let (encoded, _) = rest.split_once(END.trim_ascii_end())?;
    let encoded: String = encoded.split_ascii_whitespace().collect();
    let der = BASE64_STANDARD.decode(encoded).ok()?;
    let key = OaepPublicEncryptingKey::new(PublicEncryptingKey::from_der(&der).ok()?).ok()?;
    let mut encrypted = vec![0; key.ciphertext_size()];
    let sealed = key.encrypt(&OAEP_SHA1_MGF1SHA1, secret, &mut encrypted, None);
    let len = sealed.ok()?.len();
    encrypted.truncate(len);
    Some(encrypted)
}

/// Nothing of the key is shown.
impl fmt::Debug for PasswordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordKey")
    }
}

#[cfg(test)]
mod tests {
    use super::{PasswordKey, encrypt};

    #[test]
    fn what_is_encrypted_with_the_public_half_is_read_with_the_other() {
        let key = PasswordKey::new().unwrap();
        let encrypted = encrypt(key.text(), b"secret").unwrap();
        assert_eq!(key.decrypt(&encrypted), Some(b"secret".to_vec()));
        assert_eq!(key.decrypt(&encrypted[1..]), None);
        assert_eq!(PasswordKey::new().unwrap().decrypt(&encrypted), None);
        assert_eq!(format!("{key:?}"), "PasswordKey");
    }

    #[test]
    fn what_is_no_key_or_does_not_fit_is_not_used() {
        let key = PasswordKey::new().unwrap();
        let lines = key.text().split(|&byte| byte == b'\n');
        assert!(lines.clone().all(|line| line.len() <= 64) && lines.count() > 5);
        assert_eq!(
            encrypt(key.text(), &[b'x'; 215]),
            None,
            "the padding takes 42 of 256 bytes"
        );
        for text in [
            &b""[..],
            b"x",
            b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
            b"\xff",
        ] {
            assert_eq!(encrypt(text, b"secret"), None);
        }
    }
}
