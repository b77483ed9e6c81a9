//! The address space: named arrays with virtual addresses and real, changing contents.

use super::host_watch::HostWatch;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tombolo_types::ArrayInfo;

/// Address of the first array. Source: assumed; any page-aligned address other than zero is suitable.
pub(crate) const FIRST_ADDRESS: u64 = 1 << 32;
/// Alignment of every array, so that no two arrays share a page. Source: 2 MB, the largest GPU page.
pub(crate) const ALIGNMENT: u64 = 2 << 20;

/// Element types of arrays: numbers with 1, 4 or 8 bytes, and booleans with a single byte.
pub trait Element: Copy + Default + PartialEq + PartialOrd + fmt::Debug + Send + Sync + 'static {
    /// Bytes per element: 1, 4 or 8.
    const BYTES: u64;
    /// The element as raw bits, zero-extended.
    fn to_bits(self) -> u64;
    /// The element with the given bits; higher bits are ignored.
    fn from_bits(bits: u64) -> Self;
}

/// Element types with exactly commuting reductions. Types with a single byte are excluded: the hardware's atomics start
/// at 4 bytes.
pub trait Integer: Element + Ord {
    /// Sum, wrapping around.
    fn wrapping_sum(self, other: Self) -> Self;
}

macro_rules! integer_elements {
    ($($type:ty, $bytes:literal, $unsigned:ty;)*) => {$(
        impl Element for $type {
            const BYTES: u64 = $bytes;
            #[inline]
            fn to_bits(self) -> u64 {
                u64::from(self as $unsigned)
            }
            #[inline]
            fn from_bits(bits: u64) -> $type {
                bits as $type
            }
        }
        impl Integer for $type {
            fn wrapping_sum(self, other: $type) -> $type {
                self.wrapping_add(other)
            }
        }
    )*};
}

integer_elements! { i32, 4, u32; u32, 4, u32; i64, 8, u64; u64, 8, u64; }

impl Element for u8 {
    const BYTES: u64 = 1;
    #[inline]
    fn to_bits(self) -> u64 {
        u64::from(self)
    }
    #[inline]
    fn from_bits(bits: u64) -> u8 {
        bits as u8
    }
}

/// CUDA's `bool`: a byte in which only the lowest bit counts.
impl Element for bool {
    const BYTES: u64 = 1;
    #[inline]
    fn to_bits(self) -> u64 {
        u64::from(self)
    }
    #[inline]
    fn from_bits(bits: u64) -> bool {
        bits & 1 != 0
    }
}

impl Element for f32 {
    const BYTES: u64 = 4;
    #[inline]
    fn to_bits(self) -> u64 {
        u64::from(f32::to_bits(self))
    }
    #[inline]
    fn from_bits(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
}

impl Element for f64 {
    const BYTES: u64 = 8;
    #[inline]
    fn to_bits(self) -> u64 {
        f64::to_bits(self)
    }
    #[inline]
    fn from_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
}

/// A handle to an array in the address space, as cheap to copy as a CUDA pointer.
pub struct Array<T> {
    pub(crate) id: u32,
    pub(crate) flag: bool,
    base: u64,
    len: u64,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Array<T> {
        *self
    }
}

impl<T> Copy for Array<T> {}

impl<T: Element> Array<T> {
    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.len * T::BYTES
    }

    /// Virtual address range of all elements.
    pub fn addresses(&self) -> Range<u64> {
        self.address(0)..self.address(self.len)
    }

    /// Virtual address of element `index`.
    #[inline]
    pub fn address(&self, index: u64) -> u64 {
        self.base + index * T::BYTES
    }
}

/// Dependence of an array's size on the scale of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// Proportional to the scale, within a factor of two.
    Scales,
    /// Proportional to the square root of the scale, within a factor of two: an array with a scaled side and a fixed
    /// side, for example a mesh face along the fixed axis.
    Root,
    /// Independent of the scale: counters, flags, tables.
    Fixed,
}

/// Presence of array contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Contents in host memory.
    Real,
    /// Addresses only: a load returns a value on which no address and no condition may depend.
    AddressOnly,
}

/// Contents of an array; relaxed atomics, so that CTAs of an independent kernel may run concurrently.
enum ArrayContents {
    Absent,
    Bytes(Box<[AtomicU8]>),
    Narrow(Box<[AtomicU32]>),
    Wide(Box<[AtomicU64]>),
}

impl ArrayContents {
    /// Zeros: `bytes` bytes, with `each` bytes per element.
    fn zeros(bytes: u64, each: u64) -> ArrayContents {
        let len = bytes / each;
        match each {
            1 => ArrayContents::Bytes((0..len).map(|_| AtomicU8::new(0)).collect()),
            4 => ArrayContents::Narrow((0..len).map(|_| AtomicU32::new(0)).collect()),
            _ => ArrayContents::Wide((0..len).map(|_| AtomicU64::new(0)).collect()),
        }
    }
}

/// The address space of a workload.
pub struct Memory {
    infos: Vec<ArrayInfo>,
    /// Dependence of each array on the scale of a run.
    scalings: Vec<Scaling>,
    cells: Vec<ArrayContents>,
    backing: Backing,
    next: u64,
    /// Set while changes are noted for undoing.
    noting: AtomicBool,
    noted: Mutex<Vec<SavedElement>>,
    host: HostWatch,
}

/// An element's value before a change.
struct SavedElement {
    array: u32,
    index: u64,
    bits: u64,
}

impl Memory {
    /// An empty address space.
    pub fn new(backing: Backing) -> Memory {
        Memory {
            infos: Vec::new(),
            scalings: Vec::new(),
            cells: Vec::new(),
            backing,
            next: FIRST_ADDRESS,
            noting: AtomicBool::new(false),
            noted: Mutex::default(),
            host: HostWatch::default(),
        }
    }

    /// Gives zero contents to arrays that had only addresses.
    pub(crate) fn back(&mut self) {
        self.backing = Backing::Real;
        self.cells =
            self.infos.iter().map(|info| ArrayContents::zeros(info.bytes, info.element.map_or(8, u64::from))).collect();
    }

    /// Reports if arrays have contents.
    pub fn backing(&self) -> Backing {
        self.backing
    }

    /// All arrays in address order, each at a multiple of 2 MiB.
    pub fn arrays(&self) -> &[ArrayInfo] {
        &self.infos
    }

    /// Dependence of each array on the scale of a run, in array order.
    pub fn scalings(&self) -> &[Scaling] {
        &self.scalings
    }

    /// Watcher for the host's accesses before, between and after commands.
    pub(crate) fn host(&self) -> &HostWatch {
        &self.host
    }

    /// Total bytes of all arrays.
    pub fn bytes(&self) -> u64 {
        self.infos.iter().map(|info| info.bytes).sum()
    }

    /// Adds an array with `len` zeros.
    pub fn array<T: Element>(&mut self, name: &str, len: u64, scaling: Scaling) -> Array<T> {
        let bytes = len * T::BYTES;
        let (base, id) = (self.next, self.infos.len() as u32);
        self.next += bytes.max(1).next_multiple_of(ALIGNMENT);
        self.infos.push(ArrayInfo { name: name.to_owned(), base, bytes, element: Some(T::BYTES as u32) });
        self.scalings.push(scaling);
        self.cells.push(match self.backing {
            Backing::AddressOnly => ArrayContents::Absent,
            Backing::Real => ArrayContents::zeros(bytes, T::BYTES),
        });
        Array { id, flag: false, base, len, element: PhantomData }
    }

    /// Adds an array with `len` zeros whose elements can be awaited by CTAs of a cooperative kernel. It has contents even
    /// where arrays have addresses alone.
    pub fn flags<T: Element>(&mut self, name: &str, len: u64, scaling: Scaling) -> Array<T> {
        let array = self.array(name, len, scaling);
        self.cells[array.id as usize] = ArrayContents::zeros(array.bytes(), T::BYTES);
        Array { flag: true, ..array }
    }

    /// True if an array's elements have values.
    fn has_contents<T>(&self, array: Array<T>) -> bool {
        !matches!(self.cells[array.id as usize], ArrayContents::Absent)
    }

    /// Bits of every element in array number `index`; empty if the memory has no contents. For tests that compare whole
    /// memories.
    pub fn bits(&self, index: usize) -> Vec<u64> {
        match &self.cells[index] {
            ArrayContents::Absent => Vec::new(),
            ArrayContents::Bytes(cells) => cells.iter().map(|cell| u64::from(cell.load(Ordering::Relaxed))).collect(),
            ArrayContents::Narrow(cells) => cells.iter().map(|cell| u64::from(cell.load(Ordering::Relaxed))).collect(),
            ArrayContents::Wide(cells) => cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect(),
        }
    }

    /// Reads element `index`; zero if the arrays have no contents. Panics beyond the end.
    pub fn read<T: Element>(&self, array: Array<T>, index: u64) -> T {
        assert!(index < array.len, "host reads {}[{index}] of {}", self.name(array), array.len);
        self.host.reads(|| array.address(index)..array.address(index + 1));
        self.get(array, index).unwrap_or_default()
    }

    /// Sets element `index`. Panics beyond the end.
    pub fn write<T: Element>(&self, array: Array<T>, index: u64, value: T) {
        assert!(index < array.len, "host writes {}[{index}] of {}", self.name(array), array.len);
        self.host.writes(|| array.address(index)..array.address(index + 1));
        self.put(array, index, value);
    }

    /// Sets every element to zero on the device (`cudaMemset`): not a host access.
    pub fn clear<T: Element>(&self, array: Array<T>) {
        if self.has_contents(array) {
            (0..array.len).for_each(|index| self.put(array, index, T::default()));
        }
    }

    /// Sets every element to `value(index)`. The function is not called if the arrays have no contents.
    pub fn fill<T: Element>(&self, array: Array<T>, value: impl FnMut(u64) -> T) {
        self.fill_part(array, 0..array.len, value);
    }

    /// Sets the elements in a range to `value(index)`, with the same rule as [`Memory::fill`]. Panics beyond the end.
    pub fn fill_part<T: Element>(&self, array: Array<T>, part: Range<u64>, value: impl FnMut(u64) -> T) {
        assert!(part.end <= array.len, "host fills {} elements of {} of {}", part.end, self.name(array), array.len);
        self.host.writes(|| array.address(part.start)..array.address(part.end));
        if self.has_contents(array) {
            part.clone().zip(part.map(value)).for_each(|(index, value)| self.put(array, index, value));
        }
    }

    /// Lets `set` write every element in these arrays' address ranges, in any order: the ranges are noted at once, and
    /// not again for each element.
    pub fn fill_together(&self, arrays: impl IntoIterator<Item = Range<u64>>, set: impl FnOnce()) {
        arrays.into_iter().for_each(|addresses| self.host.writes(|| addresses));
        let watched = self.host.switch(false);
        set();
        self.host.switch(watched);
    }

    /// Copies the first `count` elements from an array to another. Panics if either array has fewer elements.
    pub fn copy<T: Element>(&self, from: Array<T>, to: Array<T>, count: u64) {
        let shorter = from.len.min(to.len);
        assert!(count <= shorter, "host copies {count} elements of {shorter}");
        self.host.reads(|| from.address(0)..from.address(count));
        self.host.writes(|| to.address(0)..to.address(count));
        for index in 0..count {
            if let Some(value) = self.get(from, index) {
                self.put(to, index, value);
            }
        }
    }

    /// Returns all elements; empty if the arrays have no contents.
    pub fn to_vec<T: Element>(&self, array: Array<T>) -> Vec<T> {
        self.host.reads(|| array.address(0)..array.address(array.len));
        (0..array.len).map_while(|index| self.get(array, index)).collect()
    }

    /// Runs `work`, then restores every element changed by it.
    pub(crate) fn undone<R>(&self, work: impl FnOnce() -> R) -> R {
        self.noting.store(true, Ordering::Relaxed);
        let result = work();
        self.noting.store(false, Ordering::Relaxed);
        let noted = std::mem::take(&mut *self.noted.lock().unwrap_or_else(PoisonError::into_inner));
        for SavedElement { array, index, bits } in noted.into_iter().rev() {
            self.put_bits(array, index, bits);
        }
        result
    }

    /// Notes the value of an element that is about to be changed.
    #[inline]
    fn note<T: Element>(&self, array: Array<T>, index: u64) {
        if self.noting.load(Ordering::Relaxed) {
            self.note_down(array, index);
        }
    }

    #[cold]
    fn note_down<T: Element>(&self, array: Array<T>, index: u64) {
        if let Some(before) = self.get(array, index) {
            let noted = SavedElement { array: array.id, index, bits: before.to_bits() };
            self.noted.lock().unwrap_or_else(PoisonError::into_inner).push(noted);
        }
    }

    /// Sets every bit, which turns every float into NaN: a program that reads what nobody has set then computes a wrong
    /// result. For tests.
    pub fn poison(&self) {
        for cells in &self.cells {
            match cells {
                ArrayContents::Absent => {}
                ArrayContents::Bytes(cells) => cells.iter().for_each(|cell| cell.store(u8::MAX, Ordering::Relaxed)),
                ArrayContents::Narrow(cells) => cells.iter().for_each(|cell| cell.store(u32::MAX, Ordering::Relaxed)),
                ArrayContents::Wide(cells) => cells.iter().for_each(|cell| cell.store(u64::MAX, Ordering::Relaxed)),
            }
        }
    }

    /// Name of an array.
    pub fn name<T>(&self, array: Array<T>) -> &str {
        &self.infos[array.id as usize].name
    }

    /// Element of an array; `None` if the array has no contents.
    ///
    /// # Panics
    /// If the memory has contents and the array has no such element.
    #[inline]
    pub fn get<T: Element>(&self, array: Array<T>, index: u64) -> Option<T> {
        let bits = match &self.cells[array.id as usize] {
            ArrayContents::Absent => return None,
            ArrayContents::Bytes(cells) => u64::from(cells[index as usize].load(Ordering::Relaxed)),
            ArrayContents::Narrow(cells) => u64::from(cells[index as usize].load(Ordering::Relaxed)),
            ArrayContents::Wide(cells) => cells[index as usize].load(Ordering::Relaxed),
        };
        Some(T::from_bits(bits))
    }

    #[inline]
    pub(crate) fn put<T: Element>(&self, array: Array<T>, index: u64, value: T) {
        self.note(array, index);
        self.put_bits(array.id, index, value.to_bits());
    }

    #[inline]
    fn put_bits(&self, array: u32, index: u64, bits: u64) {
        match &self.cells[array as usize] {
            ArrayContents::Absent => {}
            ArrayContents::Bytes(cells) => cells[index as usize].store(bits as u8, Ordering::Relaxed),
            ArrayContents::Narrow(cells) => cells[index as usize].store(bits as u32, Ordering::Relaxed),
            ArrayContents::Wide(cells) => cells[index as usize].store(bits, Ordering::Relaxed),
        }
    }

    /// Reads `into.len()` consecutive elements starting at `first`; leaves `into` unchanged if the arrays have no
    /// contents.
    #[inline]
    pub(crate) fn get_run<T: Element>(&self, array: Array<T>, first: u64, into: &mut [T]) {
        let range = first as usize..first as usize + into.len();
        match &self.cells[array.id as usize] {
            ArrayContents::Absent => {}
            ArrayContents::Bytes(cells) => {
                for (value, cell) in into.iter_mut().zip(&cells[range]) {
                    *value = T::from_bits(u64::from(cell.load(Ordering::Relaxed)));
                }
            }
            ArrayContents::Narrow(cells) => {
                for (value, cell) in into.iter_mut().zip(&cells[range]) {
                    *value = T::from_bits(u64::from(cell.load(Ordering::Relaxed)));
                }
            }
            ArrayContents::Wide(cells) => {
                for (value, cell) in into.iter_mut().zip(&cells[range]) {
                    *value = T::from_bits(cell.load(Ordering::Relaxed));
                }
            }
        }
    }

    /// Replaces element `index` by the result of `change`, atomically; returns the old value.
    pub(crate) fn update<T: Element>(&self, array: Array<T>, index: u64, change: impl Fn(T) -> T) -> T {
        self.note(array, index);
        let old = match &self.cells[array.id as usize] {
            ArrayContents::Absent => return T::default(),
            ArrayContents::Bytes(cells) => cells[index as usize]
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bits| {
                    Some(change(T::from_bits(u64::from(bits))).to_bits() as u8)
                })
                .map(u64::from)
                .unwrap_or_else(u64::from),
            ArrayContents::Narrow(cells) => cells[index as usize]
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bits| {
                    Some(change(T::from_bits(u64::from(bits))).to_bits() as u32)
                })
                .map(u64::from)
                .unwrap_or_else(u64::from),
            ArrayContents::Wide(cells) => cells[index as usize]
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bits| Some(change(T::from_bits(bits)).to_bits()))
                .unwrap_or_else(|bits| bits),
        };
        T::from_bits(old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_lie_apart_on_their_own_pages() {
        let mut memory = Memory::new(Backing::AddressOnly);
        let small = memory.array::<i32>("small", 3, Scaling::Fixed);
        let large = memory.array::<f64>("large", 1 << 20, Scaling::Scales);
        let last = memory.array::<u32>("last", 1, Scaling::Fixed);
        assert_eq!(large.address(0) - small.address(0), 2 << 20);
        assert_eq!(last.address(0) - large.address(0), 8 << 20);
        assert_eq!(memory.bytes(), 12 + (8 << 20) + 4);
    }

    #[test]
    fn every_type_keeps_its_value() {
        let mut memory = Memory::new(Backing::Real);
        let ints = memory.array::<i32>("ints", 2, Scaling::Fixed);
        let floats = memory.array::<f32>("floats", 2, Scaling::Fixed);
        let wide = memory.array::<i64>("wide", 2, Scaling::Fixed);
        memory.write(ints, 1, -5);
        memory.write(floats, 1, -0.5);
        memory.write(wide, 1, i64::MIN);
        assert_eq!((memory.read(ints, 1), memory.read(floats, 1), memory.read(wide, 1)), (-5, -0.5, i64::MIN));
        assert_eq!(memory.update(ints, 1, |old| old - 1), -5);
        assert_eq!(memory.to_vec(ints), [0, -6]);
    }

    #[test]
    fn contents_may_come_after_the_addresses() {
        let mut memory = Memory::new(Backing::AddressOnly);
        let (narrow, wide) = (memory.array("narrow", 3, Scaling::Fixed), memory.array("wide", 2, Scaling::Fixed));
        memory.back();
        memory.write(narrow, 2, 7_u32);
        memory.write(wide, 1, -1_i64);
        assert_eq!((memory.to_vec(narrow), memory.to_vec(wide)), (vec![0, 0, 7], vec![0, -1]));
    }

    #[test]
    fn what_is_undone_leaves_no_trace() {
        let mut memory = Memory::new(Backing::Real);
        let narrow = memory.array::<f32>("narrow", 3, Scaling::Fixed);
        let wide = memory.array::<i64>("wide", 2, Scaling::Fixed);
        memory.write(narrow, 1, 0.5);
        memory.write(wide, 0, -7);
        let seen = memory.undone(|| {
            memory.write(narrow, 1, 1.5);
            memory.write(narrow, 1, 2.5);
            memory.update(wide, 0, |old| old * 2);
            memory.update(wide, 0, |old| old * 2);
            (memory.read(narrow, 1), memory.read(wide, 0))
        });
        assert_eq!(seen, (2.5, -28));
        assert_eq!((memory.to_vec(narrow), memory.to_vec(wide)), (vec![0.0, 0.5, 0.0], vec![-7, 0]));
        memory.write(wide, 1, 3);
        assert_eq!(memory.read(wide, 1), 3, "afterwards changes stay");
    }

    #[test]
    fn what_the_device_clears_is_no_access_of_the_host() {
        let mut memory = Memory::new(Backing::Real);
        let array = memory.array::<i32>("a", 4, Scaling::Fixed);
        memory.host().switch(true);
        memory.fill_part(array, 1..3, |index| index as i32);
        assert_eq!(
            (memory.to_vec(array), memory.host().take().writes),
            (vec![0, 1, 2, 0], std::iter::once(array.address(1)..array.address(3)).collect())
        );
        memory.fill_together([array.addresses()], || (0..4).for_each(|index| memory.write(array, index, 7)));
        assert_eq!(memory.host().take().writes, [array.addresses()]);
        memory.write(array, 0, 7);
        assert!(!memory.host().take().is_empty(), "it is noted again");
        memory.clear(array);
        assert!(memory.host().take().is_empty());
        assert_eq!(memory.to_vec(array), [0; 4]);
    }

    #[test]
    fn addresses_alone_have_no_contents() {
        let mut memory = Memory::new(Backing::AddressOnly);
        let array = memory.array::<i32>("a", 4, Scaling::Fixed);
        memory.fill(array, |_| 7);
        memory.fill_part(array, 1..3, |_| unreachable!("there is nothing to set"));
        assert_eq!(memory.read(array, 0), 0);
        assert!(memory.to_vec(array).is_empty());
    }
}
