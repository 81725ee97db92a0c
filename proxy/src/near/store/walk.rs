//! A walk through all items, a few at a time, while others come and go and tables are resized.

use super::{Item, Store};

/// Where a walk goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    shard: usize,
    /// Where the keys begin to be looked for that are next, in [`super::table::Table::after`]'s order.
    home: usize,
}

impl Store {
    /// Shows the living items of the next few places. False: there are no more. An item that is there from the first step to
    /// the last is shown; once, unless its table shrinks.
    pub fn walk(&self, walk: &mut Walk, now: u64, show: &mut dyn FnMut(Item<'_>)) -> bool {
        /// At a time: the shard is locked for some microseconds.
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
