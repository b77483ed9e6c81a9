//! NHCC: non-hierarchical, hardware-managed coherence (HMG, section IV): all modules in all GPUs are peers.
//!
//! - Loads go from the local L2 to the system home. Loads beyond `.cta` miss in every L2 except the home's.
//! - The system home tracks modules, regardless of their GPU.
//! - Acquire: the L1 only. Release: the local L2 drains to the homes, then every home drains its invalidations;
//!   `.gpu` and `.sys` are equivalent.

use crate::elision::RetainedLines;
use crate::plan::{Action, Members, Phase, Sync};
use crate::topology::Class;
use crate::vi::{Choice, ProtocolOptions, Rules, Vi, WritePolicy};
use tombolo_types::{Promise, Scope};

/// The rules for NHCC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NhccRules;

/// The NHCC protocol.
pub type Nhcc<const BREAKABLE: bool = true> = Vi<NhccRules, BREAKABLE>;

impl Rules for NhccRules {
    const HIERARCHICAL: bool = false;
    const DIRECTORY: bool = true;
    const PROMISE: Promise = Promise::Ptx;
    const ABOUT: &'static str = "A flat directory at the system home. Source: HMG, section IV.";
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

    fn release(sync: Sync, _: &ProtocolOptions) -> &'static [Phase] {
        const OWN_STORES: Phase = Phase::new(Members::Own, Action::DrainStores(Scope::Sys));
        const ALL_STORES: Phase = Phase::new(Members::All, Action::DrainStores(Scope::Sys));
        const ALL_INVALIDATIONS: Phase = Phase::new(Members::All, Action::DrainInvalidations(Scope::Sys));
        match sync {
            Sync::Thread(Scope::Cta) => &[],
            Sync::Thread(Scope::Gpu | Scope::Sys) => &[OWN_STORES, ALL_INVALIDATIONS],
            Sync::Kernel => &[ALL_STORES, ALL_INVALIDATIONS],
        }
    }
}
