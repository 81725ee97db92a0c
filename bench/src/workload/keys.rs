//! The keys of a run: key number `i` is the same bytes in every process that was given the same count and
//! size.

use anyhow::{Result, ensure};

/// memcached's longest key, bytes.
const LONGEST: usize = 250;

/// Follows the number in a key, repeated up to the key's size.
const PADDING: &[u8] = b":proxima-bench";

/// All keys of a run, side by side in one allocation.
pub(crate) struct Keys {
    bytes: Vec<u8>,
    size: usize,
}

impl Keys {
    /// `count` different keys of `size` bytes each.
    ///
    /// The number stands first: FNV mixes the last bytes of a key least, so that numbers at the end would put
    /// neighbours on one server.
    pub(crate) fn new(count: u32, size: usize) -> Result<Self> {
        ensure!(count > 0, "there must be at least one key");
        let digits = (count - 1).max(1).ilog10() as usize + 1;
        ensure!(
            size >= digits,
            "{count} different keys need a key size of at least {digits} bytes"
        );
        ensure!(size <= LONGEST, "memcached's keys end at {LONGEST} bytes");
        let mut bytes = Vec::with_capacity(count as usize * size);
        for number in 0..count {
            bytes.extend_from_slice(format!("{number:0digits$}").as_bytes());
            bytes.extend(PADDING.iter().cycle().take(size - digits));
        }
        Ok(Self { bytes, size })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        (self.bytes.len() / self.size) as u32
    }

    /// Key number `index`, which must be below [`Keys::count`].
    pub(crate) fn get(&self, index: u32) -> &[u8] {
        let start = index as usize * self.size;
        &self.bytes[start..start + self.size]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_differ_and_have_the_size_asked_for() {
        let keys = Keys::new(1_000, 40).unwrap();
        let distinct: HashSet<&[u8]> = (0..keys.count()).map(|index| keys.get(index)).collect();
        assert_eq!(distinct.len(), 1_000);
        assert!(distinct.iter().all(|key| key.len() == 40));
        assert_eq!(&keys.get(7)[..18], b"007:proxima-bench:");
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        assert!(Keys::new(11, 1).is_err());
        assert!(Keys::new(10, 1).is_ok());
        assert!(Keys::new(10, 251).is_err());
        assert!(Keys::new(0, 40).is_err());
    }
}
