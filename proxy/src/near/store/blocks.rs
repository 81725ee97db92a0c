//! Blocks of memory for keys and small replies. A free block waits in its shard for the next bytes of its
//! size.
//!
//! Each worker allocates from a heap of its own, and its replies are evicted when another worker keeps
//! something. That leaves holes in its heap that it alone can fill again. Without blocks, a store of 64 MiB
//! took up to 146 MiB where workers were busy one after the other.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// The divisor of a store's memory that gives the part for free blocks.
const SHARE: usize = 32;
/// The most free blocks of a shard, so that looking for one takes no time that matters.
const MOST: usize = 64;

/// The memory that the free blocks of all shards take and may take.
#[derive(Default)]
pub(super) struct FreeBlockBudget {
    bytes: AtomicUsize,
    most: AtomicUsize,
}

impl FreeBlockBudget {
    /// Sets the part of a store's memory that free blocks may take, and returns what is left.
    pub(super) fn take(&self, memory: usize) -> usize {
        self.most.store(memory / SHARE, Relaxed);
        memory - memory / SHARE
    }

    /// Bytes of the free blocks.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }
}

/// The free blocks of a shard, the one that was used last at the end. Each is empty.
pub(super) struct Blocks {
    free: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The memory of all shards' free blocks, and this shard's bytes of it.
    share: Arc<FreeBlockBudget>,
    told: usize,
}

impl Blocks {
    pub(super) fn new(share: Arc<FreeBlockBudget>) -> Self {
        Self {
            free: VecDeque::new(),
            bytes: 0,
            share,
            told: 0,
        }
    }

    /// Reports the bytes that the free blocks take now. A block that goes and comes in between costs no
    /// access to memory that others write.
    pub(super) fn tell(&mut self) {
        if self.bytes != self.told {
            self.share
                .bytes
                .fetch_add(self.bytes.wrapping_sub(self.told), Relaxed);
            self.told = self.bytes;
        }
    }

    /// An empty block with room for this number of bytes, which is a size class.
    pub(super) fn take(&mut self, size: usize) -> Vec<u8> {
        let place = self.free.iter().rposition(|block| block.capacity() == size);
        match place.and_then(|place| self.free.swap_remove_back(place)) {
            Some(block) => {
                self.bytes -= size;
                block
            }
            None => Vec::with_capacity(size),
        }
    }

    /// Keeps a free block, in place of blocks that were not used. Returns how many bytes were freed.
    pub(super) fn put(&mut self, mut block: Vec<u8>) -> usize {
        let (size, most) = (block.capacity(), self.share.most.load(Relaxed));
        let others = self.share.bytes().saturating_sub(self.told);
        let mut freed = 0;
        while self.free.len() >= MOST || others + self.bytes + size > most {
            let Some(oldest) = self.free.pop_front() else {
                return freed + size;
            };
            self.bytes -= oldest.capacity();
            freed += oldest.capacity();
        }
        block.clear();
        self.bytes += size;
        self.free.push_back(block);
        freed
    }

    /// Frees the free blocks.
    pub(super) fn clear(&mut self) {
        (self.free, self.bytes) = (VecDeque::new(), 0);
        self.tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(memory: usize) -> Blocks {
        let share = Arc::<FreeBlockBudget>::default();
        assert_eq!(share.take(memory), memory - memory / 32);
        Blocks::new(share)
    }

    fn written(blocks: &mut Blocks, size: usize) -> Vec<u8> {
        let mut block = blocks.take(size);
        block.resize(size, 1);
        block
    }

    #[test]
    fn free_block_is_used_again_by_bytes_of_its_size() {
        let mut blocks = blocks(32 << 10);
        let block = written(&mut blocks, 448);
        let place = block.as_ptr();
        assert_eq!(blocks.put(block), 0);
        assert_eq!(blocks.bytes, 448);
        let other = written(&mut blocks, 512);
        assert!(other.as_ptr() != place && blocks.bytes == 448);
        let again = blocks.take(448);
        assert!(again.is_empty() && again.as_ptr() == place);
        assert_eq!(blocks.bytes, 0);
        blocks.put(again);
        blocks.clear();
        assert_eq!(blocks.bytes, 0);
    }

    #[test]
    fn free_blocks_take_no_more_than_their_share_and_those_go_that_were_not_used() {
        let mut blocks = blocks(32 << 10);
        let taken = [(); 5].map(|()| written(&mut blocks, 224));
        let freed = taken.map(|block| blocks.put(block));
        assert_eq!((freed, blocks.bytes), ([0, 0, 0, 0, 224], 4 * 224));
        let block = written(&mut blocks, 448);
        assert_eq!((blocks.put(block), blocks.bytes), (448, 2 * 224 + 448));
        let block = written(&mut blocks, 2048);
        blocks.put(block);
        assert_eq!(blocks.bytes, 0, "it is more than the share, and all others went");
    }

    #[test]
    fn a_shard_has_no_more_free_blocks_than_can_be_looked_through() {
        let mut blocks = blocks(32 << 20);
        let taken: Vec<_> = (0..MOST + 9).map(|_| written(&mut blocks, 16)).collect();
        let freed: usize = taken.into_iter().map(|block| blocks.put(block)).sum();
        assert_eq!((freed, blocks.bytes), (9 * 16, MOST * 16));
        blocks.tell();
        assert_eq!(blocks.share.bytes(), MOST * 16);
        blocks.clear();
        assert_eq!(blocks.share.bytes(), 0);
    }
}
