//! A provided-buffer ring: memory that the kernel fills as data arrives, so that an idle connection holds
//! none.
//!
//! From Linux 6.12 on buffers are filled *incrementally*: new data is put right behind earlier data, so that
//! a thousand small requests touch a few dense pages and not a page each. A buffer then goes back when the
//! kernel is through with it and every piece of it has been recycled.

use std::{
    alloc::{self, Layout},
    io, ptr,
    sync::atomic::{AtomicU16, Ordering},
};

use io_uring::{IoUring, types::BufRingEntry};

use crate::reactor::{Buffer, buffer::Memory};

/// The kernel shares rings by page.
const PAGE: usize = 4096;

/// `IOU_PBUF_RING_INC`: fill incrementally.
const INCREMENTAL: u16 = 2;

/// The number of buffers and their size in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RingSize {
    /// A power of two.
    pub(super) count: u16,
    pub(super) size: usize,
}

/// Sizes for requests, which are small and come from many clients: filled densely, or one for each receive.
pub(super) const SMALL: [RingSize; 2] = [
    RingSize {
        count: 8,
        size: 64 * 1024,
    },
    RingSize {
        count: 512,
        size: 4 * 1024,
    },
];
/// Sizes for replies, which are large and come from few servers. They bound the data that is on its way when
/// a connection is paused.
pub(super) const LARGE: [RingSize; 2] = [
    RingSize {
        count: 4,
        size: 256 * 1024,
    },
    RingSize {
        count: 16,
        size: 64 * 1024,
    },
];

/// The use of a buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    filled: usize,
    /// Pieces that are not recycled yet.
    lent: u32,
    /// The kernel will put no more into it.
    full: bool,
}

/// A group of equal buffers.
#[derive(Debug)]
pub(super) struct BufferRing {
    group: u16,
    count: u16,
    size: usize,
    uses: Vec<Use>,
    /// `count` entries, shared with the kernel; the tail counter lies in the first one.
    entries: *mut BufRingEntry,
    memory: *mut u8,
    tail: u16,
}

impl BufferRing {
    /// Registers buffers of size `dense`, to be filled incrementally, as `group`. Where the kernel cannot do
    /// that, it registers buffers of size `single`, one for each receive.
    pub(super) fn new(ring: &IoUring, group: u16, dense: RingSize, single: RingSize) -> io::Result<Self> {
        Self::register(ring, group, dense, INCREMENTAL).or_else(|_| Self::register(ring, group, single, 0))
    }

    fn register(ring: &IoUring, group: u16, shape: RingSize, flags: u16) -> io::Result<Self> {
        let RingSize { count, size } = shape;
        let (entries_layout, memory_layout) = layouts(count, size)?;
        // SAFETY: both layouts have a size above zero; the pointers are checked before use.
        let (entries, memory) = unsafe { (alloc::alloc_zeroed(entries_layout), alloc::alloc(memory_layout)) };
        if entries.is_null() || memory.is_null() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let mut buffers = Self {
            group,
            count,
            size,
            uses: vec![Use::default(); usize::from(count)],
            entries: entries.cast(),
            memory,
            tail: 0,
        };
        // SAFETY: the entries live until `drop`, which runs after the ring is gone (see `Uring`'s field
        // order).
        unsafe {
            ring.submitter()
                .register_buf_ring_with_flags(entries as u64, count, group, flags)?
        };
        for id in 0..count {
            buffers.give(id);
        }
        buffers.publish();
        Ok(buffers)
    }

    /// The next `len` bytes that the kernel has put into buffer `id`. `more`: further bytes will follow in
    /// the same buffer.
    pub(super) fn take(&mut self, id: u16, len: usize, more: bool) -> Buffer {
        let used = &mut self.uses[usize::from(id)];
        let at = used.filled;
        debug_assert!(at + len <= self.size);
        used.filled += len;
        used.lent += 1;
        used.full |= !more;
        // SAFETY: the kernel names only buffers of this group, and fills no more than their size.
        let start = unsafe { self.memory.add(usize::from(id) * self.size + at) };
        Buffer(Memory::Ring {
            start,
            len,
            group: self.group,
            id,
        })
    }

    /// Keeps buffer `id` for one more `recycle`.
    pub(super) fn retain(&mut self, id: u16) {
        self.uses[usize::from(id)].lent += 1;
    }

    /// Takes a piece of buffer `id` back. The kernel gets the buffer again with its last piece.
    pub(super) fn recycle(&mut self, id: u16) {
        let used = &mut self.uses[usize::from(id)];
        used.lent -= 1;
        if used.full && used.lent == 0 {
            *used = Use::default();
            self.give(id);
            self.publish();
        }
    }

    fn give(&mut self, id: u16) {
        let slot = usize::from(self.tail & (self.count - 1));
        // SAFETY: `slot` is below `count`, and the kernel does not read an entry before the tail has passed
        // it. The fields are set one by one: the tail counter overlays an unused field of the first entry.
        unsafe {
            let entry = &mut *self.entries.add(slot);
            entry.set_addr(self.memory.add(usize::from(id) * self.size) as u64);
            entry.set_len(self.size as u32);
            entry.set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&self) {
        // SAFETY: the tail is an aligned u16 inside the first entry, written by us alone and read by the
        // kernel.
        let tail = unsafe { &*BufRingEntry::tail(self.entries).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Drop for BufferRing {
    fn drop(&mut self) {
        if let Ok((entries, memory)) = layouts(self.count, self.size) {
            // SAFETY: allocated in `new` with the same layouts; the ring that used them is already closed.
            unsafe {
                alloc::dealloc(self.entries.cast(), entries);
                alloc::dealloc(ptr::from_mut(&mut *self.memory), memory);
            }
        }
    }
}

fn layouts(count: u16, size: usize) -> io::Result<(Layout, Layout)> {
    let entries = usize::from(count) * size_of::<BufRingEntry>();
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
    Ok((
        Layout::from_size_align(entries, PAGE).map_err(invalid)?,
        Layout::from_size_align(usize::from(count) * size, PAGE).map_err(invalid)?,
    ))
}
