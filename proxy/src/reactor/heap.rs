//! The memory of a thread.
#![allow(unsafe_code)]

/// Gives back what is free of this thread's memory, also what other threads have freed of it. The allocator
/// has a heap for each thread, and a thread that allocates nothing does not see what is free in its own.
/// Nothing is held for later: without force, a page that is found free goes only when the thread comes here
/// again.
pub fn give_back() {
    // SAFETY: a call that only this thread's heap is concerned with; nothing that is in use moves.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
