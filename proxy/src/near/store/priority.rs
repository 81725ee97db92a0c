//! The priority of a reply, which decides when it goes.

use super::slab_index::SlabIndex;

/// The most rounds that hits are worth.
const MOST_USES: u8 = 3;

/// A reply's neighbours in its queue.
#[derive(Clone, Copy, Default)]
pub(super) struct Links {
    pub(super) newer: Option<SlabIndex>,
    pub(super) older: Option<SlabIndex>,
}

/// The hits that count for a reply, and its queue.
#[derive(Clone, Copy, Default)]
pub(super) struct Priority(u8);

impl Priority {
    const MAIN: u8 = 1 << 7;

    /// The hits that count.
    pub(super) const fn uses(self) -> u8 {
        self.0 & !Self::MAIN
    }

    /// Is it in the main queue?
    pub(super) const fn is_main(self) -> bool {
        self.0 & Self::MAIN != 0
    }

    /// A hit.
    #[inline]
    pub(super) fn hit(&mut self) {
        self.0 += u8::from(self.uses() < MOST_USES);
    }

    /// In the main queue, with this number of hits.
    pub(super) const fn in_main(uses: u8) -> Self {
        Self(Self::MAIN | uses)
    }
}
