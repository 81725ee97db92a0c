//! The versions that one connection was shown, by which it is found whether it goes backwards.

use std::collections::HashMap;

/// The highest version of each key that a connection has read, or was told that it has written.
#[derive(Default)]
pub(super) struct Shown(HashMap<u32, u64>);

impl Shown {
    /// Notes a version of a key. Returns whether the connection had been shown a newer one before.
    pub(super) fn note(&mut self, key: u32, version: u64) -> bool {
        let highest = self.0.entry(key).or_default();
        let is_backward = version < *highest;
        *highest = version.max(*highest);
        is_backward
    }
}

#[cfg(test)]
mod tests {
    use super::Shown;

    #[test]
    fn an_older_version_on_the_same_connection_goes_backwards() {
        let mut shown = Shown::default();
        assert!(!shown.note(0, 5) && !shown.note(0, 5) && !shown.note(1, 4));
        assert!(shown.note(0, 4) && !shown.note(0, 6));
        assert!(!Shown::default().note(0, 1));
    }
}
