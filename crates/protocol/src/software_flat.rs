//! Flat software coherence (HMG, section VI): conventional scopes and bulk invalidation, all modules peers.
//!
//! - Loads go from the local L2 to the system home; nobody tracks sharers.
//! - Acquire beyond `.cta`: the L1 and the module's own L2. Release: waits until the homes have taken every
//!   store of the local L2.

use crate::elision::Holds;
use crate::plan::{Action, Members, Phase, Sync};
use crate::topology::{Class, ClassSet};
use crate::vi::{BulkInvalidation, Choice, Options, Rules, Vi, WritePolicy};
use tombolo_types::{Promise, Scope};

/// The rules of flat software coherence.
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
    const CHOICES: &'static [Choice] = &[Choice::BulkInvalidation, Choice::WriteBack];

    fn caches(_: Class, _: &Options) -> bool {
        true
    }

    fn holds(_: &Options) -> Holds {
        Holds::All
    }

    fn acquire(sync: Sync, bulk: BulkInvalidation) -> &'static [Phase] {
        flat_acquire(sync, bulk)
    }

    fn release(sync: Sync, _: WritePolicy) -> &'static [Phase] {
        flat_release(sync)
    }
}

/// The acquire of a flat design without directories: the own L2.
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

/// The release of a flat design without directories: the homes of the own L2's stores.
pub(crate) fn flat_release(sync: Sync) -> &'static [Phase] {
    const OWN: Phase = Phase::new(Members::Own, Action::DrainStores(Scope::Sys));
    const ALL: Phase = Phase::new(Members::All, Action::DrainStores(Scope::Sys));
    match sync {
        Sync::Thread(Scope::Cta) => &[],
        Sync::Thread(Scope::Gpu | Scope::Sys) => &[OWN],
        Sync::Kernel => &[ALL],
    }
}
