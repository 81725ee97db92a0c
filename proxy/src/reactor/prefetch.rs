//! Loads memory into the processor's caches before it is needed.
#![allow(unsafe_code)]

/// Starts loading the cache lines of `place`. A plain read would do so too, but a processor that takes a
/// lock, or has read far enough ahead, waits for it.
#[inline]
pub fn prefetch<T: ?Sized>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        let start = std::ptr::from_ref(place).cast::<i8>();
        for at in (0..size_of_val(place)).step_by(LINE) {
            // SAFETY: a hint that reads nothing; the address lies within `place`.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(at)) }
        }
    }
    // On other processors Rust has no stable way to ask for it.
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
