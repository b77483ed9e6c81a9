//! Number that distinguishes concurrent kernels.

/// Slot for a running command, from the command's packet to its end. Each kernel numbers flags, drains and counters
/// from 0; the slot tells kernels apart. The number of slots limits the number of concurrent commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelSlot(pub u8);

impl KernelSlot {
    /// Maximum number of concurrent commands. Source: CUDA C++ Programming Guide, `CUDA_DEVICE_MAX_CONNECTIONS`: at
    /// most 32 hardware queues.
    pub(crate) const MAX: u8 = 32;

    /// The slot as an index.
    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Entry for a slot in a list, which grows up to the slots used so far.
#[inline]
pub fn entry<T: Default>(list: &mut Vec<T>, slot: KernelSlot) -> &mut T {
    if list.len() <= slot.index() {
        list.resize_with(slot.index() + 1, T::default);
    }
    &mut list[slot.index()]
}
