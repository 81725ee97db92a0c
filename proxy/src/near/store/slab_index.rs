//! The index of an entry in its shard's slab.

use std::num::NonZeroU32;

/// A place in a shard's slab. It is counted from one, so that no place takes no memory beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlabIndex(NonZeroU32);

impl SlabIndex {
    /// The place at this index. `None` if the index is too large, which no slab reaches.
    #[inline]
    pub(super) fn new(index: usize) -> Option<Self> {
        let number = u32::try_from(index).ok()?.checked_add(1)?;
        NonZeroU32::new(number).map(Self)
    }

    #[inline]
    pub(super) const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}
