//! The proof of a password that is not sent: by a client, and by the proxy to a server.
//!
//! A [`NativeKey`] or a [`Sha2Key`] proves it to a server. Neither is a password, but each is as good as one
//! for its method: its owner can log in. A proxy gets it from a client's answer, if it has the hash that the
//! server keeps, and so it needs no password to log in for the client.

mod native;
mod sha2;

use std::fmt;

pub use native::{NATIVE, NativeHash, NativeKey};
pub use sha2::{CACHING_SHA2, FAST, FULL, PUBLIC_KEY, Sha2Hash, Sha2Key, hide, reveal};

use super::SALT;

/// The method in which the password itself is sent. It must be used within TLS alone.
pub const CLEAR: &[u8] = b"mysql_clear_password";

/// A salt of these random bits. It has no byte that ends a text or divides the parts of a stored password,
/// `$`; each byte is of seven bits.
pub fn salt(random: [u64; 3]) -> [u8; SALT] {
    let mut salt = [0; SALT];
    let bytes = random.iter().flat_map(|word| word.to_le_bytes());
    for (place, byte) in salt.iter_mut().zip(bytes) {
        *place = match byte & 0x7f {
            0 => 1,
            b'$' => b'%',
            other => other,
        };
    }
    salt
}

/// These bytes, each combined with its partner.
fn xor<const LEN: usize>(one: [u8; LEN], other: [u8; LEN]) -> [u8; LEN] {
    std::array::from_fn(|place| one[place] ^ other[place])
}

/// Are they the same? The time that the answer takes does not depend on where they differ.
fn are_same<const LEN: usize>(one: &[u8; LEN], other: &[u8; LEN]) -> bool {
    let pairs = one.iter().zip(other);
    std::hint::black_box(pairs.fold(0, |differ, (one, other)| differ | (one ^ other))) == 0
}

/// Are these secrets the same? The time that the answer takes depends on their lengths alone.
pub fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let at = |place: usize| other.get(place).copied().unwrap_or(0);
    let pairs = one.iter().enumerate();
    let differ = pairs.fold(0, |differ, (place, byte)| differ | (byte ^ at(place)));
    std::hint::black_box(differ) == 0 && one.len() == other.len()
}

/// Nothing of a secret is shown.
fn hidden(name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.debug_struct(name).finish_non_exhaustive()
}
