//! Salted keys.

/// Bytes of a key with its salt up to which no allocation is needed. memcached's keys have at most 250.
const ON_STACK: usize = 512;

/// Calls `with` on `key` followed by `salt`.
pub fn salted<R>(key: &[u8], salt: &[u8], with: impl FnOnce(&[u8]) -> R) -> R {
    if salt.is_empty() {
        return with(key);
    }
    let mut buffer = [0; ON_STACK];
    match buffer.get_mut(..key.len() + salt.len()) {
        Some(whole) => {
            let (front, back) = whole.split_at_mut(key.len());
            front.copy_from_slice(key);
            back.copy_from_slice(salt);
            with(whole)
        }
        None => with(&[key, salt].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::salted;

    #[test]
    fn appends_whatever_the_length() {
        for length in [0, 1, 250, 511, 512, 513, 5000] {
            let key = vec![b'k'; length];
            assert_eq!(salted(&key, b"", <[u8]>::to_vec), key);
            assert_eq!(salted(&key, b"2", <[u8]>::to_vec), [&key[..], b"2"].concat());
        }
    }
}
