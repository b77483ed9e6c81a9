//! The boundary between two kernels: what runs there, and in which order, for both worlds.
//!
//! 1. The kernel ends: every store that its SMs have posted has been taken by an L2. The host waits for these.
//! 2. The steps of the end run ([`Steps::END`]: a release everywhere).
//! 3. The next kernel is launched: the steps of the launch run ([`Steps::LAUNCH`]: an acquire everywhere).
//! 4. L1s are invalidated, and the kernel is enabled.
//!
//! The steps of a side are at most an acquire, a release and an acquire, each at some modules. An elision decides which
//! ([`Steps::of`]); without one they are whole.

use crate::coherence::Coherence;
use crate::elision::{self, Turn};
use crate::plan::{Plan, Sync};
use crate::topology::ModuleSet;

/// Where a step takes place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum At {
    /// At no module.
    #[default]
    Nowhere,
    /// At every module.
    Everywhere,
    /// At these.
    These(ModuleSet),
}

impl At {
    fn of(set: ModuleSet) -> At {
        if set == ModuleSet::NONE { At::Nowhere } else { At::These(set) }
    }

    /// `plan` where it takes place.
    fn restrict(self, plan: impl Into<Plan>) -> Option<Plan> {
        match self {
            At::Nowhere => None,
            At::Everywhere => Some(plan.into()),
            At::These(set) => Some(plan.into().only(set)),
        }
    }
}

/// What runs on one side of a boundary, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Steps {
    /// The acquire that comes first.
    pub acquire: At,
    /// The release.
    pub release: At,
    /// The acquire that waits for the release.
    pub acquire_after: At,
}

impl Steps {
    /// At the end of a kernel: a release everywhere.
    pub const END: Steps = Steps { acquire: At::Nowhere, release: At::Everywhere, acquire_after: At::Nowhere };
    /// Before a launch: an acquire everywhere.
    pub const LAUNCH: Steps = Steps { acquire: At::Everywhere, release: At::Nowhere, acquire_after: At::Nowhere };

    /// What an elision has decided for one side, of whole caches.
    pub fn of(boundary: &elision::Boundary) -> Steps {
        let mut sets = [ModuleSet::NONE; 3];
        for (module, operation) in boundary.iter() {
            let one = ModuleSet::only(module);
            if operation.invalidate.is_some() {
                let turn = usize::from(operation.turn == Turn::AfterFlushes) * 2;
                sets[turn] = sets[turn].and(one);
            }
            if operation.flush.is_some() {
                sets[1] = sets[1].and(one);
            }
        }
        let [acquire, release, acquire_after] = sets.map(At::of);
        Steps { acquire, release, acquire_after }
    }

    /// The plan at `index` of those that run one after the other; `None` when all have run.
    pub fn plan(self, protocol: &impl Coherence, index: u8) -> Option<Plan> {
        let acquire = |at: At| at.restrict(protocol.acquire(Sync::Kernel));
        let release = || self.release.restrict(protocol.release(Sync::Kernel));
        let plans = [acquire(self.acquire), release(), acquire(self.acquire_after)];
        plans.into_iter().flatten().nth(usize::from(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elision::{Boundary, Extent, Operation};
    use crate::plan::{Action, Collector};
    use crate::software_flat::SoftwareFlat;
    use crate::topology::Topology;
    use crate::vi::Options;
    use tombolo_types::{GpuId, Line, ModuleId};

    /// Three modules of one GPU.
    struct Three;

    impl Topology for Three {
        fn gpus(&self) -> u8 {
            1
        }

        fn modules_per_gpu(&self) -> u8 {
            3
        }

        fn system_home(&self, _: Line) -> ModuleId {
            ModuleId(0)
        }

        fn remote_gpu_home(&self, _: GpuId, _: Line) -> ModuleId {
            ModuleId(0)
        }
    }

    /// Who does what, plan by plan, where everybody acknowledges.
    fn run(steps: Steps) -> Vec<(u8, &'static str)> {
        let protocol: SoftwareFlat = SoftwareFlat::new(Options::default());
        let mut done = Vec::new();
        for index in 0.. {
            let Some(plan) = steps.plan(&protocol, index) else { break };
            let mut collector = Collector::new(plan, ModuleId(0));
            let tell = |done: &mut Vec<_>, member: ModuleId, action| {
                let word = if matches!(action, Action::Invalidate(_)) { "invalidate" } else { "drain" };
                done.push((member.0, word));
            };
            while collector.begin_phase(&Three, |member, action| tell(&mut done, member, action)) {
                while !collector.acknowledge() {}
            }
        }
        done
    }

    #[test]
    fn whole_sides_release_everywhere_and_acquire_everywhere() {
        assert_eq!(run(Steps::END), [(0, "drain"), (1, "drain"), (2, "drain")]);
        assert_eq!(run(Steps::LAUNCH), [(0, "invalidate"), (1, "invalidate"), (2, "invalidate")]);
        assert_eq!(run(Steps::default()), []);
    }

    #[test]
    fn decided_sides_invalidate_before_or_after_the_flushes() {
        let operation = |invalidate: bool, flush: bool, turn| Operation {
            invalidate: invalidate.then_some(Extent::Cache),
            flush: flush.then_some(Extent::Cache),
            turn,
        };
        let modules = vec![
            operation(true, true, Turn::AfterFlushes),
            operation(false, false, Turn::BeforeFlushes),
            operation(true, false, Turn::BeforeFlushes),
        ];
        let steps = Steps::of(&Boundary { modules });
        assert_eq!(run(steps), [(2, "invalidate"), (0, "drain"), (0, "invalidate")]);
        assert_eq!(Steps::of(&Boundary::nothing(3)), Steps::default());
    }
}
