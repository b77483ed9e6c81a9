//! HMG: hierarchical, hardware-managed coherence (HMG, section V).
//!
//! - Loads climb from the local L2 to the GPU home to the system home. Weak and `.cta` loads hit anywhere,
//!   `.gpu` loads at or after the GPU home, `.sys` loads at the system home.
//! - A GPU home tracks the modules of its GPU, a system home also the other GPUs. A GPU home forwards the
//!   invalidations it receives.
//! - Acquire: the L1 only (readings: V-B's sentence on `.cta` is a slip). Release `.gpu`: the local L2
//!   drains to the GPU homes, then every home of the GPU drains its invalidations. Release `.sys`: every L2
//!   of the GPU drains to the GPU homes, then to the system homes (another thread's `.gpu` release stopped
//!   at the GPU home, and this one is cumulative); then every system home drains its invalidations, then
//!   every GPU home those it forwarded.

use crate::coherence::{Promise, Sync};
use crate::plan::{Action, Members, Phase};
use crate::topology::Class;
use crate::vi::{BulkInvalidation, Rules, Vi};
use tombolo_types::Scope;

/// The rules of HMG.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HmgRules;

/// HMG.
pub type Hmg = Vi<HmgRules>;

impl Rules for HmgRules {
    const HIERARCHICAL: bool = true;
    const DIRECTORY: bool = true;
    const PROMISE: Promise = Promise::Ptx;

    fn caches(_: Class) -> bool {
        true
    }

    fn acquire(_: Sync, _: BulkInvalidation) -> &'static [Phase] {
        &[]
    }

    fn release(sync: Sync) -> &'static [Phase] {
        const OWN_STORES: Phase = Phase::new(Members::Own, Action::DrainStores);
        const GPU_STORES: Phase = Phase::new(Members::Gpu, Action::DrainStores);
        const GPU_STORES_ON: Phase = GPU_STORES.again_beyond_gpu();
        const ALL_STORES: Phase = Phase::new(Members::All, Action::DrainStores);
        const ALL_STORES_ON: Phase = ALL_STORES.again_beyond_gpu();
        const GPU_INVALIDATIONS: Phase = Phase::new(Members::Gpu, Action::DrainInvalidations);
        const ALL_INVALIDATIONS: Phase = Phase::new(Members::All, Action::DrainInvalidations);
        const ALL_INVALIDATIONS_ON: Phase = ALL_INVALIDATIONS.again_beyond_gpu();
        match sync {
            Sync::Thread(Scope::Cta) => &[],
            Sync::Thread(Scope::Gpu) => &[OWN_STORES, GPU_INVALIDATIONS],
            Sync::Thread(Scope::Sys) => &[GPU_STORES, GPU_STORES_ON, ALL_INVALIDATIONS, ALL_INVALIDATIONS_ON],
            Sync::Kernel => &[ALL_STORES, ALL_STORES_ON, ALL_INVALIDATIONS, ALL_INVALIDATIONS_ON],
        }
    }
}
