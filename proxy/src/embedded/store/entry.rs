//! The entry of a key while its shard is locked: look, decide and change are one step that no other thread
//! can interrupt.

use parking_lot::MutexGuard;

use super::{
    counters::Counter,
    item::{self, Item, Marks, Meta},
    keyspace::Keyspace,
    shard::{Miss, Shard},
    table::Hash,
};

/// The entry of one key, with an item or without. Its shard is locked until this is dropped, so a thread
/// holds one at a time.
pub struct Entry<'s, 'k> {
    pub(super) shard: MutexGuard<'s, Shard>,
    pub(super) keyspace: Keyspace,
    pub(super) hash: Hash,
    pub(super) key: &'k [u8],
    pub(super) now: u64,
    pub(super) largest: usize,
    pub(super) found: Result<usize, Miss>,
}

/// The value is larger than the store takes. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("object too large for cache")]
pub struct TooLarge;

impl Entry<'_, '_> {
    /// The item, without recording that it was read.
    #[inline]
    pub fn item(&self) -> Option<Item<'_>> {
        self.found.ok().map(|at| self.shard.item(at))
    }

    /// Why there is no item; `None` if there is one.
    pub fn miss(&self) -> Option<Miss> {
        self.found.err()
    }

    /// The item; records that it was read.
    #[inline]
    pub fn read(&mut self) -> Option<Item<'_>> {
        self.hit(Marks::FETCHED);
        self.item()
    }

    /// Records a use of the item, if there is one, and adds `marks` to its marks.
    #[inline]
    pub fn hit(&mut self, marks: Marks) {
        if let Ok(at) = self.found {
            self.shard.hit(at, self.now, marks);
        }
    }

    /// Checks that the store takes a value of this size.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub fn fits(&mut self, value_length: usize, flags: u32) -> Result<(), TooLarge> {
        if item::size(self.key.len(), flags, value_length) > self.largest {
            self.count(Counter::TooLarge);
            return Err(TooLarge);
        }
        Ok(())
    }

    /// Stores `value`, over the item if there is one. Returns the item's cas id.
    ///
    /// # Errors
    /// [`TooLarge`]; the old item stays.
    pub fn put(&mut self, meta: Meta, value: &[u8]) -> Result<u64, TooLarge> {
        self.fits(value.len(), meta.flags)?;
        Ok(self.store(meta, [value, b"", b""]))
    }

    /// Puts `before` in front of the item's value and `after` behind it. The item keeps its flags, its expiry
    /// time and the encoding of its key. Returns the new cas id; `None`: there is no item.
    ///
    /// # Errors
    /// [`TooLarge`]; the old item stays.
    pub fn splice(&mut self, before: &[u8], after: &[u8], cas: Option<u64>) -> Result<Option<u64>, TooLarge> {
        let Some(item) = self.item() else { return Ok(None) };
        let marks = Marks::BINARY_KEY.when(item.marks().has(Marks::BINARY_KEY));
        let meta = Meta {
            flags: item.flags(),
            expires: item.expires(),
            marks,
            cas,
        };
        self.fits(before.len() + item.value().len() + after.len(), meta.flags)?;
        let Ok(at) = self.found else { return Ok(None) };
        let old = self.shard.remove(at);
        self.found = Err(Miss::Absent);
        let value = old.item().value();
        Ok(Some(self.store(meta, [before, value, after])))
    }

    fn store(&mut self, meta: Meta, value: [&[u8]; 3]) -> u64 {
        let place = (self.hash, self.key, self.found.ok());
        let (at, cas) = self.shard.put(self.keyspace, place, self.now, meta, value);
        self.found = Ok(at);
        cas
    }

    /// Drops the item. Returns whether there was one.
    pub fn remove(&mut self) -> bool {
        let Ok(at) = std::mem::replace(&mut self.found, Err(Miss::Absent)) else {
            return false;
        };
        self.shard.remove(at);
        true
    }

    /// Sets the expiry time of the item, if there is one: milliseconds on the store's clock, 0: never.
    pub fn set_expires(&mut self, expires: u64) {
        if let Ok(at) = self.found {
            self.shard.set_expires(at, expires);
        }
    }

    /// Replaces the item's marks, if there is one.
    pub fn set_marks(&mut self, marks: Marks) {
        if let Ok(at) = self.found {
            item::set_marks(self.shard.bytes_mut(at), marks);
        }
    }

    /// Gives the item, if there is one, the cas id `cas` or a fresh one.
    pub fn renew_cas(&mut self, cas: Option<u64>) {
        if let Ok(at) = self.found {
            let cas = cas.unwrap_or_else(|| self.shard.draw_cas());
            item::set_cas(self.shard.bytes_mut(at), cas);
        }
    }

    /// Counts an event of this key.
    #[inline]
    pub fn count(&mut self, counter: Counter) {
        self.shard.counters(self.keyspace).add(counter);
    }
}
