//! HMG: hierarchical, hardware-managed coherence (HMG, section V).
//!
//! - Loads climb from the local L2 to the GPU home to the system home. Weak and `.cta` loads hit anywhere, `.gpu`
//!   loads at or after the GPU home, `.sys` loads at the system home.
//! - A GPU home tracks the modules in its GPU; a system home also tracks the remote GPUs. A GPU home forwards the
//!   invalidations it receives.
//! - Acquire: the L1 only (readings: V-B's sentence on `.cta` is a slip).
//! - Release `.gpu`: the local L2 drains to the GPU homes, then every home in the GPU drains its invalidations to
//!   the GPU's modules. Traffic between GPUs is not awaited.
//! - Release `.sys`: the local L2 drains to the system homes. Meanwhile the GPU's remaining L2s forward the data
//!   they hold as GPU homes, because the release is cumulative and another thread's `.gpu` release stopped at the
//!   GPU home. Then every home drains its invalidations, including the invalidations forwarded by GPU homes. With
//!   write-back lines, a GPU home keeps the stores it accepts: the local L2 drains to the GPU homes first.

use crate::elision::RetainedLines;
use crate::plan::{Action, Members, Phase, Sync};
use crate::topology::Class;
use crate::vi::{Choice, ProtocolOptions, Rules, Vi, WritePolicy};
use tombolo_types::{Promise, Scope};

/// The rules for HMG.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HmgRules;

/// The HMG protocol.
pub type Hmg<const BREAKABLE: bool = true> = Vi<HmgRules, BREAKABLE>;

impl Rules for HmgRules {
    const HIERARCHICAL: bool = true;
    const DIRECTORY: bool = true;
    const PROMISE: Promise = Promise::Ptx;
    const ABOUT: &'static str = "Directories at GPU homes and system homes. Source: HMG, section V.";
    const CHOICES: &'static [Choice] = &[Choice::Downgrade, Choice::Tracks, Choice::WriteBack];

    fn caches(_: Class, _: &ProtocolOptions) -> bool {
        true
    }

    fn holds(options: &ProtocolOptions) -> RetainedLines {
        match options.write {
            WritePolicy::Through => RetainedLines::Nothing,
            WritePolicy::Back => RetainedLines::All,
        }
    }

    fn acquire(_: Sync, _: &ProtocolOptions) -> &'static [Phase] {
        &[]
    }

    fn release(sync: Sync, options: &ProtocolOptions) -> &'static [Phase] {
        const OWN_STORES_IN_GPU: Phase = Phase::new(Members::Own, Action::DrainStores(Scope::Gpu));
        const GPU_STORES: Phase = Phase::new(Members::Gpu, Action::DrainStores(Scope::Sys)).others_forward();
        const ALL_STORES_IN_GPU: Phase = Phase::new(Members::All, Action::DrainStores(Scope::Gpu));
        const ALL_STORES: Phase = Phase::new(Members::All, Action::DrainStores(Scope::Sys));
        const GPU_INVALIDATIONS: Phase = Phase::new(Members::Gpu, Action::DrainInvalidations(Scope::Gpu));
        const ALL_INVALIDATIONS: Phase = Phase::new(Members::All, Action::DrainInvalidations(Scope::Sys));
        match (sync, options.write) {
            (Sync::Thread(Scope::Cta), _) => &[],
            (Sync::Thread(Scope::Gpu), _) => &[OWN_STORES_IN_GPU, GPU_INVALIDATIONS],
            (Sync::Thread(Scope::Sys), WritePolicy::Through) => &[GPU_STORES, ALL_INVALIDATIONS],
            (Sync::Thread(Scope::Sys), WritePolicy::Back) => &[OWN_STORES_IN_GPU, GPU_STORES, ALL_INVALIDATIONS],
            (Sync::Kernel, WritePolicy::Through) => &[ALL_STORES, ALL_INVALIDATIONS],
            (Sync::Kernel, WritePolicy::Back) => &[ALL_STORES_IN_GPU, ALL_STORES, ALL_INVALIDATIONS],
        }
    }
}
