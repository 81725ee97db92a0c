//! Values that say which key they belong to and which version they are.

/// The value of `key` at `version`, filled up to `size` bytes.
pub(crate) fn encode(key: &str, version: u64, size: usize) -> Vec<u8> {
    let mut value = format!("{key} {version} ").into_bytes();
    value.resize(value.len().max(size), b'.');
    value
}

/// The version of a value of `key`; nothing if a single byte is not as it was written.
pub(crate) fn version(key: &str, size: usize, value: &[u8]) -> Option<u64> {
    let digits = value
        .strip_prefix(key.as_bytes())?
        .split(|&byte| byte == b' ')
        .nth(1)?;
    let version = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (encode(key, version, size) == value).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_survive_the_way_there_and_back() {
        for (number, size) in [(1, 0), (1, 100), (u64::MAX, 5), (u64::MAX, 1_000)] {
            let value = encode("key:7", number, size);
            assert!(value.len() >= size);
            assert_eq!(version("key:7", size, &value), Some(number));
        }
    }

    #[test]
    fn anything_but_the_bytes_that_were_written_has_no_version() {
        let value = encode("key:7", 12, 40);
        for place in 0..value.len() {
            let mut bad = value.clone();
            bad[place] ^= 1;
            // A changed digit is another version's value, byte by byte: only the ledger can tell.
            assert!(!matches!(version("key:7", 40, &bad), Some(12)), "byte {place}");
        }
        for bad in [
            &value[..39],
            b"",
            b"key:7",
            b"key:7  ",
            b"key:7 +12 ",
            b"key:7 012 ",
        ] {
            assert_eq!(version("key:7", 40, bad), None, "{}", bad.escape_ascii());
        }
        assert_eq!(version("key:8", 40, &value), None);
        assert_eq!(version("key:7", 41, &value), None);
    }
}
