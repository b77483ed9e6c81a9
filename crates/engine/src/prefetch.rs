//! Bringing memory into the host's caches before it is needed.

/// Bytes of a cache line of the host. Source: assumed, that of x86-64; another would only load more or less than is used.
const LINE: usize = 64;

/// Starts to load the first cache line of `place`. Changes nothing but the time of later accesses.
#[inline]
pub fn prefetch<T>(place: &T) {
    prefetch_at(place, 0);
}

/// Starts to load every cache line of `place`. Changes nothing but the time of later accesses.
#[inline]
pub fn prefetch_whole<T>(place: &T) {
    (0..size_of::<T>()).step_by(LINE).for_each(|offset| prefetch_at(place, offset));
}

/// Starts to load the cache line `offset` bytes into `place`.
#[inline]
fn prefetch_at<T>(place: &T, offset: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads and writes nothing, whatever its address, which may be computed as it likes.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast::<i8>().wrapping_add(offset));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (place, offset);
}
