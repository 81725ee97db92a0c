//! The versions that one connection was shown, by which it is found whether it goes backwards.

/// The highest version of each key that a connection was shown.
pub(super) struct Shown {
    connection: u32,
    versions: Vec<u64>,
}

impl Shown {
    /// `keys` keys, of which nothing was shown.
    pub(super) fn new(keys: u32) -> Self {
        Self {
            connection: 0,
            versions: vec![0; keys as usize],
        }
    }

    /// Notes the version of a key that the connection with this number was shown. Returns whether it had been
    /// shown a newer one before. Another connection begins with nothing.
    pub(super) fn note(&mut self, connection: u32, key: u32, version: u64) -> bool {
        if self.connection != connection {
            self.connection = connection;
            self.versions.fill(0);
        }
        let highest = &mut self.versions[key as usize];
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
        let mut shown = Shown::new(2);
        assert!(!shown.note(1, 0, 5) && !shown.note(1, 0, 5) && !shown.note(1, 1, 4));
        assert!(shown.note(1, 0, 4) && !shown.note(1, 0, 6));
        assert!(!shown.note(2, 0, 1));
    }
}
