//! Number that distinguishes concurrent kernels.

/// Slot of a running command, from its packet to its end. Flags, drains and counters are numbered from 0 in each
/// kernel; the slot tells kernels apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelSlot(pub u8);

impl KernelSlot {
    /// Maximum number of concurrent commands. Source: CUDA C++ Programming Guide, `CUDA_DEVICE_MAX_CONNECTIONS`: at
    /// most 32 hardware queues.
    pub const MOST: u8 = 32;

    /// The slot as an index.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Entry of a slot in a list, which grows up to the slots used so far.
#[inline]
pub fn entry<T: Default>(list: &mut Vec<T>, slot: KernelSlot) -> &mut T {
    if list.len() <= slot.index() {
        list.resize_with(slot.index() + 1, T::default);
    }
    &mut list[slot.index()]
}
