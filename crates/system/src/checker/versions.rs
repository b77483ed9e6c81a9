//! Line contents for the checker: each grain carries the number of its last store.

use crate::version_probe::VersionProbe;
use tombolo_model::observe::{Contents, NoteValue, StoredNote};
use tombolo_protocol::Data;
use tombolo_types::Mask;

/// Grains in a line.
const GRAINS: usize = 32;

/// A store's number in the run, counted from 1 in issue order; 0 denotes the initial contents.
pub(crate) type Version = u32;

/// The last store to each grain, indexed by grain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Versions([Version; GRAINS]);

impl Versions {
    /// An equal version in every grain.
    pub(super) fn of(version: Version) -> Versions {
        Versions([version; GRAINS])
    }

    /// The grains in `mask`, each with its version.
    pub(super) fn grains(&self, mask: Mask) -> impl Iterator<Item = (u32, Version)> + '_ {
        (0..).zip(&self.0).filter(move |(grain, _)| mask.0 >> grain & 1 != 0).map(|(grain, version)| (grain, *version))
    }
}

impl Data for Versions {
    type Update = Version;

    fn merge(&mut self, from: Versions, mask: Mask) {
        for (grain, version) in from.grains(mask) {
            self.0[grain as usize] = version;
        }
    }

    fn update(&mut self, update: Version, mask: Mask) -> Versions {
        let before = *self;
        self.merge(Versions::of(update), mask);
        before
    }
}

impl Contents for Versions {
    type Probe = VersionProbe;
    const FOLLOWS: bool = true;
    type Note<T: NoteValue> = StoredNote<T>;

    fn exchange(self, mask: Mask) -> Version {
        self.grains(mask).next().map_or_else(Version::default, |(_, version)| version)
    }
}
