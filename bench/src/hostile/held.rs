//! The expected values of a well-behaved client's keys, which only that client writes.

use crate::stale::value;

/// One key.
pub(super) struct Cell {
    base: String,
    /// A key whose last write failed is given up for another: its present and future value is unknown.
    generation: u32,
    name: String,
    size: usize,
    sent: u64,
    expected: ExpectedValue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpectedValue {
    Nothing,
    Version(u64),
    /// A write failed; any version that was sent may be seen.
    Unsure,
}

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadResult {
    AsWritten,
    /// A cache may forget.
    Gone,
    Wrong(String),
}

impl Cell {
    pub(super) fn new(base: String, size: usize) -> Self {
        Self {
            name: base.clone(),
            base,
            generation: 0,
            size,
            sent: 0,
            expected: ExpectedValue::Nothing,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The value to send next.
    pub(super) fn next(&mut self) -> Vec<u8> {
        self.sent += 1;
        value::encode(&self.name, self.sent, self.size)
    }

    /// The last value that was sent is stored.
    pub(super) fn stored(&mut self) {
        if self.expected != ExpectedValue::Unsure {
            self.expected = ExpectedValue::Version(self.sent);
        }
    }

    pub(super) fn deleted(&mut self) {
        if self.expected != ExpectedValue::Unsure {
            self.expected = ExpectedValue::Nothing;
        }
    }

    /// Whether the delete should find it, as far as that is known.
    pub(super) fn should_be_there(&self) -> bool {
        matches!(self.expected, ExpectedValue::Version(_))
    }

    pub(super) fn should_not_be_there(&self) -> bool {
        self.expected == ExpectedValue::Nothing
    }

    /// A write was refused, or its outcome is open.
    pub(super) fn failed(&mut self) {
        self.expected = ExpectedValue::Unsure;
    }

    /// Replaces a key whose value is unknown by a new one.
    pub(super) fn settle(&mut self) {
        if self.expected == ExpectedValue::Unsure {
            self.generation += 1;
            self.name = format!("{}.{}", self.base, self.generation);
            self.sent = 0;
            self.expected = ExpectedValue::Nothing;
        }
    }

    /// Judges the result of a read of this key.
    pub(super) fn judge(&self, bytes: Option<&[u8]>) -> ReadResult {
        let Some(bytes) = bytes else {
            return if self.expected == ExpectedValue::Nothing {
                ReadResult::AsWritten
            } else {
                ReadResult::Gone
            };
        };
        let Some(version) = value::version(&self.name, self.size, bytes) else {
            return ReadResult::Wrong(format!("a value that was never written to {}", self.name));
        };
        match self.expected {
            ExpectedValue::Version(expected) if expected == version => ReadResult::AsWritten,
            ExpectedValue::Version(expected) => ReadResult::Wrong(format!(
                "version {version} of {}, and {expected} was acknowledged",
                self.name
            )),
            ExpectedValue::Nothing => {
                ReadResult::Wrong(format!("version {version} of {}, which was deleted", self.name))
            }
            ExpectedValue::Unsure if version <= self.sent => ReadResult::AsWritten,
            ExpectedValue::Unsure => ReadResult::Wrong(format!(
                "version {version} of {}, which was never sent",
                self.name
            )),
        }
    }
}

/// A number that only its client counts.
pub(super) struct Counter {
    base: String,
    generation: u32,
    name: String,
    /// The value. `None`: it must be set first.
    at: Option<u64>,
}

impl Counter {
    pub(super) fn new(base: String) -> Self {
        Self {
            name: base.clone(),
            base,
            generation: 0,
            at: None,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Its value. `None`: it must be set first.
    pub(super) fn at(&self) -> Option<u64> {
        self.at
    }

    pub(super) fn now_at(&mut self, number: u64) {
        self.at = Some(number);
    }

    /// Judges the result of a read. If its value is unknown, because a count of the same batch failed, it is
    /// not judged.
    pub(super) fn judge(&self, values: &[(&[u8], &[u8])]) -> ReadResult {
        match (self.at, values) {
            (None, _) => ReadResult::AsWritten,
            (Some(_), []) => ReadResult::Gone,
            (Some(at), [(key, value)])
                if *key == self.name.as_bytes() && *value == at.to_string().as_bytes() =>
            {
                ReadResult::AsWritten
            }
            (Some(at), _) => ReadResult::Wrong(format!("{} is at {at}", self.name)),
        }
    }

    /// The counter is gone, or its value is unknown: counting begins anew under another name.
    pub(super) fn failed(&mut self) {
        self.at = None;
        self.generation += 1;
        self.name = format!("{}.{}", self.base, self.generation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_value_written_last_is_right_and_a_cache_may_forget() {
        let mut cell = Cell::new("k".into(), 20);
        assert_eq!(cell.judge(None), ReadResult::AsWritten);
        let first = cell.next();
        cell.stored();
        assert_eq!(cell.judge(Some(&first)), ReadResult::AsWritten);
        assert_eq!(cell.judge(None), ReadResult::Gone);
        let second = cell.next();
        cell.stored();
        assert!(matches!(cell.judge(Some(&first)), ReadResult::Wrong(_)));
        assert_eq!(cell.judge(Some(&second)), ReadResult::AsWritten);
        cell.deleted();
        assert!(matches!(cell.judge(Some(&second)), ReadResult::Wrong(_)));
        assert!(matches!(cell.judge(Some(b"smuggled")), ReadResult::Wrong(_)));
    }

    #[test]
    fn after_a_failed_write_any_version_that_was_sent_may_be_seen_until_the_key_is_given_up() {
        let mut cell = Cell::new("k".into(), 20);
        let first = cell.next();
        cell.stored();
        let second = cell.next();
        cell.failed();
        for may in [Some(&first[..]), Some(&second)] {
            assert_eq!(cell.judge(may), ReadResult::AsWritten);
        }
        let other = value::encode("k", 3, 20);
        assert!(matches!(cell.judge(Some(&other)), ReadResult::Wrong(_)));
        cell.settle();
        assert_eq!(cell.name(), "k.1");
        assert!(matches!(cell.judge(Some(&first)), ReadResult::Wrong(_)));
    }
}
