//! Addresses at three granularities: line, byte mask within a line, page.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

/// A cache line in the virtual address space: byte address divided by the line size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line(pub u64);

/// A page in the virtual address space: byte address divided by the page size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Page(pub u64);

/// A machine's line size: a power of two from 32 to 256 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineSize(u8);

impl LineSize {
    /// 128 bytes, NVIDIA's line size.
    pub const B128: LineSize = LineSize(7);

    /// Line size for `bytes` bytes, or `None` unless a power of two from 32 to 256.
    pub const fn new(bytes: u64) -> Option<LineSize> {
        match bytes {
            32 | 64 | 128 | 256 => Some(LineSize(bytes.trailing_zeros() as u8)),
            _ => None,
        }
    }

    /// Bytes per line.
    #[inline]
    pub const fn bytes(self) -> u64 {
        1 << self.0
    }

    /// Bytes represented by a bit in a [`Mask`]: a 32nd part of a line.
    #[inline]
    pub const fn grain(self) -> u64 {
        self.bytes() / 32
    }

    /// Line that holds byte `address`.
    #[inline]
    pub const fn line_of(self, address: u64) -> Line {
        Line(address >> self.0)
    }

    /// Address of the first byte in `line`.
    #[inline]
    pub const fn address_of(self, line: Line) -> u64 {
        line.0 << self.0
    }

    /// Mask for the bytes `[address, address + len)`, restricted to the line of `address`. A partly covered grain
    /// counts as a whole grain.
    #[inline]
    pub const fn mask(self, address: u64, len: u64) -> Mask {
        let offset = address & (self.bytes() - 1);
        let end = if offset + len > self.bytes() { self.bytes() } else { offset + len };
        let first = offset / self.grain();
        let last = end.div_ceil(self.grain());
        if last <= first {
            return Mask::NONE;
        }
        Mask((((1_u64 << (last - first)) - 1) << first) as u32)
    }
}

/// A set of bytes in a line: bit `i` represents the `i`-th 32nd of the line (4 bytes in a 128-byte line). An access to
/// part of a grain covers the whole grain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mask(pub u32);

impl Mask {
    /// No byte.
    pub const NONE: Mask = Mask(0);
    /// The whole line.
    pub const ALL: Mask = Mask(u32::MAX);

    /// True if the mask contains no byte.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if `self` contains every byte of `other`.
    #[inline]
    pub const fn contains(self, other: Mask) -> bool {
        other.0 & !self.0 == 0
    }

    /// True if both masks have some byte in common.
    #[inline]
    pub const fn overlaps(self, other: Mask) -> bool {
        other.0 & self.0 != 0
    }

    /// Number of grains.
    #[inline]
    pub const fn grains(self) -> u32 {
        // Most masks are whole, and a processor may lack an instruction that counts bits.
        if self.0 == Mask::ALL.0 { u32::BITS } else { self.0.count_ones() }
    }
}

impl BitOr for Mask {
    type Output = Mask;
    #[inline]
    fn bitor(self, other: Mask) -> Mask {
        Mask(self.0 | other.0)
    }
}

impl BitOrAssign for Mask {
    #[inline]
    fn bitor_assign(&mut self, other: Mask) {
        self.0 |= other.0;
    }
}

impl BitAnd for Mask {
    type Output = Mask;
    #[inline]
    fn bitand(self, other: Mask) -> Mask {
        Mask(self.0 & other.0)
    }
}

impl Not for Mask {
    type Output = Mask;
    #[inline]
    fn not(self) -> Mask {
        Mask(!self.0)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {:#x}", self.0)
    }
}

/// Sectors of a line: requested masks are widened to whole sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sectors {
    /// Mask with the last grain of each sector.
    last: u32,
    /// Grains per sector, minus one.
    shift: u32,
}

/// A single sector that covers the whole line.
impl Default for Sectors {
    fn default() -> Sectors {
        Sectors::new(32)
    }
}

impl Sectors {
    /// Sectors with `grains` grains each: 1, 2, 4, 8, 16 or 32.
    pub fn new(grains: u32) -> Sectors {
        let last = (1..=32 / grains).fold(0, |last, sector| last | 1 << (sector * grains - 1));
        Sectors { last, shift: grains - 1 }
    }

    /// The mask widened to whole sectors.
    #[inline]
    pub fn widen(self, mask: Mask) -> Mask {
        // The sum carries into a sector's last grain if any other grain is set, and not beyond.
        let any = (((mask.0 & !self.last) + !self.last) | mask.0) & self.last;
        Mask(((u64::from(any) << 1) - u64::from(any >> self.shift)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_covers_the_grains_it_touches() {
        let size = LineSize::B128;
        assert_eq!(size.mask(0, 128), Mask::ALL);
        assert_eq!(size.mask(4, 4), Mask(0b10));
        assert_eq!(size.mask(5, 4), Mask(0b110), "an unaligned word covers two grains");
        assert_eq!(size.mask(126, 8), Mask(1 << 31), "bytes beyond the line are cut off");
    }

    #[test]
    fn sectors_widen_a_mask() {
        assert_eq!(Sectors::new(8).widen(Mask(0b1)), Mask(0xff));
        assert_eq!(Sectors::new(32).widen(Mask(1 << 31)), Mask::ALL);
        assert_eq!(Sectors::new(8).widen(Mask(1 << 9 | 1)), Mask(0xffff));
        for grains in [1, 2, 4, 8, 16, 32_u32] {
            for bits in [0, 1, 1 << 31, 0x0010_0200, 0x8001_0001, 0x0f0f_00f0, u32::MAX] {
                let touched = |grain: u32| (0..32).any(|bit| bit / grains == grain / grains && bits >> bit & 1 != 0);
                let wide = (0..32).filter(|&grain| touched(grain)).fold(0, |wide, grain| wide | 1 << grain);
                assert_eq!(Sectors::new(grains).widen(Mask(bits)), Mask(wide), "{bits:#x} in sectors of {grains}");
            }
        }
    }
}
