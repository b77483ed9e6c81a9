//! The CTA's scratchpad ("shared memory", LDS) with its bank conflicts.

use super::access::lanes;
use super::lanes::{Index, Lanes, MAX_LANES};
use super::memory::Element;
use super::warp::Warp;
use std::array::from_fn;
use tombolo_types::stream::Op;

/// Number of scratchpad banks, each 4 bytes wide. Source: CUDA C++ Programming Guide, shared memory of compute
/// capability 5.x and later; AMD's LDS also has 32 banks.
const BANKS: usize = 32;
/// Maximum number of words per lane: a 16-byte vector.
const MAX_WORDS: usize = 4;

/// An array in the scratchpad of a CTA, created by [`Cta::shared`](super::Cta::shared).
pub struct Shared<T> {
    pub(super) values: Vec<T>,
}

impl<T: Element> Shared<T> {
    /// The contents, for arithmetic on whole tiles whose cost is stated by [`Warp::compute`].
    pub fn values(&self) -> &[T] {
        &self.values
    }
}

impl Warp<'_> {
    /// Loads `shared[index]` in each active lane. Its latency is not tracked: the value depends on no load.
    pub fn load_shared<T: Element, I: Index>(&mut self, shared: &Shared<T>, index: Lanes<I>) -> Lanes<T> {
        let [values] = self.load_shared_vector(shared, index);
        values
    }

    /// Loads `N` elements starting at `shared[index]` in each active lane with a single instruction (`float4`).
    pub fn load_shared_vector<T: Element, I: Index, const N: usize>(
        &mut self,
        shared: &Shared<T>,
        index: Lanes<I>,
    ) -> [Lanes<T>; N] {
        let elements = self.shared_access(shared, index, N as u64);
        from_fn(|part| {
            let mut values = Lanes::all(T::default());
            lanes(self.active).for_each(|lane| values.values[lane] = shared.values[elements[lane] as usize + part]);
            values.deps.unknown = self.launch.address_only();
            values
        })
    }

    /// Stores `value` to `shared[index]` in each active lane.
    pub fn store_shared<T: Element, I: Index>(
        &mut self,
        shared: &mut Shared<T>,
        index: Lanes<I>,
        value: impl Into<Lanes<T>>,
    ) {
        self.store_shared_vector(shared, index, [value.into()]);
    }

    /// Stores `N` values to the elements starting at `shared[index]` in each active lane with a single instruction
    /// (`float4`).
    pub fn store_shared_vector<T: Element, I: Index, const N: usize>(
        &mut self,
        shared: &mut Shared<T>,
        index: Lanes<I>,
        value: [Lanes<T>; N],
    ) {
        value.iter().for_each(|part| self.record.wait(part.deps));
        let elements = self.shared_access(shared, index, N as u64);
        if self.launch.address_only() {
            return;
        }
        for lane in lanes(self.active) {
            for (part, value) in value.iter().enumerate() {
                shared.values[elements[lane] as usize + part] = value.values[lane];
            }
        }
    }

    fn shared_access<T: Element, I: Index>(
        &mut self,
        shared: &Shared<T>,
        index: Lanes<I>,
        items: u64,
    ) -> [u64; MAX_LANES] {
        self.record.wait(index.deps);
        if index.deps.unknown {
            self.fault(format_args!("a scratchpad index depends on a value that a run of addresses alone lacks"));
        }
        let elements: [u64; MAX_LANES] = from_fn(|lane| index.values[lane].element());
        let len = shared.values.len() as u64;
        for lane in lanes(self.active) {
            if elements[lane].checked_add(items).is_none_or(|end| end > len) {
                self.fault(format_args!("scratchpad[{}] is outside its {len} elements", elements[lane] as i64));
            }
        }
        let words = (T::BYTES * items).div_ceil(4);
        let passes = passes(self.active, words, |lane| elements[lane] * T::BYTES / 4);
        self.record.ops.push(Op::Shared { passes });
        elements
    }
}

/// Number of passes for an access in which each active lane accesses `words` words starting at `word(lane)`: the
/// largest number of distinct words in any bank, at least 1.
#[inline]
fn passes(active: u64, words: u64, word: impl Fn(usize) -> u64) -> u16 {
    /// End marker of a list.
    const NONE: u16 = u16::MAX;
    // Linked list of distinct words per bank: `latest` has each list's head, `before` each word's predecessor.
    let (mut latest, mut counts) = ([NONE; BANKS], [0_u16; BANKS]);
    let (mut distinct, mut before) = ([0_u64; MAX_LANES * MAX_WORDS], [NONE; MAX_LANES * MAX_WORDS]);
    let mut next = 0_u16;
    for lane in lanes(active) {
        for at in word(lane)..word(lane) + words {
            let bank = at as usize % BANKS;
            let mut known = latest[bank];
            while known != NONE && distinct[usize::from(known)] != at {
                known = before[usize::from(known)];
            }
            if known == NONE {
                (distinct[usize::from(next)], before[usize::from(next)]) = (at, latest[bank]);
                latest[bank] = next;
                counts[bank] += 1;
                next += 1;
            }
        }
    }
    counts.into_iter().max().map_or(1, |most| most.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const WARP: u64 = u32::MAX as u64;

    proptest! {
        #[test]
        fn passes_are_the_most_distinct_words_of_a_bank(
            active in any::<u64>(), log_words in 0_u32..=2, all in prop::collection::vec(0_u64..400, MAX_LANES),
        ) {
            let words = 1 << log_words;
            let on = (0..MAX_LANES).filter(|lane| active >> lane & 1 != 0);
            let touched: BTreeSet<u64> = on.flat_map(|lane| all[lane]..all[lane] + words).collect();
            let of = |bank| touched.iter().filter(|&&at| at as usize % BANKS == bank).count();
            let most = (0..BANKS).map(of).max().unwrap_or(0).max(1);
            prop_assert_eq!(usize::from(passes(active, words, |lane| all[lane])), most);
        }
    }

    #[test]
    fn passes_count_the_words_of_the_busiest_bank() {
        assert_eq!(passes(WARP, 1, |lane| lane as u64), 1, "unit stride");
        assert_eq!(passes(WARP, 1, |_| 5), 1, "broadcast");
        assert_eq!(passes(WARP, 1, |lane| 2 * lane as u64), 2, "stride two");
        assert_eq!(passes(WARP, 1, |lane| 32 * lane as u64), 32, "one bank");
        assert_eq!(passes(WARP, 1, |lane| 33 * lane as u64), 1, "padded column");
        assert_eq!(passes(WARP, 4, |lane| 4 * lane as u64), 4, "float4");
        assert_eq!(passes(0, 1, |_| 0), 1);
    }
}
