//! The boundary between two kernels: its steps and their order, for both worlds.
//!
//! 1. The kernel ends: every store posted by its SMs has been accepted by an L2. The host waits for these stores.
//! 2. The steps at the end run ([`Steps::END`]: a release everywhere).
//! 3. The next kernel is launched: the launch steps run ([`Steps::LAUNCH`]: an acquire everywhere).
//! 4. L1s are invalidated, and the kernel is enabled.
//!
//! Each side's steps are at most an acquire, a release, an acquire and a wait for stores, each at some modules. An
//! elision selects the modules ([`Steps::of`]); without elision every module takes part. Two actions are never
//! elided: L1 invalidation, and the wait at a kernel's end for its written-through stores to arrive
//! ([`Steps::awaiting`]).
//!
//! If L2s hold lines for the rest of their GPU (hierarchical protocols on several GPUs), an operation on a module
//! is performed by its whole GPU: [`reach`].

use crate::coherence::Protocol;
use crate::elision::{self, BrokenElision, InvalidationTurn, L2Operation, RetainedLines};
use crate::options::{ProtocolFacts, ProtocolOptions};
use crate::plan::{Action, Members, Phase, PhasePlan, Sync};
use crate::topology::{Class, ModuleSet, Topology};

/// The modules at which a step takes place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StepModules {
    /// No module.
    #[default]
    Nowhere,
    /// Every module.
    Everywhere,
    /// The given modules.
    These(ModuleSet),
}

impl StepModules {
    fn of(set: ModuleSet) -> StepModules {
        if set.is_empty() { StepModules::Nowhere } else { StepModules::These(set) }
    }

    /// Restricts `plan` to these modules.
    fn restrict(self, plan: impl Into<PhasePlan>) -> Option<PhasePlan> {
        match self {
            StepModules::Nowhere => None,
            StepModules::Everywhere => Some(plan.into()),
            StepModules::These(set) => Some(plan.into().only(set)),
        }
    }
}

/// The steps on either side of a boundary, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Steps {
    /// The acquire that comes first.
    pub acquire: StepModules,
    /// The release.
    pub release: StepModules,
    /// The acquire that waits for the release.
    pub acquire_after: StepModules,
    /// The wait for written-through stores.
    pub await_stores: StepModules,
}

/// The modules affected by a command-processor operation on a given module, on a machine under a protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// The given module only.
    #[default]
    Module,
    /// Every module in its GPU: L2s hold other modules' stores in transit.
    Gpu,
    /// Every module in its GPU, because the GPU's L2s all hold lines used by any module.
    GpuShares,
}

/// Computes the [`Reach`] on a machine with `gpus` GPUs.
pub fn reach(gpus: u8, facts: &ProtocolFacts, options: &ProtocolOptions) -> Reach {
    let passes_on = gpus > 1 && facts.hierarchical && (facts.caches)(Class::GpuHome, options);
    match (facts.holds)(options) {
        _ if !passes_on => Reach::Module,
        RetainedLines::Nothing => Reach::Gpu,
        RetainedLines::Own | RetainedLines::All => Reach::GpuShares,
    }
}

impl Steps {
    /// At the end of a kernel: a release everywhere.
    pub const END: Steps = Steps { release: StepModules::Everywhere, ..Steps::NOTHING };
    /// Before a launch: an acquire everywhere.
    pub const LAUNCH: Steps = Steps { acquire: StepModules::Everywhere, ..Steps::NOTHING };
    /// No steps.
    pub const NOTHING: Steps = Steps {
        acquire: StepModules::Nowhere,
        release: StepModules::Nowhere,
        acquire_after: StepModules::Nowhere,
        await_stores: StepModules::Nowhere,
    };

    /// The steps decided by an elision for either side. `reach`: derived from the machine and the protocol.
    pub fn of(boundary: &elision::BoundaryOperations, topology: &impl Topology, reach: Reach) -> Steps {
        let at = |does: &dyn Fn(&L2Operation) -> bool| {
            if boundary.modules.iter().all(does) {
                return StepModules::Everywhere;
            }
            let members = boundary.iter().filter(|(_, operation)| does(operation)).map(|(module, _)| match reach {
                Reach::Module => ModuleSet::only(module),
                Reach::Gpu | Reach::GpuShares => topology.whole_gpus(ModuleSet::only(module)),
            });
            StepModules::of(members.fold(ModuleSet::NONE, ModuleSet::union))
        };
        let invalidates = |operation: &L2Operation, turn| operation.invalidate.is_some() && operation.turn == turn;
        Steps {
            acquire: at(&|operation| invalidates(operation, InvalidationTurn::BeforeFlushes)),
            release: at(&|operation| operation.flush.is_some()),
            acquire_after: at(&|operation| invalidates(operation, InvalidationTurn::AfterFlushes)),
            ..Steps::NOTHING
        }
    }

    /// Adds the wait for written-through stores after these steps, everywhere: this ends a kernel whose release may
    /// have been elided.
    pub fn awaiting(self, broken: Option<BrokenElision>) -> Steps {
        let waits = broken != Some(BrokenElision::StoresNotAwaited);
        Steps { await_stores: if waits { StepModules::Everywhere } else { StepModules::Nowhere }, ..self }
    }

    /// The plan at `index` in the sequence; `None` after the last plan.
    pub fn plan(self, protocol: &impl Protocol, index: u8) -> Option<PhasePlan> {
        let acquire = |at: StepModules| at.restrict(protocol.acquire(Sync::Kernel));
        let release = || self.release.restrict(protocol.release(Sync::Kernel));
        const AWAIT_STORES: &[Phase] = &[Phase::new(Members::All, Action::AwaitStores)];
        let await_stores = self.await_stores.restrict(AWAIT_STORES);
        let plans = [acquire(self.acquire), release(), acquire(self.acquire_after), await_stores];
        plans.into_iter().flatten().nth(usize::from(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::elision::{BoundaryOperations, Extent};
    use crate::nhcc::Nhcc;
    use crate::plan::{Action, Collector};
    use crate::software_flat::SoftwareFlat;
    use crate::software_hierarchical::SoftwareHierarchical;
    use tombolo_types::{GpuId, Line, ModuleId};

    /// A machine described by its GPU count and its modules per GPU.
    struct Machine(u8, u8);

    const THREE: Machine = Machine(1, 3);

    impl Topology for Machine {
        fn gpus(&self) -> u8 {
            self.0
        }

        fn modules_per_gpu(&self) -> u8 {
            self.1
        }

        fn home(&self, _: ModuleId, _: Line) -> ModuleId {
            ModuleId(0)
        }

        fn remote_gpu_home(&self, _: GpuId, _: Line) -> ModuleId {
            ModuleId(0)
        }
    }

    /// The actions by module, plan by plan, on a machine whose members all acknowledge.
    fn run(steps: Steps) -> Vec<(u8, &'static str)> {
        run_on(&THREE, steps, &SoftwareFlat::<true>::new(ProtocolOptions::default()))
    }

    fn run_on(machine: &Machine, steps: Steps, protocol: &impl Protocol) -> Vec<(u8, &'static str)> {
        let mut done = Vec::new();
        for index in 0.. {
            let Some(plan) = steps.plan(protocol, index) else { break };
            let mut collector = Collector::new(plan, ModuleId(0));
            let tell = |done: &mut Vec<_>, member: ModuleId, action| {
                let word = match action {
                    Action::Invalidate(_) => "invalidate",
                    Action::AwaitStores => "await",
                    Action::Merge { .. } => "merge",
                    Action::DrainInvalidations(_) => "drain invalidations",
                    Action::DrainStores(_) | Action::ForwardStores | Action::Flush => "drain",
                };
                done.push((member.0, word));
            };
            while collector.begin_phase(machine, |member, action| tell(&mut done, member, action)) {
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
        let operation = |invalidate: bool, flush: bool, turn| L2Operation {
            invalidate: invalidate.then_some(Extent::Cache),
            flush: flush.then_some(Extent::Cache),
            turn,
        };
        let modules = vec![
            operation(true, true, InvalidationTurn::AfterFlushes),
            operation(false, false, InvalidationTurn::BeforeFlushes),
            operation(true, false, InvalidationTurn::BeforeFlushes),
        ];
        let steps = Steps::of(&BoundaryOperations { modules }, &THREE, Reach::Module);
        assert_eq!(run(steps), [(2, "invalidate"), (0, "drain"), (0, "invalidate")]);
        let nothing = Steps::of(&BoundaryOperations::nothing(3), &THREE, Reach::Module);
        assert_eq!(nothing, Steps::default());
        assert_eq!(run(nothing.awaiting(None)), [(0, "await"), (1, "await"), (2, "await")]);
    }

    /// A boundary with a single module's flush.
    fn flush_of(module: u8, modules: u8) -> BoundaryOperations {
        let mut boundary = BoundaryOperations::nothing(modules);
        boundary.modules[usize::from(module)].flush = Some(Extent::Cache);
        boundary
    }

    #[test]
    fn a_flush_drains_invalidations_at_every_home() {
        let protocol: Nhcc = Nhcc::new(ProtocolOptions::default());
        let steps = Steps::of(&flush_of(1, 3), &THREE, Reach::Module);
        let waits = [0, 1, 2].map(|home| (home, "drain invalidations"));
        assert_eq!(run_on(&THREE, steps, &protocol), [&[(1, "drain")][..], &waits].concat());
    }

    #[test]
    fn an_operation_covers_the_whole_gpu_if_l2s_hold_lines_for_each_other() {
        let (two, options) = (Machine(2, 2), ProtocolOptions::default());
        let on = |gpus, name| reach(gpus, catalogue::facts(name).expect("it ships"), &options);
        let software = on(2, "software-hierarchical");
        assert_eq!((on(2, "software-flat"), software), (Reach::Module, Reach::GpuShares));
        assert_eq!((on(2, "hmg"), on(1, "hmg")), (Reach::Gpu, Reach::Module));
        let protocol: SoftwareHierarchical = SoftwareHierarchical::new(options);
        assert_eq!(run_on(&two, Steps::of(&flush_of(2, 4), &two, software), &protocol), [(2, "drain"), (3, "drain")]);
    }
}
