//! A provided-buffer ring: memory that the kernel fills as data arrives, so that an idle connection holds none.

use std::{
    alloc::{self, Layout},
    io, ptr,
    sync::atomic::{AtomicU16, Ordering},
};

use io_uring::{IoUring, types::BufRingEntry};

use crate::reactor::{Buffer, buffer::Memory};

/// Rings are shared with the kernel by page.
const PAGE: usize = 4096;

/// One group of equal buffers.
#[derive(Debug)]
pub(super) struct Pool {
    group: u16,
    count: u16,
    size: usize,
    /// `count` entries, shared with the kernel; the tail counter lies in the first one.
    entries: *mut BufRingEntry,
    memory: *mut u8,
    tail: u16,
}

impl Pool {
    /// Registers `count` (a power of two) buffers of `size` bytes as `group`.
    pub(super) fn new(ring: &IoUring, group: u16, count: u16, size: usize) -> io::Result<Self> {
        let (entries_layout, memory_layout) = layouts(count, size)?;
        // SAFETY: both layouts have a size above zero; the pointers are checked before use.
        let (entries, memory) = unsafe { (alloc::alloc_zeroed(entries_layout), alloc::alloc(memory_layout)) };
        if entries.is_null() || memory.is_null() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let mut pool = Self {
            group,
            count,
            size,
            entries: entries.cast(),
            memory,
            tail: 0,
        };
        // SAFETY: the entries live until `drop`, which runs after the ring is gone (see `Uring`'s field order).
        unsafe {
            ring.submitter()
                .register_buf_ring_with_flags(entries as u64, count, group, 0)?
        };
        for id in 0..count {
            pool.give(id);
        }
        pool.publish();
        Ok(pool)
    }

    /// The `len` bytes that the kernel has put into buffer `id`.
    pub(super) fn take(&self, id: u16, len: usize) -> Buffer {
        debug_assert!(id < self.count && len <= self.size);
        // SAFETY: the kernel names only buffers of this group, and fills no more than their size.
        let start = unsafe { self.memory.add(usize::from(id) * self.size) };
        Buffer(Memory::Ring {
            start,
            len,
            group: self.group,
            id,
        })
    }

    /// Hands buffer `id` to the kernel again.
    pub(super) fn recycle(&mut self, id: u16) {
        self.give(id);
        self.publish();
    }

    fn give(&mut self, id: u16) {
        let slot = usize::from(self.tail & (self.count - 1));
        // SAFETY: `slot` is below `count`, and the kernel does not read an entry before the tail has passed it. The fields
        // are set one by one: the tail counter overlays an unused field of the first entry.
        unsafe {
            let entry = &mut *self.entries.add(slot);
            entry.set_addr(self.memory.add(usize::from(id) * self.size) as u64);
            entry.set_len(self.size as u32);
            entry.set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&self) {
        // SAFETY: the tail is an aligned u16 inside the first entry, written by us alone and read by the kernel.
        let tail = unsafe { &*BufRingEntry::tail(self.entries).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Drop for Pool {
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
