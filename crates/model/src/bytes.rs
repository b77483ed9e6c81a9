//! Parallel comparison of sixteen bytes, held in two words.

/// Mask with the low bit of each byte in a word.
pub(crate) const LOW: u64 = 0x0101_0101_0101_0101;
/// Mask with the high bit of each byte.
pub(crate) const HIGH: u64 = LOW << 7;

/// Sets the high bit in each byte equal to zero, and leaves all remaining bits clear.
#[inline]
pub(crate) fn zero_bytes(word: u64) -> u64 {
    !(((word & !HIGH) + !HIGH) | word | !HIGH)
}

/// Bit mask with a bit set for each of sixteen bytes equal to `byte`.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn equal_bytes(low: u64, high: u64, byte: u8) -> u32 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    // SAFETY: every x86-64 processor has SSE2.
    unsafe {
        let words = _mm_set_epi64x(high as i64, low as i64);
        _mm_movemask_epi8(_mm_cmpeq_epi8(words, _mm_set1_epi8(byte as i8))) as u32
    }
}

/// Bit mask with a bit set for each of sixteen bytes equal to `byte`.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn equal_bytes(low: u64, high: u64, byte: u8) -> u32 {
    let of = |word: u64| gather(zero_bytes(word ^ u64::from(byte) * LOW));
    of(low) | of(high) << 8
}

/// Gathers the high bits of the eight bytes: bit `i` from byte `i`.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline]
fn gather(highs: u64) -> u32 {
    ((highs >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_are_found_one_by_one(low: u64, high: u64, byte: u8) {
            let bytes = low.to_le_bytes().into_iter().chain(high.to_le_bytes());
            let expected = bytes.enumerate().fold(0, |found, (at, other)| found | u32::from(other == byte) << at);
            prop_assert_eq!(equal_bytes(low, high, byte), expected);
            let gathered = gather(zero_bytes(low ^ (u64::from(byte) * LOW)));
            prop_assert_eq!(gathered, expected & 0xff, "the path for other processors");
        }
    }
}
