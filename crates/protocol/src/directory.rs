//! The coherence directory: HMG's Table I, for a single entry.
//!
//! | state | local ld | local st/atom | remote ld | remote st/atom | replace | invalidation |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | I | - | - | add s, →V | add s, →V | n/a | - |
//! | V | - | inv all, →I | add s | add s, inv others | inv all, →I | forward to all (HMG), →I |
//!
//! An absent entry is I; a present entry is V.
//!
//! If a directory tracks all lines in its own L2 ([`Tracks::All`]), V may have no sharer. Table I then differs in
//! these cells:
//!
//! | state | line here | local st/atom | untracked st | downgrade | replace |
//! | --- | --- | --- | --- | --- | --- |
//! | I | →V, nobody | - | - | - | n/a |
//! | V | - | inv all, →V, nobody | inv others, V | V without s | inv all, own lines evicted, →I |
//!
//! - *Line here*: an access has found or left a line from the region in this L2. A GPU home also counts its copies
//!   of other GPUs' lines: they occupy its L2 just like its own lines.
//! - The home's own lines are evicted silently. An entry without any remaining line stays until replacement.
//! - An invalidation from above always ends the entry. Dirty bytes that outlive it at a GPU home allocate an entry
//!   again at their next access.
//! - The lines evicted along with a replaced entry are chosen by [`crate::host::replace_entry`].

use crate::options::Tracks;
use crate::topology::Topology;
use tombolo_types::{DeviceSet, GpuId, Line, ModuleId};

/// A set of devices in an entry, stored in a single word because a directory has many entries.
pub type EntrySet<I> = DeviceSet<I, 1>;

/// A region's sharers: a bit per module and a bit per GPU. A flat protocol uses modules only. A hierarchical
/// protocol uses the modules in the home's own GPU and, at a system home, the remote GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sharers {
    /// Sharing modules.
    pub modules: EntrySet<ModuleId>,
    /// Sharing GPUs, each reached through its GPU home.
    pub gpus: EntrySet<GpuId>,
}

/// A single sharer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharer {
    /// A module.
    Module(ModuleId),
    /// A whole GPU, reached through its GPU home.
    Gpu(GpuId),
}

impl Sharer {
    /// The module to which the home `at` sends messages for this sharer about `line`.
    #[inline]
    pub fn module(self, topology: &impl Topology, at: ModuleId, line: Line) -> ModuleId {
        match self {
            Sharer::Module(module) => module,
            Sharer::Gpu(gpu) => topology.gpu_home(at, gpu, line),
        }
    }
}

impl Sharers {
    /// Maximum number of modules, and of GPUs, in a set.
    pub const CAPACITY: usize = EntrySet::<ModuleId>::CAPACITY;

    /// A set with only this sharer.
    pub fn only(sharer: Sharer) -> Sharers {
        let mut sharers = Sharers::default();
        sharers.add(sharer);
        sharers
    }

    /// Adds a sharer.
    pub fn add(&mut self, sharer: Sharer) {
        match sharer {
            Sharer::Module(module) => self.modules.add(module),
            Sharer::Gpu(gpu) => self.gpus.add(gpu),
        }
    }

    /// The set without the given sharer.
    pub fn without(self, sharer: Sharer) -> Sharers {
        let one = Sharers::only(sharer);
        Sharers { modules: self.modules.difference(one.modules), gpus: self.gpus.difference(one.gpus) }
    }

    /// Sharers in both sets.
    fn common(self, other: Sharers) -> Sharers {
        Sharers { modules: self.modules.intersection(other.modules), gpus: self.gpus.intersection(other.gpus) }
    }

    /// True if the set is empty.
    pub fn is_empty(self) -> bool {
        self.modules.is_empty() && self.gpus.is_empty()
    }

    /// Number of sharers in the set.
    pub fn count(self) -> u32 {
        self.modules.count() + self.gpus.count()
    }

    /// All sharers, modules first, ascending.
    pub fn iter(self) -> impl Iterator<Item = Sharer> {
        self.modules.iter().map(Sharer::Module).chain(self.gpus.iter().map(Sharer::Gpu))
    }
}

/// An access to a directory entry. `Remote…` names the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryAccess {
    /// A load by an SM in the home's module.
    LocalLoad,
    /// An access by any requester has found or left a line from the region in the home's own L2.
    LineHere,
    /// A store or atomic by an SM in the home's module.
    LocalStore,
    /// A load by a future sharer.
    RemoteLoad(Sharer),
    /// A store or atomic from another module, whose sender may keep a copy.
    RemoteStore(Sharer),
    /// Bytes written back by a sender that keeps no copy (IV-B, "Cache Eviction", the optional message type).
    UntrackedStore(Sharer),
    /// The entry is needed for another region.
    Replace,
    /// An invalidation from the home at the next level up.
    Invalidation,
    /// A sharer has dropped the region (optional message).
    Downgrade(Sharer),
}

/// Evaluates a single cell in Table I: returns the next entry and the sharers to invalidate.
pub fn transition(tracks: Tracks, entry: Option<Sharers>, access: DirectoryAccess) -> (Option<Sharers>, Sharers) {
    let nobody = Sharers::default();
    match (entry, access) {
        (None, DirectoryAccess::LineHere) => (shared_by(tracks, nobody), nobody),
        (Some(sharers), DirectoryAccess::LineHere) => (Some(sharers), nobody),
        (
            None,
            DirectoryAccess::LocalLoad
            | DirectoryAccess::LocalStore
            | DirectoryAccess::Invalidation
            | DirectoryAccess::Replace,
        ) => (None, nobody),
        (None, DirectoryAccess::RemoteLoad(s) | DirectoryAccess::RemoteStore(s)) => (Some(Sharers::only(s)), nobody),
        (None, DirectoryAccess::UntrackedStore(_) | DirectoryAccess::Downgrade(_)) => (None, nobody),
        (Some(sharers), DirectoryAccess::LocalLoad) => (Some(sharers), nobody),
        (Some(sharers), DirectoryAccess::LocalStore) => (shared_by(tracks, nobody), sharers),
        (Some(sharers), DirectoryAccess::Replace | DirectoryAccess::Invalidation) => (None, sharers),
        (Some(mut sharers), DirectoryAccess::RemoteLoad(s)) => {
            sharers.add(s);
            (Some(sharers), nobody)
        }
        (Some(sharers), DirectoryAccess::RemoteStore(s)) => (Some(Sharers::only(s)), sharers.without(s)),
        (Some(sharers), DirectoryAccess::UntrackedStore(s)) => {
            // The sender may still hold other lines in the region, so its bit is unchanged.
            (shared_by(tracks, sharers.common(Sharers::only(s))), sharers.without(s))
        }
        (Some(sharers), DirectoryAccess::Downgrade(s)) => {
            let left = sharers.without(s);
            (shared_by(tracks, left), nobody)
        }
    }
}

/// The entry for a region with these sharers.
fn shared_by(tracks: Tracks, sharers: Sharers) -> Option<Sharers> {
    match tracks {
        Tracks::Shared => (!sharers.is_empty()).then_some(sharers),
        Tracks::All => Some(sharers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Sharer = Sharer::Module(ModuleId(1));
    const B: Sharer = Sharer::Gpu(GpuId(2));

    fn both() -> Sharers {
        let mut sharers = Sharers::only(A);
        sharers.add(B);
        sharers
    }

    #[test]
    fn every_cell_of_table_i() {
        let none = Sharers::default();
        let rows = [
            (None, DirectoryAccess::LocalLoad, None, none),
            (None, DirectoryAccess::LineHere, None, none),
            (None, DirectoryAccess::LocalStore, None, none),
            (None, DirectoryAccess::RemoteLoad(A), Some(Sharers::only(A)), none),
            (None, DirectoryAccess::RemoteStore(A), Some(Sharers::only(A)), none),
            (None, DirectoryAccess::Invalidation, None, none),
            (Some(both()), DirectoryAccess::LocalLoad, Some(both()), none),
            (Some(both()), DirectoryAccess::LocalStore, None, both()),
            (Some(Sharers::only(A)), DirectoryAccess::RemoteLoad(B), Some(both()), none),
            (Some(both()), DirectoryAccess::RemoteStore(A), Some(Sharers::only(A)), Sharers::only(B)),
            (Some(both()), DirectoryAccess::Replace, None, both()),
            (Some(both()), DirectoryAccess::Invalidation, None, both()),
        ];
        for (entry, access, after, invalidated) in rows {
            let (found, sent) = transition(Tracks::Shared, entry, access);
            assert_eq!((found, sent), (after, invalidated), "{entry:?} on {access:?}");
        }
    }

    #[test]
    fn the_last_downgrade_frees_the_entry() {
        let after = |entry, access| transition(Tracks::Shared, Some(entry), access);
        assert_eq!(after(both(), DirectoryAccess::Downgrade(A)), (Some(Sharers::only(B)), Sharers::default()));
        assert_eq!(after(Sharers::only(B), DirectoryAccess::Downgrade(B)), (None, Sharers::default()));
    }

    #[test]
    fn with_full_tracking_an_entry_outlives_its_last_sharer() {
        let none = Sharers::default();
        let rows = [
            (None, DirectoryAccess::LineHere, Some(none), none),
            (None, DirectoryAccess::LocalLoad, None, none),
            (None, DirectoryAccess::LocalStore, None, none),
            (None, DirectoryAccess::UntrackedStore(A), None, none),
            (None, DirectoryAccess::Downgrade(A), None, none),
            (Some(none), DirectoryAccess::RemoteLoad(A), Some(Sharers::only(A)), none),
            (Some(both()), DirectoryAccess::LineHere, Some(both()), none),
            (Some(both()), DirectoryAccess::LocalStore, Some(none), both()),
            (Some(Sharers::only(B)), DirectoryAccess::UntrackedStore(A), Some(none), Sharers::only(B)),
            (Some(Sharers::only(A)), DirectoryAccess::Downgrade(A), Some(none), none),
            (Some(both()), DirectoryAccess::Replace, None, both()),
            (Some(both()), DirectoryAccess::Invalidation, None, both()),
        ];
        for (entry, access, after, invalidated) in rows {
            let (found, sent) = transition(Tracks::All, entry, access);
            assert_eq!((found, sent), (after, invalidated), "{entry:?} on {access:?}");
        }
    }
}
