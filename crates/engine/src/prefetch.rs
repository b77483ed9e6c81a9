//! Bringing memory into the host's caches before it is needed.

/// Bytes of a cache line of the host.
const LINE: usize = 64;

/// Starts to load every cache line of `place`. Changes nothing but the time of later accesses.
#[inline]
pub fn prefetch_whole<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..size_of::<T>()).step_by(LINE) {
        // SAFETY: a prefetch reads and writes nothing, whatever its address; these lie within a live reference.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast::<i8>().add(offset));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Starts to load the cache line of `place`. Changes nothing but the time of later accesses.
#[inline]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads and writes nothing, whatever its address; this one is of a live reference.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
