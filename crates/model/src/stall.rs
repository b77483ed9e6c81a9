//! What warp slots spend their time on, in classes that add up.

use tombolo_types::Ps;

/// What a warp slot of an SM spends a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Stall {
    /// Its warp issues other than arithmetic, or is ready and waits for its sub-core.
    Issue,
    /// Its warp's arithmetic occupies the pipelines of its sub-core, or its warp waits for the result.
    Arithmetic,
    /// The scratchpad.
    Scratchpad,
    /// A hit of the L1, or the L1's queue.
    L1,
    /// A load or an atomic that the L2 or the memory of its module answers, or room behind one.
    OwnL2,
    /// The same, of another module of its GPU.
    Module,
    /// The same, of another GPU.
    Gpu,
    /// The same, of the host.
    Host,
    /// A translation.
    Tlb,
    /// A page that its module may not use so.
    Page,
    /// A store credit.
    StoreCredit,
    /// The other warps of its CTA.
    Barrier,
    /// A flag, or the operations of an acquire.
    Acquire,
    /// Posted stores before a release, or the operations of that.
    Release,
    /// No CTA runs of a kernel that is open: the launch, and the operations at its boundary.
    KernelBoundary,
    /// No warp, or one that has ended.
    Idle,
}

impl Stall {
    /// All, in the order of their names in a record.
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

/// Where accesses wait for others.
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
    /// All, in the order of their names in a record.
    pub const ALL: [Queue; 3] = [Queue::Link, Queue::Slice, Queue::Dram];
}

/// Classes of waits for accesses that meet queues, in order.
pub const QUEUED: [Stall; 4] = [Stall::OwnL2, Stall::Module, Stall::Gpu, Stall::Host];

/// By class of [`QUEUED`], then [`Queue`].
type Queued = [[u64; Queue::ALL.len()]; QUEUED.len()];

/// Times of warp slots by [`Stall`], in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StallTimes {
    times: [u64; Stall::ALL.len()],
    /// Of these, what was spent in queues.
    queued: Queued,
}

/// The place of a class among [`QUEUED`].
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

    /// Of a time that is added as one of [`QUEUED`], adds what was spent in queues, by [`Queue`].
    #[inline]
    pub fn add_queued(&mut self, stall: Stall, queues: [u64; Queue::ALL.len()]) {
        if let Some(index) = queued_index(stall) {
            self.queued[index].iter_mut().zip(queues).for_each(|(sum, time)| *sum += time);
        }
    }

    /// What of one class was spent in a queue, in picoseconds; 0 of what meets none.
    pub fn queued(&self, stall: Stall, queue: Queue) -> u64 {
        queued_index(stall).map_or(0, |index| self.queued[index][queue as usize])
    }

    /// Of one class, in picoseconds.
    pub fn of(&self, stall: Stall) -> u64 {
        self.times[stall as usize]
    }

    /// Of all classes.
    pub fn sum(&self) -> u64 {
        self.times.iter().sum()
    }

    /// Both together.
    pub fn and(&self, other: &StallTimes) -> StallTimes {
        self.with(other, |one, another| one + another)
    }

    /// What came since `earlier`.
    pub fn since(&self, earlier: &StallTimes) -> StallTimes {
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
