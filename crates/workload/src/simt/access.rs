//! Loads and stores by a warp.

use super::coalesce;
use super::deps::Deps;
use super::lanes::{Index, Lanes, MAX_LANES};
use super::launch::Discipline;
use super::memory::{Array, Element};
use super::warp::{SpinDetector, Warp};
use std::array::from_fn;
use tombolo_types::stream::{Accesses, AtomicResult, Op};
use tombolo_types::{Order, Scope, Semantics};

/// Number of consecutive loads from the same line, with no other memory access in between, after which a warp is
/// considered to be spinning. Source: assumed, far beyond any loop over the 64 words in a line.
const SPIN_LIMIT: u32 = 1 << 20;

/// Checked element indices for the active lanes.
pub(super) struct LaneElements {
    /// Element index in each lane.
    pub(super) elements: [u64; MAX_LANES],
    /// Number of lanes, if lanes 0 to `n - 1` are active and access adjacent elements.
    run: Option<u32>,
}

impl Warp<'_> {
    /// Loads `array[index]` in each active lane.
    pub fn load<T: Element, I: Index>(&mut self, array: Array<T>, index: Lanes<I>) -> Lanes<T> {
        self.load_ordered(array, index, Order::WEAK)
    }

    /// Like [`Warp::load`], with semantics and scope.
    pub fn load_ordered<T: Element, I: Index>(&mut self, array: Array<T>, index: Lanes<I>, order: Order) -> Lanes<T> {
        let place = self.lane_elements(array, index, 1);
        let deps = self.record_load(array, &place, 1, order);
        Lanes { values: self.read(array, &place, 0), deps }
    }

    /// Loads `N` elements starting at `array[index]` in each active lane with a single instruction (`float4`). `index`
    /// is a multiple of `N`; an item with `N` elements has 8 or 16 bytes.
    pub fn load_vector<T: Element, I: Index, const N: usize>(
        &mut self,
        array: Array<T>,
        index: Lanes<I>,
    ) -> [Lanes<T>; N] {
        let place = self.lane_elements(array, index, N as u64);
        let deps = self.record_load(array, &place, N as u64, Order::WEAK);
        from_fn(|part| Lanes { values: self.read(array, &place, part as u64), deps })
    }

    /// Like [`Warp::load_vector`], in the lanes for which `condition` holds; all other lanes receive zero. A predicated
    /// instruction without a branch, issued even if no lane is active.
    pub fn load_vector_if<T: Element, I: Index, const N: usize>(
        &mut self,
        condition: Lanes<bool>,
        array: Array<T>,
        index: Lanes<I>,
    ) -> [Lanes<T>; N] {
        self.predicated(condition, |warp| warp.load_vector(array, index))
    }

    /// Like [`Warp::store`], in the lanes for which `condition` holds: a predicated instruction without a branch,
    /// issued even if no lane is active.
    pub fn store_if<T: Element, I: Index>(
        &mut self,
        condition: Lanes<bool>,
        array: Array<T>,
        index: Lanes<I>,
        value: impl Into<Lanes<T>>,
    ) {
        self.predicated(condition, |warp| warp.store(array, index, value));
    }

    /// Stores `value` to `array[index]` in each active lane. If several lanes store to the same element, the highest
    /// lane wins.
    pub fn store<T: Element, I: Index>(&mut self, array: Array<T>, index: Lanes<I>, value: impl Into<Lanes<T>>) {
        self.store_ordered(array, index, value, Order::WEAK);
    }

    /// Like [`Warp::store`], with semantics and scope.
    pub fn store_ordered<T: Element, I: Index>(
        &mut self,
        array: Array<T>,
        index: Lanes<I>,
        value: impl Into<Lanes<T>>,
        order: Order,
    ) {
        let (place, value) = (self.lane_elements(array, index, 1), value.into());
        self.record.wait(value.deps);
        self.record_store(array, &place, 1, order);
        self.shadow_store(array, &place);
        if array.flag && value.deps.unknown {
            let name = self.launch.memory.name(array);
            self.fault(format_args!("a value of {name} depends on a value that a run of addresses alone lacks"));
        }
        if array.flag || !self.launch.address_only() {
            for lane in lanes(self.active) {
                self.launch.memory.put(array, place.elements[lane], value.values[lane]);
            }
        }
        self.note_writes(array, &place);
    }

    /// Stores `N` values to the elements starting at `array[index]` in each active lane with a single instruction
    /// (`float4`); `index` and `N` as in [`Warp::load_vector`].
    pub fn store_vector<T: Element, I: Index, const N: usize>(
        &mut self,
        array: Array<T>,
        index: Lanes<I>,
        value: [Lanes<T>; N],
    ) {
        let place = self.lane_elements(array, index, N as u64);
        value.iter().for_each(|part| self.record.wait(part.deps));
        self.record_store(array, &place, N as u64, Order::WEAK);
        for (part, value) in value.iter().enumerate() {
            let place =
                LaneElements { elements: place.elements.map(|first| first.wrapping_add(part as u64)), run: None };
            self.shadow_store(array, &place);
            if !self.launch.address_only() {
                for lane in lanes(self.active) {
                    self.launch.memory.put(array, place.elements[lane], value.values[lane]);
                }
            }
            self.note_writes(array, &place);
        }
    }

    /// Checks `index` and returns the accessed elements, each the first of `items`; waits for the index.
    pub(super) fn lane_elements<T: Element, I: Index>(
        &mut self,
        array: Array<T>,
        index: Lanes<I>,
        items: u64,
    ) -> LaneElements {
        self.record.wait(index.deps);
        if index.deps.unknown {
            let name = self.launch.memory.name(array);
            self.fault(format_args!("an index of {name} depends on a value that a run of addresses alone lacks"));
        }
        let elements: [u64; MAX_LANES] = from_fn(|lane| index.values[lane].element());
        let on = self.active.trailing_ones();
        let first = elements[0];
        let solid = self.active != 0 && self.active.checked_shr(on).unwrap_or(0) == 0;
        let ascending = (0..on as usize).all(|lane| elements[lane] == first.wrapping_add(lane as u64 * items));
        let run = (solid && ascending).then_some(on);
        match run {
            Some(on) => self.check_bounds(array, first, u64::from(on) * items, items),
            None => lanes(self.active).for_each(|lane| self.check_bounds(array, elements[lane], items, items)),
        }
        LaneElements { elements, run }
    }

    fn check_bounds<T: Element>(&self, array: Array<T>, first: u64, count: u64, items: u64) {
        let name = || self.launch.memory.name(array);
        if first.checked_add(count).is_none_or(|end| end > array.len()) {
            let at = first as i64;
            self.fault(format_args!("{}[{at}..{at}+{count}] is outside its {} elements", name(), array.len()));
        }
        if !first.is_multiple_of(items) {
            self.fault(format_args!("{}[{first}] is no aligned vector of {items} elements", name()));
        }
    }

    fn record_load<T: Element>(&mut self, array: Array<T>, place: &LaneElements, items: u64, order: Order) -> Deps {
        let accesses = self.coalesce(array, place, items);
        self.note_spin(accesses);
        self.record.ops.push(Op::Load { order: order.into(), accesses });
        if let Some(shadow) = self.launch.shadow {
            for lane in lanes(self.active) {
                for part in 0..items {
                    shadow.load(self.launch, array, place.elements[lane] + part, self.cta);
                }
            }
        }
        Deps::of(self.record.loads.issue(), self.launch.address_only())
    }

    /// Records a store. A mask cannot describe part of a grain, and a cache that kept or wrote back the whole grain
    /// would overwrite concurrent stores to its other bytes. A store to part of a grain is therefore widened to the
    /// grain and performed at its system home, as an atomic with a discarded result.
    fn record_store<T: Element>(&mut self, array: Array<T>, place: &LaneElements, items: u64, order: Order) {
        let accesses = self.coalesce(array, place, items);
        self.record.spin = SpinDetector::default();
        let narrow = T::BYTES * items < self.launch.line.grain() && self.leaves_parts(array, place, items, accesses);
        self.record.ops.push(if narrow {
            let order = Order::new(order.semantics.max(Semantics::Relaxed), Scope::Sys).into();
            Op::Atomic { order, result: AtomicResult::Discarded, accesses }
        } else {
            Op::Store { order: order.into(), accesses }
        });
    }

    /// True if the accessed grains contain array elements that this instruction does not write.
    fn leaves_parts<T: Element>(&self, array: Array<T>, place: &LaneElements, items: u64, accesses: Accesses) -> bool {
        let line = self.launch.line;
        let accesses = &self.record.accesses[accesses.range()];
        let grains: u64 = accesses.iter().map(|access| u64::from(access.mask.grains())).sum();
        // The array's last grain may extend beyond its last element; the excess holds no data.
        let end = array.addresses().end;
        let behind = end.next_multiple_of(line.grain()) - end;
        let (last, grain) = (line.line_of(end - 1), line.mask(end - 1, 1));
        let has_last = accesses.iter().any(|access| { access.line } == last && { access.mask }.overlaps(grain));
        let mut elements: Vec<u64> = lanes(self.active).map(|lane| place.elements[lane]).collect();
        elements.sort_unstable();
        elements.dedup();
        elements.len() as u64 * items * T::BYTES + if has_last { behind } else { 0 } < grains * line.grain()
    }

    /// Appends the line transactions for `place`.
    pub(super) fn coalesce<T: Element>(&mut self, array: Array<T>, place: &LaneElements, items: u64) -> Accesses {
        let (line, bytes) = (self.launch.line, T::BYTES * items);
        let start = self.record.accesses.len();
        match place.run {
            Some(on) => {
                let address = array.address(place.elements[0]);
                coalesce::run(line, address, u64::from(on) * bytes, &mut self.record.accesses);
            }
            None => {
                let address = |lane: usize| array.address(place.elements[lane]);
                coalesce::scatter(line, self.active, bytes, address, &mut self.record.accesses);
            }
        }
        Accesses { start: start as u32, len: (self.record.accesses.len() - start) as u8 }
    }

    /// Reads the values `part` elements after `place`.
    fn read<T: Element>(&self, array: Array<T>, place: &LaneElements, part: u64) -> [T; MAX_LANES] {
        let mut values = [T::default(); MAX_LANES];
        if self.launch.address_only() {
            return values;
        }
        let memory = self.launch.memory;
        match place.run {
            Some(on) if part == 0 && place.elements[on as usize - 1] == place.elements[0] + u64::from(on) - 1 => {
                memory.get_run(array, place.elements[0], &mut values[..on as usize]);
            }
            _ => {
                for lane in lanes(self.active) {
                    values[lane] = memory.get(array, place.elements[lane] + part).unwrap_or_default();
                }
            }
        }
        values
    }

    fn note_spin(&mut self, accesses: Accesses) {
        let line = self.record.accesses.last().map_or(0, |access| access.line.0);
        let spin = &mut self.record.spin;
        if accesses.len != 1 || spin.line != line {
            *spin = SpinDetector { line, loads: 0 };
        }
        spin.loads += 1;
        if spin.loads > SPIN_LIMIT {
            self.fault(format_args!("loads one line {SPIN_LIMIT} times in a row: only `wait_until` may spin"));
        }
    }

    pub(super) fn shadow_store<T: Element>(&self, array: Array<T>, place: &LaneElements) {
        if let Some(shadow) = self.launch.shadow {
            lanes(self.active).for_each(|lane| shadow.store(self.launch, array, place.elements[lane], self.cta));
        }
    }

    /// Records the latest instruction as the last writer of the flags written by it.
    pub(super) fn note_writes<T: Element>(&self, array: Array<T>, place: &LaneElements) {
        if let Some(book) = self.book
            && array.flag
        {
            let op = self.record.ops.len() as u32 - 1;
            lanes(self.active).for_each(|lane| book.wrote(array, place.elements[lane], self.cta, self.index, op));
        }
    }

    /// True if the kernel's CTAs are recorded in CTA id order.
    pub(super) fn in_order(&self) -> bool {
        self.launch.discipline != Discipline::Independent
    }
}

/// Iterates over the set lanes of a mask in ascending order.
pub(super) fn lanes(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let lane = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            lane
        })
    })
}
