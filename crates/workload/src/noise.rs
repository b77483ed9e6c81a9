//! Reproducible random numbers for inputs: a hash of seed and position, and a sequence derived from this hash.

/// Increment for the SplitMix64 sequence. Source: Steele, Lea and Flood, OOPSLA 2014.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns 64 random bits for `position` under `seed` (SplitMix64, jumped to the position).
#[inline]
pub fn noise(seed: u64, position: u64) -> u64 {
    let mut bits = seed.wrapping_add(position.wrapping_add(1).wrapping_mul(GAMMA));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A number from 0 to `bound - 1` for `position` under `seed`; `bound` is at least 1.
#[inline]
pub fn below(seed: u64, position: u64, bound: u64) -> u64 {
    ((u128::from(noise(seed, position)) * u128::from(bound)) >> 64) as u64
}

/// A number from -1 to 1, a multiple of 2^-11, to keep short sums of products accurate in single precision.
#[inline]
pub fn unit(seed: u64, position: u64) -> f32 {
    (below(seed, position, 4097) as f32 - 2048.0) / 2048.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_splitmix64() {
        assert_eq!(noise(1_234_567, 0), 6_457_827_717_110_365_317);
        assert_eq!(noise(1_234_567, 1), 3_203_168_211_198_807_973);
    }

    #[test]
    fn bounded_numbers_fill_their_range() {
        let mut seen = [false; 5];
        (0..100).for_each(|position| seen[below(3, position, 5) as usize] = true);
        assert_eq!(seen, [true; 5]);
        assert!((0..1000).all(|position| unit(3, position).abs() <= 1.0));
    }
}
