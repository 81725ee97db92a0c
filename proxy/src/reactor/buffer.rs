//! Received bytes, lent by a reactor.

use std::{
    fmt,
    ops::{Deref, Range},
};

/// Received bytes. Give it back with `recycle`: an io_uring buffer that is not given back is lost to its
/// ring.
pub struct Buffer(pub(super) Memory);

pub(super) enum Memory {
    /// The back end's own scratch space. The first `usize` bytes are the data.
    Scratch(Box<[u8]>, usize),
    /// A piece of a provided-buffer ring.
    ///
    /// Invariant: `start` points at `len` initialised bytes of a ring that lives as long as its reactor, and
    /// the kernel does not write there before `recycle` hands the piece back.
    Ring {
        start: *const u8,
        len: usize,
        group: u16,
        id: u16,
    },
}

impl Buffer {
    /// A part of a ring's piece, to be recycled on its own. `None`: the buffer is not from a ring, or the
    /// range is beyond its end.
    pub(super) fn piece(&self, range: Range<usize>) -> Option<Self> {
        let len = self.get(range.clone())?.len();
        match self.0 {
            Memory::Ring { start, group, id, .. } => Some(Self(Memory::Ring {
                start: start.wrapping_add(range.start),
                len,
                group,
                id,
            })),
            Memory::Scratch(..) => None,
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Memory::Scratch(bytes, len) => bytes.get(..*len).unwrap_or_default(),
            #[allow(unsafe_code)]
            // SAFETY: the invariant of `Memory::Ring`; the worker drops or recycles every buffer before its
            // reactor.
            Memory::Ring { start, len, .. } => unsafe { std::slice::from_raw_parts(*start, *len) },
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len())
    }
}
