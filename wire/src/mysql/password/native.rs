//! `mysql_native_password`: the answer is SHA1(password) ⊕ SHA1(salt, SHA1(SHA1(password))).

use std::fmt;

use sha1::{Digest, Sha1};

use super::{are_same, hidden, xor};
use crate::mysql::SALT;

/// The method's name.
pub const NATIVE: &[u8] = b"mysql_native_password";

/// Bytes of a hash, of a key and of an answer.
const LEN: usize = 20;

/// SHA1(SHA1(password)), as servers store it.
#[derive(Clone, PartialEq, Eq)]
pub struct NativeHash([u8; LEN]);

/// SHA1(password), with which one can log in at every server that has its hash.
#[derive(Clone, PartialEq, Eq)]
pub struct NativeKey([u8; LEN]);

impl NativeHash {
    /// Reads `*` and forty hexadecimal digits, as `mysql.user` shows them. `None` for any other text.
    pub fn read(text: &[u8]) -> Option<Self> {
        let digits = text.strip_prefix(b"*").filter(|digits| digits.len() == 2 * LEN)?;
        let mut hash = [0; LEN];
        for (place, pair) in hash.iter_mut().zip(digits.chunks(2)) {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            *place = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }
        Some(Self(hash))
    }

    /// The key of a client that has answered this to the salt. `None`: it does not know the password.
    pub fn verify(&self, salt: &[u8; SALT], answer: &[u8]) -> Option<NativeKey> {
        let answer = <[u8; LEN]>::try_from(answer).ok()?;
        let key = NativeKey(xor(answer, self.mask(salt)));
        are_same(&key.hash().0, &self.0).then_some(key)
    }

    fn mask(&self, salt: &[u8; SALT]) -> [u8; LEN] {
        Sha1::new()
            .chain_update(salt)
            .chain_update(self.0)
            .finalize()
            .into()
    }
}

impl NativeKey {
    /// The key of this password, which must not be empty: an empty one is proved by an empty answer.
    pub fn of(password: &[u8]) -> Self {
        Self(Sha1::digest(password).into())
    }

    /// The key of these bytes, which are as good as a password.
    pub const fn from_bytes(bytes: [u8; LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes of the key.
    pub const fn bytes(&self) -> &[u8; LEN] {
        &self.0
    }

    /// The hash that servers keep of it.
    pub fn hash(&self) -> NativeHash {
        NativeHash(Sha1::digest(self.0).into())
    }

    /// The answer to a server's salt.
    pub fn answer(&self, salt: &[u8; SALT]) -> [u8; LEN] {
        xor(self.0, self.hash().mask(salt))
    }
}

impl fmt::Debug for NativeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hidden("NativeHash", f)
    }
}

impl fmt::Debug for NativeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hidden("NativeKey", f)
    }
}
