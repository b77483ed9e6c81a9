//! The sectors of an L1 line: what a load asks for is rounded to whole ones.

use tombolo_types::Mask;

/// Widens masks to whole sectors of one size, as [`Mask::sectors`] does for any: every load asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sectors {
    /// The last grain of each.
    last: u32,
    /// Grains of one, less one.
    shift: u32,
}

impl Sectors {
    /// Sectors of `grains` grains: 1, 2, 4, 8, 16 or 32.
    pub(super) fn new(grains: u32) -> Sectors {
        let last = (1..=32 / grains).fold(0, |last, sector| last | 1 << (sector * grains - 1));
        Sectors { last, shift: grains - 1 }
    }

    /// The mask widened to whole sectors.
    #[inline]
    pub(super) fn widen(self, mask: Mask) -> Mask {
        // The sum carries into the last grain of a sector where any other is set, and not beyond.
        let any = (((mask.0 & !self.last) + !self.last) | mask.0) & self.last;
        Mask(((u64::from(any) << 1) - u64::from(any >> self.shift)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_mask_widens_as_it_does_for_any_size(mask: u32, power in 0..=5_u32) {
            prop_assert_eq!(Sectors::new(1 << power).widen(Mask(mask)), Mask(mask).sectors(1 << power));
        }
    }
}
