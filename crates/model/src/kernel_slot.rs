//! Which of the kernels that are under way side by side one is.

/// The place of a command that is under way, from its packet to its end. What kernels number from 0 each (flags, drains,
/// counters) is told apart by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelSlot(pub u8);

impl KernelSlot {
    /// Commands under way at a time. Source: CUDA C++ Programming Guide, `CUDA_DEVICE_MAX_CONNECTIONS`: at most 32 hardware
    /// queues.
    pub const MOST: u8 = 32;

    /// As an index.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The entry of a slot in a list that is as long as the slots used so far.
#[inline]
pub fn entry<T: Default>(list: &mut Vec<T>, slot: KernelSlot) -> &mut T {
    if list.len() <= slot.index() {
        list.resize_with(slot.index() + 1, T::default);
    }
    &mut list[slot.index()]
}
