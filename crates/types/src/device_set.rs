//! Sets: of GPUs, and of modules.

use crate::id::{GpuId, ModuleId};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

/// Number to distinguish devices within a kind.
pub trait DeviceId: Copy {
    /// Kind of device, in the form printed by reports.
    const KIND: &'static str;

    /// The device with this number.
    fn numbered(number: u8) -> Self;

    /// The device's number.
    fn number(self) -> u8;
}

impl DeviceId for GpuId {
    const KIND: &'static str = "GPU";

    fn numbered(number: u8) -> GpuId {
        GpuId(number)
    }

    #[inline]
    fn number(self) -> u8 {
        self.0
    }
}

impl DeviceId for ModuleId {
    const KIND: &'static str = "module";

    fn numbered(number: u8) -> ModuleId {
        ModuleId(number)
    }

    #[inline]
    fn number(self) -> u8 {
        self.0
    }
}

/// Words in a set with a bit for every possible device number.
const ALL_WORDS: usize = (u8::MAX as usize + 1) / WORD;

/// Bits per word.
const WORD: usize = u32::BITS as usize;

/// A set of devices: bit `i` of `WORDS` words represents device `i`. Words have 32 bits, because sets are stored in
/// messages and directory entries.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceSet<I, const WORDS: usize = ALL_WORDS> {
    words: [u32; WORDS],
    of: PhantomData<fn() -> I>,
}

// A derived implementation would need `I: Clone`.
impl<I, const WORDS: usize> Clone for DeviceSet<I, WORDS> {
    fn clone(&self) -> DeviceSet<I, WORDS> {
        *self
    }
}

impl<I, const WORDS: usize> Copy for DeviceSet<I, WORDS> {}

/// A set of any GPUs.
pub type GpuSet = DeviceSet<GpuId>;

/// A set of any modules.
pub type ModuleSet = DeviceSet<ModuleId>;

impl<I, const WORDS: usize> DeviceSet<I, WORDS> {
    /// The empty set.
    pub const NONE: DeviceSet<I, WORDS> = DeviceSet { words: [0; WORDS], of: PhantomData };

    /// Number of devices representable in a set: all below this number.
    pub const CAPACITY: usize = WORDS * WORD;

    /// Set with device `i` for each bit `i`.
    ///
    /// # Panics
    /// Panics if the set has no bit for any of the devices.
    pub const fn from_bits(bits: u64) -> DeviceSet<I, WORDS> {
        let (mut set, mut left, mut word) = (DeviceSet::NONE, bits, 0);
        while left != 0 {
            assert!(word < WORDS, "a device in a set that has no bit for it");
            set.words[word] = left as u32;
            left >>= WORD;
            word += 1;
        }
        set
    }

    /// Devices 0 to `count - 1`.
    ///
    /// # Panics
    /// Panics if `count` is more than [`DeviceSet::CAPACITY`].
    pub fn first(count: u8) -> DeviceSet<I, WORDS> {
        let count = usize::from(count);
        assert!(count <= Self::CAPACITY, "{count} devices in a set that tells {} apart", Self::CAPACITY);
        let bits = |word: usize| count.saturating_sub(word * WORD).min(WORD);
        let words = std::array::from_fn(|word| ((1_u64 << bits(word)) - 1) as u32);
        DeviceSet { words, of: PhantomData }
    }

    /// True if the set contains no device.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.words.iter().fold(0, |all, word| all | word) == 0
    }

    /// Devices in either set.
    #[must_use]
    #[inline]
    pub fn union(self, other: DeviceSet<I, WORDS>) -> DeviceSet<I, WORDS> {
        self.merged(other, |own, other| own | other)
    }

    /// Devices in this set that are not in `other`.
    #[must_use]
    #[inline]
    pub fn difference(self, other: DeviceSet<I, WORDS>) -> DeviceSet<I, WORDS> {
        self.merged(other, |own, other| own & !other)
    }

    /// Devices in both sets.
    #[must_use]
    #[inline]
    pub fn intersection(self, other: DeviceSet<I, WORDS>) -> DeviceSet<I, WORDS> {
        self.merged(other, |own, other| own & other)
    }

    #[inline]
    fn merged(self, other: DeviceSet<I, WORDS>, of: impl Fn(u32, u32) -> u32) -> DeviceSet<I, WORDS> {
        DeviceSet { words: std::array::from_fn(|word| of(self.words[word], other.words[word])), of: PhantomData }
    }

    /// True if the set contains more than one device.
    #[inline]
    pub fn are_several(self) -> bool {
        let mut filled = self.words.iter().filter(|word| **word != 0);
        filled.next().is_some_and(|word| !word.is_power_of_two()) || filled.next().is_some()
    }

    /// Number of devices in this set.
    #[inline]
    pub fn count(self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Bit `i` for each device `i`; `None` if a device is beyond the last bit.
    #[inline]
    pub fn bits(self) -> Option<u64> {
        let (low, beyond) = self.words.split_at(WORDS.min(2));
        let bits = low.iter().rev().fold(0, |bits, word| bits << WORD | u64::from(*word));
        beyond.iter().all(|word| *word == 0).then_some(bits)
    }
}

impl<I: DeviceId, const WORDS: usize> DeviceSet<I, WORDS> {
    /// Set with a single device.
    ///
    /// # Panics
    /// Panics if the set has no bit for the device.
    #[inline]
    pub fn only(device: I) -> DeviceSet<I, WORDS> {
        let mut set = DeviceSet::NONE;
        set.add(device);
        set
    }

    /// Adds a device.
    ///
    /// # Panics
    /// Panics if the set has no bit for the device.
    #[inline]
    pub fn add(&mut self, device: I) {
        let number = usize::from(device.number());
        match self.words.get_mut(number / WORD) {
            Some(word) => *word |= 1 << (number % WORD),
            None => Self::lacks(device),
        }
    }

    /// Removes a device.
    #[inline]
    pub fn remove(&mut self, device: I) {
        let number = usize::from(device.number());
        if let Some(word) = self.words.get_mut(number / WORD) {
            *word &= !(1 << (number % WORD));
        }
    }

    /// True if the set contains a device.
    #[inline]
    pub fn contains(self, device: I) -> bool {
        let number = usize::from(device.number());
        self.words.get(number / WORD).is_some_and(|word| word >> (number % WORD) & 1 != 0)
    }

    /// Number of devices in the set with a smaller number than `device`.
    pub fn before(self, device: I) -> u32 {
        let number = usize::from(device.number()).min(Self::CAPACITY);
        let whole = self.words.iter().take(number / WORD).map(|word| word.count_ones()).sum::<u32>();
        let part = self.words.get(number / WORD).map_or(0, |word| word & ((1 << (number % WORD)) - 1));
        whole + part.count_ones()
    }

    /// Devices in the set, ascending.
    #[inline]
    pub fn iter(self) -> Members<I, WORDS> {
        Members { left: self, word: 0 }
    }

    /// Device with the least number.
    #[inline]
    pub fn lowest(self) -> Option<I> {
        self.iter().next()
    }

    /// Device with the greatest number.
    pub fn highest(self) -> Option<I> {
        let word = self.words.iter().rposition(|word| *word != 0)?;
        Some(I::numbered((word * WORD) as u8 + self.words[word].ilog2() as u8))
    }

    #[cold]
    #[inline(never)]
    fn lacks(device: I) -> ! {
        panic!("{} {} in a set that tells {} apart", I::KIND, device.number(), Self::CAPACITY)
    }
}

impl<I, const WORDS: usize> Default for DeviceSet<I, WORDS> {
    fn default() -> DeviceSet<I, WORDS> {
        DeviceSet::NONE
    }
}

/// Most sets have no device beyond the first word: for such sets, only this word is hashed.
impl<I, const WORDS: usize> Hash for DeviceSet<I, WORDS> {
    #[inline]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u32(self.words[0]);
        let beyond = &self.words[1..];
        if beyond.iter().any(|word| *word != 0) {
            beyond.iter().for_each(|word| hasher.write_u32(*word));
        }
    }
}

impl<I: DeviceId, const WORDS: usize> fmt::Debug for DeviceSet<I, WORDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(I::number)).finish()
    }
}

impl<I: DeviceId, const WORDS: usize> FromIterator<I> for DeviceSet<I, WORDS> {
    fn from_iter<T: IntoIterator<Item = I>>(devices: T) -> DeviceSet<I, WORDS> {
        let mut set = DeviceSet::NONE;
        devices.into_iter().for_each(|device| set.add(device));
        set
    }
}

impl<I: DeviceId, const WORDS: usize> IntoIterator for DeviceSet<I, WORDS> {
    type Item = I;
    type IntoIter = Members<I, WORDS>;

    #[inline]
    fn into_iter(self) -> Members<I, WORDS> {
        self.iter()
    }
}

/// Iterator over the devices in a set, ascending.
#[derive(Clone, Debug)]
pub struct Members<I: DeviceId, const WORDS: usize> {
    left: DeviceSet<I, WORDS>,
    /// Index of the current word: all words before are used up.
    word: usize,
}

impl<I: DeviceId, const WORDS: usize> Iterator for Members<I, WORDS> {
    type Item = I;

    #[inline]
    fn next(&mut self) -> Option<I> {
        while let Some(word) = self.left.words.get_mut(self.word) {
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(I::numbered((self.word * WORD + bit) as u8));
            }
            self.word += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(modules: &BTreeSet<u8>) -> ModuleSet {
        modules.iter().copied().map(ModuleId).collect()
    }

    fn modules(set: ModuleSet) -> BTreeSet<u8> {
        set.iter().map(|module| module.0).collect()
    }

    proptest! {
        #[test]
        fn it_does_what_a_tree_of_numbers_does(
            one in prop::collection::btree_set(any::<u8>(), 0..40),
            other in prop::collection::btree_set(any::<u8>(), 0..40),
            number in any::<u8>(),
        ) {
            let (own, all, module) = (set(&one), set(&one).union(set(&other)), ModuleId(number));
            prop_assert_eq!(&modules(own), &one);
            prop_assert_eq!(modules(all), one.union(&other).copied().collect::<BTreeSet<u8>>());
            prop_assert_eq!(modules(own.difference(set(&other))), one.difference(&other).copied().collect::<BTreeSet<u8>>());
            prop_assert_eq!(modules(own.intersection(set(&other))), one.intersection(&other).copied().collect::<BTreeSet<u8>>());
            prop_assert_eq!(own.count() as usize, one.len());
            prop_assert_eq!(own.are_several(), one.len() > 1);
            prop_assert_eq!(own.is_empty(), one.is_empty());
            prop_assert_eq!(own.contains(module), one.contains(&number));
            prop_assert_eq!(own.before(module) as usize, one.range(..number).count());
            prop_assert_eq!(own.lowest().map(|module| module.0), one.first().copied());
            prop_assert_eq!(own.highest().map(|module| module.0), one.last().copied());
            prop_assert_eq!(modules(ModuleSet::first(number)), (0..number).collect::<BTreeSet<u8>>());
            let mut left = own;
            left.remove(module);
            prop_assert_eq!(left, own.difference(ModuleSet::only(module)));
        }
    }

    #[test]
    fn a_bit_is_a_device() {
        assert_eq!(GpuSet::from_bits(0b101), [GpuId(0), GpuId(2)].into_iter().collect());
        assert_eq!(GpuSet::from_bits(1 << 63 | 0b101).bits(), Some(1 << 63 | 0b101));
        assert_eq!(DeviceSet::<GpuId, 1>::from_bits(0b101).bits(), Some(0b101));
        assert_eq!(GpuSet::only(GpuId(64)).bits(), None);
        assert_eq!(format!("{:?}", GpuSet::from_bits(0b101)), "{0, 2}");
    }

    #[test]
    #[should_panic(expected = "module 32 in a set that tells 32 apart")]
    fn a_set_without_a_bit_for_a_device_refuses_it() {
        DeviceSet::<ModuleId, 1>::only(ModuleId(32));
    }
}
