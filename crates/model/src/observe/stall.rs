//! Time spent by warp slots, in stall classes that add up to the total.

use tombolo_types::Ps;

/// Activity or stall class of an SM's warp slot at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Stall {
    /// The warp issues a non-arithmetic instruction, or is ready and waits for its sub-core.
    Issue,
    /// The warp's arithmetic occupies the pipelines in its sub-core, or the warp waits for the result.
    Arithmetic,
    /// The scratchpad.
    Scratchpad,
    /// An L1 hit, or the L1's queue.
    L1,
    /// A load or an atomic answered by the module's own L2 or memory, or queue space behind it.
    OwnL2,
    /// Like `OwnL2`, for another module in the same GPU.
    Module,
    /// Like `OwnL2`, for another GPU.
    Gpu,
    /// Like `OwnL2`, for the host.
    Host,
    /// A translation.
    Tlb,
    /// A page whose mapping does not permit the module's access.
    Page,
    /// A store credit.
    StoreCredit,
    /// A barrier with the CTA's remaining warps.
    Barrier,
    /// A flag, or the operations in an acquire.
    Acquire,
    /// Posted stores before a release, or the release's operations.
    Release,
    /// No CTA runs although a kernel is open: the launch, and boundary operations.
    KernelBoundary,
    /// No warp, or an ended warp.
    Idle,
}

impl Stall {
    /// All classes, in the order of their names in a record.
    pub const ALL: [Stall; 16] = [
        Stall::Issue,
        Stall::Arithmetic,
        Stall::Scratchpad,
        Stall::L1,
        Stall::OwnL2,
        Stall::Module,
        Stall::Gpu,
        Stall::Host,
        Stall::Tlb,
        Stall::Page,
        Stall::StoreCredit,
        Stall::Barrier,
        Stall::Acquire,
        Stall::Release,
        Stall::KernelBoundary,
        Stall::Idle,
    ];
}

/// Queues with waits between accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Queue {
    /// Links between modules.
    Link,
    /// L2 slices.
    Slice,
    /// Memory.
    Dram,
}

impl Queue {
    /// All queues, in the order of their names in a record.
    pub const ALL: [Queue; 3] = [Queue::Link, Queue::Slice, Queue::Dram];
}

/// Stall classes for accesses that pass queues, in order.
pub const QUEUED: [Stall; 4] = [Stall::OwnL2, Stall::Module, Stall::Gpu, Stall::Host];

/// Times indexed by class in [`QUEUED`], then by [`Queue`].
type QueueTimes = [[u64; Queue::ALL.len()]; QUEUED.len()];

/// Times of warp slots by [`Stall`], in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StallTimes {
    times: [u64; Stall::ALL.len()],
    /// The parts of these times that were spent in queues.
    queued: QueueTimes,
}

/// Index for a class in [`QUEUED`].
#[inline]
fn queued_index(stall: Stall) -> Option<usize> {
    let index = (stall as usize).wrapping_sub(QUEUED[0] as usize);
    (index < QUEUED.len()).then_some(index)
}

impl StallTimes {
    /// Adds a time.
    #[inline]
    pub fn add(&mut self, stall: Stall, time: Ps) {
        self.times[stall as usize] += time.0;
    }

    /// Adds the queueing part, by [`Queue`], for a time added to a class in [`QUEUED`].
    #[inline]
    pub(crate) fn add_queued(&mut self, stall: Stall, queues: [u64; Queue::ALL.len()]) {
        if let Some(index) = queued_index(stall) {
            self.queued[index].iter_mut().zip(queues).for_each(|(sum, time)| *sum += time);
        }
    }

    /// Time spent by one class in a queue, in picoseconds; 0 for classes without queues.
    pub fn queued(&self, stall: Stall, queue: Queue) -> u64 {
        queued_index(stall).map_or(0, |index| self.queued[index][queue as usize])
    }

    /// Time in a single class, in picoseconds.
    pub fn of(&self, stall: Stall) -> u64 {
        self.times[stall as usize]
    }

    /// Total over all classes.
    pub fn sum(&self) -> u64 {
        self.times.iter().sum()
    }

    /// Sum with another set.
    pub fn and(&self, other: &StallTimes) -> StallTimes {
        self.with(other, |one, another| one + another)
    }

    /// Difference to an earlier set.
    pub(crate) fn since(&self, earlier: &StallTimes) -> StallTimes {
        self.with(earlier, |one, another| one - another)
    }

    fn with(&self, other: &StallTimes, join: impl Fn(u64, u64) -> u64) -> StallTimes {
        let queued =
            |class: usize| std::array::from_fn(|queue| join(self.queued[class][queue], other.queued[class][queue]));
        StallTimes {
            times: std::array::from_fn(|class| join(self.times[class], other.times[class])),
            queued: std::array::from_fn(queued),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_listed_once_each_in_their_order() {
        for (index, stall) in Stall::ALL.into_iter().enumerate() {
            assert_eq!(stall as usize, index, "{stall:?}");
        }
        for (index, stall) in QUEUED.into_iter().enumerate() {
            assert_eq!(queued_index(stall), Some(index), "{stall:?}");
        }
        assert_eq!(Stall::ALL.into_iter().filter(|stall| queued_index(*stall).is_some()).count(), QUEUED.len());
    }

    #[test]
    fn times_are_kept_by_class() {
        let mut times = StallTimes::default();
        times.add(Stall::Gpu, Ps(5));
        let earlier = times;
        times.add(Stall::Gpu, Ps(2));
        times.add(Stall::Idle, Ps(4));
        assert_eq!((times.of(Stall::Gpu), times.of(Stall::Host), times.sum()), (7, 0, 11));
        times.add_queued(Stall::Gpu, [1, 0, 3]);
        times.add_queued(Stall::Tlb, [1, 1, 1]);
        assert_eq!(Queue::ALL.map(|queue| times.queued(Stall::Gpu, queue)), [1, 0, 3]);
        assert_eq!(Queue::ALL.map(|queue| times.queued(Stall::Tlb, queue)), [0; 3], "it meets no queue");
        assert_eq!(times.since(&earlier).and(&earlier), times);
    }
}
