//! Draining members, which get no new requests, as workers see them.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
};

use super::health::note_change;

/// Members of this process that are given no new requests. While no member drains, workers do not read a
/// member's own flag, which is in distant memory.
static DRAINING: AtomicU32 = AtomicU32::new(0);

/// Whether one member is given no new requests, because an operator has ordered it. Members of one pool at
/// one address share it.
#[derive(Clone, Debug, Default)]
pub struct Draining(Arc<AtomicBool>);

impl Draining {
    /// Whether it is.
    #[inline]
    pub fn is_ordered(&self) -> bool {
        DRAINING.load(Relaxed) > 0 && self.0.load(Relaxed)
    }

    /// Orders it or takes it back. What is repeated changes nothing.
    pub fn set(&self, is_ordered: bool) {
        if self.0.swap(is_ordered, Relaxed) == is_ordered {
            return;
        }
        match is_ordered {
            true => DRAINING.fetch_add(1, Relaxed),
            false => DRAINING.fetch_sub(1, Relaxed),
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
        one.set(true);
        one.set(true);
        assert!(one.is_ordered() && one.clone().is_ordered() && !other.is_ordered());
        other.set(true);
        one.set(false);
        one.set(false);
        assert!(!one.is_ordered() && other.is_ordered());
        other.set(false);
        assert!(!other.is_ordered());
    }
}
