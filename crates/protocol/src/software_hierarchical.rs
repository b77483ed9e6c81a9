//! Hierarchical software coherence (HMG, section VI): bulk invalidation that makes use of scopes.
//!
//! - Loads go from the local L2 to the GPU home to the system home; nobody tracks sharers.
//! - Acquire `.gpu`: the L1 and the module's own L2. Acquire `.sys`: the L1 and every L2 of the GPU, the
//!   own one last, lest another thread of the module refill it from a GPU home not yet invalidated.
//! - Release `.gpu`: waits until the GPU homes have taken every store of the local L2. Release `.sys`:
//!   every L2 of the GPU drains, to the GPU homes and then to the system homes.

use crate::coherence::{Promise, Sync};
use crate::plan::{Action, Members, Phase};
use crate::topology::{Class, ClassSet};
use crate::vi::{BulkInvalidation, Rules, Vi};
use tombolo_types::Scope;

/// The rules of hierarchical software coherence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SoftwareHierarchicalRules;

/// Hierarchical software coherence.
pub type SoftwareHierarchical = Vi<SoftwareHierarchicalRules>;

impl Rules for SoftwareHierarchicalRules {
    const HIERARCHICAL: bool = true;
    const DIRECTORY: bool = false;
    const PROMISE: Promise = Promise::Ptx;

    fn caches(_: Class) -> bool {
        true
    }

    fn acquire(sync: Sync, bulk: BulkInvalidation) -> &'static [Phase] {
        const fn drop(members: Members, classes: ClassSet) -> Phase {
            Phase::new(members, Action::Invalidate(classes))
        }
        const GPU: [Phase; 1] = [drop(Members::Own, ClassSet::ALL)];
        const GPU_SPARING: [Phase; 1] = [drop(Members::Own, ClassSet::NOT_GPU_HOME)];
        const SYSTEM: [Phase; 2] = [drop(Members::OthersOfGpu, ClassSet::ALL), drop(Members::Own, ClassSet::ALL)];
        const SYSTEM_SPARING: [Phase; 2] =
            [drop(Members::OthersOfGpu, ClassSet::NOT_OWN), drop(Members::Own, ClassSet::NOT_OWN)];
        // Once, all together: between kernels nobody refills one L2 from another.
        const KERNEL: [Phase; 1] = [drop(Members::All, ClassSet::ALL)];
        const KERNEL_SPARING: [Phase; 1] = [drop(Members::All, ClassSet::NOT_OWN)];
        match (sync, bulk != BulkInvalidation::All) {
            (Sync::Thread(Scope::Cta), _) => &[],
            (Sync::Thread(Scope::Gpu), false) => &GPU,
            (Sync::Thread(Scope::Gpu), true) => &GPU_SPARING,
            (Sync::Thread(Scope::Sys), false) => &SYSTEM,
            (Sync::Thread(Scope::Sys), true) => &SYSTEM_SPARING,
            (Sync::Kernel, false) => &KERNEL,
            (Sync::Kernel, true) => &KERNEL_SPARING,
        }
    }

    fn release(sync: Sync) -> &'static [Phase] {
        hierarchical_release(sync)
    }
}

/// The release of a hierarchical design without directories.
pub(crate) fn hierarchical_release(sync: Sync) -> &'static [Phase] {
    const OWN: Phase = Phase::new(Members::Own, Action::DrainStores);
    const GPU: Phase = Phase::new(Members::Gpu, Action::DrainStores);
    const GPU_ON: Phase = GPU.again_beyond_gpu();
    const ALL: Phase = Phase::new(Members::All, Action::DrainStores);
    const ALL_ON: Phase = ALL.again_beyond_gpu();
    match sync {
        Sync::Thread(Scope::Cta) => &[],
        Sync::Thread(Scope::Gpu) => &[OWN],
        Sync::Thread(Scope::Sys) => &[GPU, GPU_ON],
        Sync::Kernel => &[ALL, ALL_ON],
    }
}
