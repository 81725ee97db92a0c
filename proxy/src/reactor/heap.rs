//! The memory of a thread.
#![allow(unsafe_code)]

/// Gives back what other threads have freed of this thread's memory. The allocator has a heap for each thread, and a
/// thread that allocates nothing does not see what is free in its own.
pub fn give_back() {
    // SAFETY: a call that only this thread's heap is concerned with; nothing that is in use moves.
    unsafe { libmimalloc_sys::mi_collect(false) }
}
