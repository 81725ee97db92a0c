//! A walk through all items, a few at a time, while items come and go and tables are resized.

use super::{Item, Store};

/// The position of a walk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    shard: usize,
    /// The next home, in [`super::table::Table::after`]'s order.
    home: usize,
}

impl Store {
    /// Shows the living items of the next few homes. Returns false when there are no more. An item that
    /// exists from the first step to the last is shown once, or more often if its table shrinks.
    pub fn walk(&self, walk: &mut Walk, now: u64, show: &mut dyn FnMut(Item<'_>)) -> bool {
        /// Homes in one step: the shard is locked for some microseconds.
        const PLACES: usize = 16;
        if walk.shard >= self.shards.len() {
            return false;
        }
        let shard = self.shard(walk.shard);
        for _ in 0..PLACES {
            walk.home = shard.walk(walk.home, now, show);
            if walk.home == 0 {
                walk.shard += 1;
                break;
            }
        }
        walk.shard < self.shards.len()
    }
}
