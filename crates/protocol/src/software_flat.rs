//! Flat software coherence (HMG, section VI): conventional scopes and bulk invalidation, with all modules as peers.
//!
//! - Loads go from the local L2 to the system home; no directory tracks sharers.
//! - Acquire beyond `.cta`: the L1 and the module's own L2. Release: waits until the homes have accepted every
//!   store from the local L2.

use crate::elision::RetainedLines;
use crate::plan::{Action, Members, Phase, Sync};
use crate::topology::{Class, ClassSet};
use crate::vi::{BulkInvalidation, Choice, ProtocolOptions, Rules, Vi};
use tombolo_types::{Promise, Scope};

/// The rules for flat software coherence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SoftwareFlatRules;

/// Flat software coherence.
pub type SoftwareFlat<const BREAKABLE: bool = true> = Vi<SoftwareFlatRules, BREAKABLE>;

impl Rules for SoftwareFlatRules {
    const HIERARCHICAL: bool = false;
    const DIRECTORY: bool = false;
    const PROMISE: Promise = Promise::Ptx;
    const ABOUT: &'static str =
        "Bulk invalidation between an SM and the system home, every module alike. Source: HMG, section VI.";
    const CHOICES: &'static [Choice] =
        &[Choice::BulkInvalidation, Choice::WriteBack, Choice::HomeL2, Choice::StoreMiss];

    fn caches(_: Class, _: &ProtocolOptions) -> bool {
        true
    }

    fn holds(_: &ProtocolOptions) -> RetainedLines {
        RetainedLines::All
    }

    fn acquire(sync: Sync, options: &ProtocolOptions) -> &'static [Phase] {
        flat_acquire(sync, options.bulk)
    }

    fn release(sync: Sync, _: &ProtocolOptions) -> &'static [Phase] {
        flat_release(sync)
    }
}

/// The acquire plan for a flat design without directories: invalidates the own L2.
pub(crate) fn flat_acquire(sync: Sync, bulk: BulkInvalidation) -> &'static [Phase] {
    const OWN: [Phase; 1] = [Phase::new(Members::Own, Action::Invalidate(ClassSet::ALL))];
    const OWN_SPARING: [Phase; 1] = [Phase::new(Members::Own, Action::Invalidate(ClassSet::NOT_OWN))];
    const ALL: [Phase; 1] = [Phase::new(Members::All, Action::Invalidate(ClassSet::ALL))];
    const ALL_SPARING: [Phase; 1] = [Phase::new(Members::All, Action::Invalidate(ClassSet::NOT_OWN))];
    let spares = bulk != BulkInvalidation::All;
    match sync {
        Sync::Thread(Scope::Cta) => &[],
        Sync::Thread(Scope::Gpu | Scope::Sys) => {
            if spares {
                &OWN_SPARING
            } else {
                &OWN
            }
        }
        Sync::Kernel => {
            if spares {
                &ALL_SPARING
            } else {
                &ALL
            }
        }
    }
}

/// The release plan for a flat design without directories: drains the own L2's stores to their homes.
pub(crate) fn flat_release(sync: Sync) -> &'static [Phase] {
    const OWN: Phase = Phase::new(Members::Own, Action::DrainStores(Scope::Sys));
    const ALL: Phase = Phase::new(Members::All, Action::DrainStores(Scope::Sys));
    match sync {
        Sync::Thread(Scope::Cta) => &[],
        Sync::Thread(Scope::Gpu | Scope::Sys) => &[OWN],
        Sync::Kernel => &[ALL],
    }
}
