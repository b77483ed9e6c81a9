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

/// Times of warp slots by [`Stall`], in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StallTimes([u64; Stall::ALL.len()]);

impl StallTimes {
    /// Adds a time.
    #[inline]
    pub fn add(&mut self, stall: Stall, time: Ps) {
        self.0[stall as usize] += time.0;
    }

    /// Of one class, in picoseconds.
    pub fn of(&self, stall: Stall) -> u64 {
        self.0[stall as usize]
    }

    /// Of all classes.
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Both together.
    pub fn and(&self, other: &StallTimes) -> StallTimes {
        StallTimes(std::array::from_fn(|index| self.0[index] + other.0[index]))
    }

    /// What came since `earlier`.
    pub fn since(&self, earlier: &StallTimes) -> StallTimes {
        StallTimes(std::array::from_fn(|index| self.0[index] - earlier.0[index]))
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
    }

    #[test]
    fn times_are_kept_by_class() {
        let mut times = StallTimes::default();
        times.add(Stall::Gpu, Ps(5));
        let earlier = times;
        times.add(Stall::Gpu, Ps(2));
        times.add(Stall::Idle, Ps(4));
        assert_eq!((times.of(Stall::Gpu), times.of(Stall::Host), times.sum()), (7, 0, 11));
        assert_eq!(times.since(&earlier).and(&earlier), times);
    }
}
