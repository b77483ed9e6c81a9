//! Hierarchical software coherence (HMG, section VI): bulk invalidation that exploits scopes.
//!
//! - Loads go from the local L2 to the GPU home to the system home; no directory tracks sharers.
//! - Acquire `.gpu`: the L1 and the module's own L2. Acquire `.sys`: the L1 and every L2 in the GPU. The own L2 is
//!   last, lest another thread in the module refill it from a GPU home not yet invalidated.
//! - Release `.gpu`: waits until the GPU homes have accepted every store from the local L2.
//! - Release `.sys`: waits until the system homes have accepted every store from the local L2, plus the stores that
//!   the GPU's GPU homes have forwarded for other modules. The release is cumulative, and another thread's `.gpu`
//!   release stopped at the GPU home. With write-back lines, a GPU home keeps the stores it accepts: the local L2
//!   drains to the GPU homes first.

use crate::elision::RetainedLines;
use crate::plan::{Action, Members, Phase, Sync};
use crate::topology::{Class, ClassSet};
use crate::vi::{BulkInvalidation, Choice, ProtocolOptions, Rules, Vi, WritePolicy};
use tombolo_types::{Promise, Scope};

/// The rules for hierarchical software coherence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SoftwareHierarchicalRules;

/// Hierarchical software coherence.
pub type SoftwareHierarchical<const BREAKABLE: bool = true> = Vi<SoftwareHierarchicalRules, BREAKABLE>;

impl Rules for SoftwareHierarchicalRules {
    const HIERARCHICAL: bool = true;
    const DIRECTORY: bool = false;
    const PROMISE: Promise = Promise::Ptx;
    const ABOUT: &'static str = "Bulk invalidation between an SM and the home of the scope. Source: HMG, section VI.";
    const CHOICES: &'static [Choice] = &[Choice::BulkInvalidation, Choice::WriteBack];

    fn caches(_: Class, _: &ProtocolOptions) -> bool {
        true
    }

    fn holds(_: &ProtocolOptions) -> RetainedLines {
        RetainedLines::All
    }

    fn acquire(sync: Sync, options: &ProtocolOptions) -> &'static [Phase] {
        const fn drop(members: Members, classes: ClassSet) -> Phase {
            Phase::new(members, Action::Invalidate(classes))
        }
        const GPU: [Phase; 1] = [drop(Members::Own, ClassSet::ALL)];
        const GPU_SPARING: [Phase; 1] = [drop(Members::Own, ClassSet::NOT_GPU_HOME)];
        const SYSTEM: [Phase; 2] = [drop(Members::OthersOfGpu, ClassSet::ALL), drop(Members::Own, ClassSet::ALL)];
        const SYSTEM_SPARING: [Phase; 2] =
            [drop(Members::OthersOfGpu, ClassSet::NOT_OWN), drop(Members::Own, ClassSet::NOT_OWN)];
        // A single phase for all L2s: between kernels no access refills an L2 from another.
        const KERNEL: [Phase; 1] = [drop(Members::All, ClassSet::ALL)];
        const KERNEL_SPARING: [Phase; 1] = [drop(Members::All, ClassSet::NOT_OWN)];
        match (sync, options.bulk != BulkInvalidation::All) {
            (Sync::Thread(Scope::Cta), _) => &[],
            (Sync::Thread(Scope::Gpu), false) => &GPU,
            (Sync::Thread(Scope::Gpu), true) => &GPU_SPARING,
            (Sync::Thread(Scope::Sys), false) => &SYSTEM,
            (Sync::Thread(Scope::Sys), true) => &SYSTEM_SPARING,
            (Sync::Kernel, false) => &KERNEL,
            (Sync::Kernel, true) => &KERNEL_SPARING,
        }
    }

    fn release(sync: Sync, options: &ProtocolOptions) -> &'static [Phase] {
        hierarchical_release(sync, options.write)
    }
}

/// The release plan for a hierarchical design without directories.
pub(crate) fn hierarchical_release(sync: Sync, write: WritePolicy) -> &'static [Phase] {
    const OWN_IN_GPU: Phase = Phase::new(Members::Own, Action::DrainStores(Scope::Gpu));
    const GPU: Phase = Phase::new(Members::Gpu, Action::DrainStores(Scope::Sys)).others_forward();
    const ALL_IN_GPU: Phase = Phase::new(Members::All, Action::DrainStores(Scope::Gpu));
    const ALL: Phase = Phase::new(Members::All, Action::DrainStores(Scope::Sys));
    match (sync, write) {
        (Sync::Thread(Scope::Cta), _) => &[],
        (Sync::Thread(Scope::Gpu), _) => &[OWN_IN_GPU],
        (Sync::Thread(Scope::Sys), WritePolicy::Through) => &[GPU],
        (Sync::Thread(Scope::Sys), WritePolicy::Back) => &[OWN_IN_GPU, GPU],
        (Sync::Kernel, WritePolicy::Through) => &[ALL],
        (Sync::Kernel, WritePolicy::Back) => &[ALL_IN_GPU, ALL],
    }
}
