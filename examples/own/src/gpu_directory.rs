//! NHCC inside each GPU: a directory at a line's home tracks the modules of the home's GPU, which may keep the line. Other
//! GPUs read and write the line at its home, and none of their L2 caches keeps it.

use tombolo::protocol::{
    Action, Choice, Class, Members, Phase, Promise, ProtocolOptions, RetainedLines, Rules, Scope, Sync, WritePolicy,
};

#[derive(Clone, Copy)]
pub(crate) struct GpuDirectory;

impl Rules for GpuDirectory {
    const HIERARCHICAL: bool = false;
    const DIRECTORY: bool = true;
    const PROMISE: Promise = Promise::Ptx;
    const ABOUT: &'static str = "A directory inside each GPU; an L2 keeps no line of another GPU";
    const CHOICES: &'static [Choice] = &[Choice::Downgrade, Choice::Tracks, Choice::WriteBack];

    fn caches(class: Class, _: &ProtocolOptions) -> bool {
        matches!(class, Class::Own | Class::GpuRemote)
    }

    fn holds(options: &ProtocolOptions) -> RetainedLines {
        match options.write {
            WritePolicy::Through => RetainedLines::Nothing,
            WritePolicy::Back => RetainedLines::All,
        }
    }

    // A miss that waits in the reader's L2 would be joined by later reads, and no directory would tell that it is stale.
    fn passes_reads(_: &ProtocolOptions) -> bool {
        true
    }

    // Homes invalidate what a store makes stale: an acquire drops nothing beyond the L1.
    fn acquire(_: Sync, _: &ProtocolOptions) -> &'static [Phase] {
        &[]
    }

    // A release waits until its module's stores are at their homes, and until every invalidation has arrived.
    fn release(sync: Sync, _: &ProtocolOptions) -> &'static [Phase] {
        const OWN_STORES: Phase = Phase::new(Members::Own, Action::DrainStores(Scope::Sys));
        const ALL_STORES: Phase = Phase::new(Members::All, Action::DrainStores(Scope::Sys));
        const INVALIDATIONS: Phase = Phase::new(Members::All, Action::DrainInvalidations(Scope::Sys));
        match sync {
            Sync::Thread(Scope::Cta) => &[],
            Sync::Thread(Scope::Gpu | Scope::Sys) => &[OWN_STORES, INVALIDATIONS],
            Sync::Kernel => &[ALL_STORES, INVALIDATIONS],
        }
    }
}
