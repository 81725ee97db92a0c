//! `caching_sha2_password`. The fast answer is SHA256(password) ⊕ SHA256(SHA256(SHA256(password)), salt). A
//! server that does not have the user in its cache asks for the password itself ([`FULL`]), which goes
//! through TLS, or [hidden](hide) and encrypted with the server's [public key](PUBLIC_KEY).

use std::fmt;

use sha2::{Digest, Sha256};

use super::{are_same, hidden, xor};
use crate::mysql::SALT;

/// The method's name.
pub const CACHING_SHA2: &[u8] = b"caching_sha2_password";

/// A server's answer when the fast answer was enough. The end of the login follows.
pub const FAST: &[u8] = &[3];
/// A server's answer when it needs the password.
pub const FULL: &[u8] = &[4];
/// A client's request for the key that encrypts the password where there is no TLS.
pub const PUBLIC_KEY: &[u8] = &[2];

/// Bytes of a hash, of a key and of a fast answer.
const LEN: usize = 32;

/// SHA256(SHA256(password)), which servers have in their cache.
#[derive(Clone, PartialEq, Eq)]
pub struct Sha2Hash([u8; LEN]);

/// SHA256(password), with which one can log in while the server has the user in its cache.
#[derive(Clone, PartialEq, Eq)]
pub struct Sha2Key([u8; LEN]);

impl Sha2Hash {
    /// The key of a client that has answered this to the salt. `None`: it does not know the password.
    pub fn verify(&self, salt: &[u8; SALT], answer: &[u8]) -> Option<Sha2Key> {
        let answer = <[u8; LEN]>::try_from(answer).ok()?;
        let key = Sha2Key(xor(answer, self.mask(salt)));
        are_same(&key.hash().0, &self.0).then_some(key)
    }

    fn mask(&self, salt: &[u8; SALT]) -> [u8; LEN] {
        Sha256::new()
            .chain_update(self.0)
            .chain_update(salt)
            .finalize()
            .into()
    }
}

impl Sha2Key {
    /// The key of this password, which must not be empty: an empty one is proved by an empty answer.
    pub fn of(password: &[u8]) -> Self {
        Self(Sha256::digest(password).into())
    }

    /// The hash that servers keep of it in their cache.
    pub fn hash(&self) -> Sha2Hash {
        Sha2Hash(Sha256::digest(self.0).into())
    }

    /// The fast answer to a server's salt.
    pub fn answer(&self, salt: &[u8; SALT]) -> [u8; LEN] {
        xor(self.0, self.hash().mask(salt))
    }
}

/// The password as it is encrypted with the server's public key: with a zero byte behind it, each byte
/// combined with one of the salt.
pub fn hide(password: &[u8], salt: &[u8; SALT]) -> Vec<u8> {
    let ended = password.iter().chain(&[0]);
    ended
        .zip(salt.iter().cycle())
        .map(|(byte, salt)| byte ^ salt)
        .collect()
}

/// The password that was hidden so. `None` if its end is wrong.
pub fn reveal(hidden: &[u8], salt: &[u8; SALT]) -> Option<Vec<u8>> {
    let bytes = hidden.iter().zip(salt.iter().cycle());
    let mut password: Vec<u8> = bytes.map(|(byte, salt)| byte ^ salt).collect();
    (password.pop() == Some(0) && !password.contains(&0)).then_some(password)
}

impl fmt::Debug for Sha2Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hidden("Sha2Hash", f)
    }
}

impl fmt::Debug for Sha2Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hidden("Sha2Key", f)
    }
}
