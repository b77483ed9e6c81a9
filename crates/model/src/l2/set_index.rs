//! Mapping from a line to a set, channel or bank, for any number of sets. No function divides: a multiplication by a
//! precomputed reciprocal replaces each division.

/// 2^64 divided by the golden ratio, odd. Source: Knuth, The Art of Computer Programming 3, section 6.4 (Fibonacci
/// hashing).
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Source: the second multiplier in MurmurHash3's 64-bit finaliser, odd.
const SCATTER: u64 = 0xc4ce_b9fe_1a85_ec53;

/// Hash for line numbers, in tables inside a slice. It is independent of the slice selection
/// ([`crate::l2::address_map::AddressMap::slice`] uses the golden ratio). Otherwise the lines in a slice would share their upper bits and
/// pile up.
#[inline]
pub(crate) fn scatter(number: u64) -> u64 {
    number.wrapping_mul(SCATTER)
}

/// A divisor known in advance: division becomes multiplication.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisor {
    by: u64,
    /// 2^64 / `by`, rounded down: quotients computed with this value are right or too small by 1.
    reciprocal: u64,
}

impl Divisor {
    /// A divisor, which must be above zero.
    pub(crate) fn new(by: u64) -> Divisor {
        Divisor { by, reciprocal: u64::MAX / by }
    }

    /// Quotient and remainder of `number`.
    #[inline]
    pub(crate) fn split(self, number: u64) -> (u64, u64) {
        let quotient = ((u128::from(number) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = number - quotient * self.by;
        if rest >= self.by { (quotient + 1, rest - self.by) } else { (quotient, rest) }
    }
}

/// Maps numbers to `0..sets`, for any count of sets.
///
/// The count splits a number into quotient and remainder; the set is the remainder, rotated by a hash of the quotient.
/// Every aligned run of `sets` consecutive numbers therefore fills each set once, like plain modulo, but numbers a
/// multiple of `sets` apart do not pile up in one set. An unaligned run may meet a set twice at its two ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetIndex {
    sets: u64,
    /// 2^(63 + `shift`) / `sets`, rounded up. Quotients for numbers below 2^63 are right, because the relative error is
    /// less than 2^-63. Source: Granlund and Montgomery, Division by invariant integers using multiplication, 1994,
    /// theorem 4.2.
    reciprocal: u64,
    /// Binary logarithm for `sets`, rounded up.
    shift: u32,
    /// Multiplier for the quotient's hash; 0 if there is no rotation.
    hash: u64,
}

impl SetIndex {
    /// An index over `sets` sets. Panics on zero.
    pub(crate) fn new(sets: u32) -> SetIndex {
        assert!(sets > 0, "an index needs at least one set");
        let shift = u64::from(sets).next_power_of_two().trailing_zeros();
        let reciprocal = (1_u128 << (63 + shift)).div_ceil(u128::from(sets)) as u64;
        SetIndex { sets: sets.into(), reciprocal, shift, hash: GOLDEN }
    }

    /// An index over `sets` sets by the remainder alone: the number's low bits, for a power of two. Panics on zero.
    pub(crate) fn by_low_bits(sets: u32) -> SetIndex {
        SetIndex { hash: 0, ..SetIndex::new(sets) }
    }

    /// An index over `sets` sets for the lines in some slices only. Like the hash of `scatter`, its hash is independent
    /// of the slice selection. Panics on zero.
    pub(crate) fn within_slices(sets: u32) -> SetIndex {
        SetIndex { hash: SCATTER, ..SetIndex::new(sets) }
    }

    /// Number of sets.
    pub(crate) fn sets(self) -> u32 {
        self.sets as u32
    }

    /// Quotient and remainder for `number`, below 2^63, by the set count, without a division.
    #[inline]
    pub(crate) fn split(self, number: u64) -> (u64, u64) {
        debug_assert!(number < 1 << 63, "{number} is no number of a line");
        let quotient = ((u128::from(number << 1) * u128::from(self.reciprocal)) >> 64) as u64 >> self.shift;
        (quotient, number - quotient * self.sets)
    }

    /// Set for `number`, and the quotient by the set count: both together identify the number.
    #[inline]
    pub(crate) fn place(self, number: u64) -> (u64, usize) {
        let (quotient, rest) = self.split(number);
        let turn = ((quotient.wrapping_mul(self.hash) >> 32) * self.sets) >> 32;
        let turned = rest + turn;
        (quotient, (if turned >= self.sets { turned - self.sets } else { turned }) as usize)
    }

    /// Set for `number`.
    #[inline]
    pub(crate) fn index(self, number: u64) -> usize {
        self.place(number).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fullest(sets: u32, numbers: impl Iterator<Item = u64>) -> u32 {
        let index = SetIndex::new(sets);
        let mut count = vec![0; sets as usize];
        numbers.for_each(|number| count[index.index(number)] += 1);
        count.into_iter().max().unwrap()
    }

    #[test]
    fn an_aligned_run_fills_every_set_once() {
        for sets in [1, 3, 64, 1536] {
            for block in [0, 1, 77] {
                let start = block * u64::from(sets);
                assert_eq!(fullest(sets, start..start + u64::from(sets)), 1, "{sets} sets");
            }
        }
    }

    #[test]
    fn strides_do_not_pile_up_in_one_set() {
        for sets in [64, 1024, 1536] {
            for stride in [2, 32, 64, 96, 512, 1024, 1536, 4096, 1 << 14, 1 << 20] {
                let most = fullest(sets, (0..u64::from(sets) * 8).map(|i| i * stride));
                assert!(most <= 32, "{sets} sets, stride {stride}: {most} of 8 on average");
            }
        }
    }

    #[test]
    fn low_bits_pile_strides_up() {
        let index = SetIndex::by_low_bits(64);
        assert!((0..8).all(|i| index.index(i * 64 + 5) == 5));
        assert_eq!(index.place(131), (2, 3));
    }

    proptest! {
        #[test]
        fn an_index_splits_as_a_division_does(
            number in 0..1_u64 << 63,
            below in 0..64_u64,
            sets in 1..=u32::MAX,
            shift in 0..32_u32,
        ) {
            let sets = (sets >> shift).max(1);
            let wide = u64::from(sets);
            // Numbers next to a multiple reveal rounding errors first.
            for number in [number, number / wide * wide, (number / wide * wide).saturating_sub(1), (1 << 63) - 1 - below] {
                prop_assert_eq!(SetIndex::new(sets).split(number), (number / wide, number % wide));
            }
        }

        #[test]
        fn the_split_is_a_division(number: u64, by in 1..=u64::MAX, shift in 0..64_u32) {
            let by = (by >> shift).max(1);
            prop_assert_eq!(Divisor::new(by).split(number), (number / by, number % by));
        }
    }
}
