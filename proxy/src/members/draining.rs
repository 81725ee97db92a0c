//! Draining members, which get no new requests, as workers see them.

use std::sync::{
    Arc,
    atomic::{AtomicU8, AtomicU32, Ordering::Relaxed},
};

use super::health::note_change;

/// Members of this process that are given no new requests. While no member drains, workers do not read a
/// member's own flag, which is in distant memory.
static DRAINING: AtomicU32 = AtomicU32::new(0);

/// An operator has ordered it.
const ORDERED: u8 = 1;
/// Its source says that it is about to end.
const ENDS: u8 = 2;

/// Whether one member is given no new requests, and why. Members of one pool at one address share it.
#[derive(Clone, Debug, Default)]
pub struct Draining(Arc<AtomicU8>);

impl Draining {
    /// Whether it is, for whatever reason.
    #[inline]
    pub fn is_on(&self) -> bool {
        DRAINING.load(Relaxed) > 0 && self.0.load(Relaxed) != 0
    }

    /// Orders it or takes it back. What is repeated changes nothing.
    pub fn order(&self, is_ordered: bool) {
        self.set(ORDERED, is_ordered);
    }

    /// Notes whether its source says that it is about to end. What is repeated changes nothing.
    pub fn note_end(&self, ends: bool) {
        self.set(ENDS, ends);
    }

    /// Nobody asks for it any more.
    pub fn end(&self) {
        self.order(false);
        self.note_end(false);
    }

    fn set(&self, reason: u8, is: bool) {
        let before = match is {
            true => self.0.fetch_or(reason, Relaxed),
            false => self.0.fetch_and(!reason, Relaxed),
        };
        let after = if is { before | reason } else { before & !reason };
        match (before != 0, after != 0) {
            (false, true) => DRAINING.fetch_add(1, Relaxed),
            (true, false) => DRAINING.fetch_sub(1, Relaxed),
            _ => return,
        };
        note_change();
    }
}

#[cfg(test)]
mod tests {
    use super::Draining;

    #[test]
    fn a_repeated_order_counts_once_and_each_member_has_its_own() {
        let (one, other) = (Draining::default(), Draining::default());
        one.order(true);
        one.order(true);
        assert!(one.is_on() && one.clone().is_on() && !other.is_on());
        other.order(true);
        one.order(false);
        one.order(false);
        assert!(!one.is_on() && other.is_on());
        other.order(false);
        assert!(!other.is_on());
    }

    #[test]
    fn it_ends_when_no_reason_is_left() {
        let one = Draining::default();
        one.order(true);
        one.note_end(true);
        one.order(false);
        assert!(one.is_on());
        one.note_end(false);
        assert!(!one.is_on());
        one.note_end(true);
        one.end();
        assert!(!one.is_on());
    }
}
