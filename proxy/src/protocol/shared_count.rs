//! A number that all workers share.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

/// A number that lanes of all workers raise and lower. It stays for as long as anything refers to it.
#[derive(Clone, Debug, Default)]
pub struct SharedCount(Arc<AtomicU32>);

impl SharedCount {
    /// The number now.
    #[inline]
    pub fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// Adds one. It begins anew behind the greatest number.
    pub fn raise(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// Subtracts this many, which were added before.
    pub fn lower(&self, by: u32) {
        self.0.fetch_sub(by, Relaxed);
    }
}
