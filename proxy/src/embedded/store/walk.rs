//! A walk through all items of a keyspace, a few at a time, while items come and go and tables are resized.

use super::{Item, Keyspace, Store};

/// The position of a walk.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    keyspace: Keyspace,
    shard: usize,
    /// The next home, in [`super::table::Table::after`]'s order.
    home: usize,
}

impl Walk {
    /// The bits of a [position](Self::position) that tell the shard.
    const SHARD_BITS: u32 = 10;

    /// A walk from the beginning.
    pub const fn new(keyspace: Keyspace) -> Self {
        Self::at(keyspace, 0)
    }

    /// A walk from this position. An unknown position begins the walk somewhere.
    pub const fn at(keyspace: Keyspace, position: u64) -> Self {
        Self {
            keyspace,
            shard: (position & ((1 << Self::SHARD_BITS) - 1)) as usize,
            home: (position >> Self::SHARD_BITS) as u32 as usize,
        }
    }

    /// The position as a number below 2^42. It is 0 only at the beginning.
    pub const fn position(self) -> u64 {
        (self.home as u64) << Self::SHARD_BITS | self.shard as u64
    }
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
            walk.home = shard.walk(walk.keyspace, walk.home, now, show);
            if walk.home == 0 {
                walk.shard += 1;
                break;
            }
        }
        walk.shard < self.shards.len()
    }
}
