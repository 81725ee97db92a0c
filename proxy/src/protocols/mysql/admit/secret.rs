//! Proofs of clients that are users whose secret the proxy knows.

use proxima_wire::mysql::{
    SALT,
    password::{CACHING_SHA2, CLEAR, NATIVE, NativeHash, NativeKey, Sha2Key, are_equal},
};

use super::super::identity::Proof;

/// A user's secret as the proxy knows it: a password, or the hash of one as `mysql.user` shows it.
pub(super) enum Secret<'a> {
    Password(&'a [u8]),
    NativeHash(NativeHash),
}

impl<'a> Secret<'a> {
    /// The secret in these words: `*` and forty hexadecimal digits are a hash.
    pub(super) fn of(words: &'a [u8]) -> Self {
        NativeHash::read(words).map_or(Self::Password(words), Self::NativeHash)
    }

    /// The proof of a client that has answered this by that method; `None` if the client does not know the
    /// secret.
    pub(super) fn verify(&self, method: &[u8], salt: &[u8; SALT], answer: &[u8]) -> Option<Proof> {
        match self {
            Self::Password(password) => {
                let is_known = match method {
                    CLEAR => are_equal(password, answer.strip_suffix(&[0]).unwrap_or(answer)),
                    CACHING_SHA2 => Sha2Key::of(password).hash().verify(salt, answer).is_some(),
                    _ => NativeKey::of(password).hash().verify(salt, answer).is_some(),
                };
                is_known.then(|| Proof::Password(password.to_vec()))
            }
            Self::NativeHash(hash) if method == CLEAR => {
                let password = answer.strip_suffix(&[0]).unwrap_or(answer);
                let is_known = NativeKey::of(password).hash() == *hash;
                is_known.then(|| Proof::Password(password.to_vec()))
            }
            Self::NativeHash(hash) => hash.verify(salt, answer).map(Proof::NativeKey),
        }
    }

    /// Can a client prove by this method that it knows the secret? `is_private`: it may say the password.
    pub(super) fn takes(&self, method: &[u8], is_private: bool) -> bool {
        match method {
            NATIVE => true,
            CACHING_SHA2 => matches!(self, Self::Password(_)),
            CLEAR => is_private,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::mysql::password::{CACHING_SHA2, CLEAR, NATIVE, NativeKey, Sha2Key};

    use super::Secret;

    const SALT: [u8; 20] = [7; 20];
    /// The hash of `secret`.
    const HASH: &[u8] = b"*14E65567ABDB5135D0CFD9A70B3032C179A49EE7";

    #[test]
    fn client_that_knows_the_password_proves_it_by_both_methods() {
        let native = NativeKey::of(b"secret").answer(&SALT);
        let sha2 = Sha2Key::of(b"secret").answer(&SALT);
        for words in [&b"secret"[..], HASH] {
            let secret = Secret::of(words);
            assert!(secret.verify(NATIVE, &SALT, &native).is_some());
            assert!(secret.verify(NATIVE, &SALT, &sha2).is_none());
            assert!(secret.verify(NATIVE, &[8; 20], &native).is_none());
            assert!(secret.verify(NATIVE, &SALT, b"").is_none());
        }
        assert!(Secret::of(b"secret").verify(CACHING_SHA2, &SALT, &sha2).is_some());
        assert!(Secret::of(HASH).takes(NATIVE, false) && !Secret::of(HASH).takes(CACHING_SHA2, true));
        assert!(Secret::of(b"secret").takes(CACHING_SHA2, false));
        for words in [&b"secret"[..], HASH] {
            let secret = Secret::of(words);
            assert!(secret.takes(CLEAR, true) && !secret.takes(CLEAR, false));
            for (said, is_it) in [
                (&b"secret\0"[..], true),
                (b"secret", true),
                (b"secre\0", false),
                (b"", false),
            ] {
                assert_eq!(
                    secret.verify(CLEAR, &SALT, said).is_some(),
                    is_it,
                    "{}",
                    said.escape_ascii()
                );
            }
        }
    }
}
