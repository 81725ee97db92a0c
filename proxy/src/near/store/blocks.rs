//! Blocks of memory for keys and small replies. A block that is free waits for the next bytes of its size.
//!
//! Each worker allocates from a heap of its own, and what it has kept goes when another one keeps something: that
//! leaves places in its heap that it alone can fill again. Without blocks, a store of 64 MiB took up to 146 MiB
//! where workers were busy one after the other.

use std::{
    collections::BTreeMap,
    mem,
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use parking_lot::Mutex;

use crate::size_class::size_class;

/// One part in so many of a store's memory is for free blocks.
const SHARE: usize = 32;

/// The free blocks of a store.
#[derive(Default)]
pub(super) struct Blocks {
    free: Mutex<Free>,
    /// The most bytes of free blocks.
    most: AtomicUsize,
}

#[derive(Default)]
struct Free {
    by_size: BTreeMap<usize, Vec<Box<[u8]>>>,
    bytes: usize,
}

/// A block, and how many bytes at its beginning are in use.
pub(super) struct Block {
    room: Box<[u8]>,
    length: u32,
    blocks: Arc<Blocks>,
}

impl Blocks {
    /// Sets the part of a store's memory that free blocks may take, and returns what is left.
    pub(super) fn take_share(&self, memory: usize) -> usize {
        self.most.store(memory / SHARE, Relaxed);
        memory - memory / SHARE
    }

    /// A block with a copy of these bytes, which are at most 4 GiB.
    pub(super) fn copy(self: &Arc<Self>, bytes: &[u8]) -> Block {
        let size = size_class(bytes.len());
        let mut room = self
            .free
            .lock()
            .take(size)
            .unwrap_or_else(|| vec![0; size].into());
        if let Some(begin) = room.get_mut(..bytes.len()) {
            begin.copy_from_slice(bytes);
        }
        Block {
            room,
            length: bytes.len() as u32,
            blocks: Arc::clone(self),
        }
    }

    /// Bytes of the free blocks.
    pub(super) fn bytes(&self) -> usize {
        self.free.lock().bytes
    }

    /// Frees the free blocks.
    pub(super) fn clear(&self) {
        drop(mem::take(&mut *self.free.lock()));
    }

    /// Keeps a block that is free. Where there is no room for it, one of the size of which most is free goes.
    fn put(&self, room: Box<[u8]>) {
        let most = self.most.load(Relaxed);
        if room.is_empty() || room.len() > most {
            return;
        }
        let mut free = self.free.lock();
        while free.bytes + room.len() > most {
            let bytes = |(&size, rooms): (&usize, &Vec<_>)| (size * rooms.len(), size);
            let (_, size) = free.by_size.iter().map(bytes).max().unwrap_or_default();
            if size == room.len() || free.take(size).is_none() {
                return;
            }
        }
        free.bytes += room.len();
        free.by_size.entry(room.len()).or_default().push(room);
    }
}

impl Free {
    fn take(&mut self, size: usize) -> Option<Box<[u8]>> {
        let room = self.by_size.get_mut(&size)?.pop()?;
        self.bytes -= room.len();
        Some(room)
    }
}

impl Block {
    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.room.len()
    }
}

impl Deref for Block {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.room.get(..self.length as usize).unwrap_or_default()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.blocks.put(mem::take(&mut self.room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_block_is_used_again_by_bytes_of_its_size() {
        let blocks = Arc::new(Blocks::default());
        assert_eq!(blocks.take_share(32 << 10), 31 << 10);
        let block = blocks.copy(&[1; 400]);
        assert_eq!((&*block, block.memory()), (&[1; 400][..], 448));
        let place = block.as_ptr();
        drop(block);
        assert_eq!(blocks.bytes(), 448);
        let other = blocks.copy(&[2; 500]);
        assert!(other.as_ptr() != place && blocks.bytes() == 448);
        let again = blocks.copy(&[3; 410]);
        assert_eq!(
            (again.as_ptr(), &*again, blocks.bytes()),
            (place, &[3; 410][..], 0)
        );
        drop((again, other));
        blocks.clear();
        assert_eq!(blocks.bytes(), 0);
    }

    #[test]
    fn free_blocks_take_no_more_than_their_share_and_give_way_to_rarer_sizes() {
        let blocks = Arc::new(Blocks::default());
        blocks.take_share(32 << 10);
        drop([(); 5].map(|()| blocks.copy(&[0; 200])));
        assert_eq!(blocks.bytes(), 4 * 224, "one had no room");
        drop(blocks.copy(&[0; 400]));
        assert_eq!(blocks.bytes(), 2 * 224 + 448);
        drop(blocks.copy(&[0; 2000]));
        assert_eq!(blocks.bytes(), 2 * 224 + 448, "it is more than the share");
    }
}
