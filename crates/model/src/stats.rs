//! Counters of a run: plain integers, one set a module, added up at the end.

use crate::layout::{Place, Unit};
use std::fmt;
use tombolo_types::Ps;

macro_rules! counters {
    (
        $(#[doc = $about:literal])* pub struct $Name:ident {
            results { $( $(#[doc = $doc:literal])* $field:ident ),+ $(,)? }
            statistics { $( $(#[doc = $seen:literal])* $seen_field:ident ),+ $(,)? }
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $Name { $( $(#[doc = $doc])* pub $field: u64, )+ $( $(#[doc = $seen])* pub $seen_field: u64 ),+ }

        impl $Name {
            /// Adds another set.
            pub fn merge(&mut self, other: &$Name) {
                $( self.$field += other.$field; )+
                $( self.$seen_field += other.$seen_field; )+
            }

            /// Every counter by name.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                self.results().chain(self.statistics())
            }

            /// What the simulated machine did: part of the digest of a run.
            pub fn results(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$( (stringify!($field), self.$field) ),+].into_iter()
            }

            /// What observes and decides nothing: part of the digest of the statistics alone.
            pub fn statistics(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$( (stringify!($seen_field), self.$seen_field) ),+].into_iter()
            }
        }
    };
}

counters! {
    /// What the SMs of a module did.
    pub struct SmStats {
        results {
            /// Warp instructions issued.
            warp_instructions,
            /// Of these, loads, stores, atomics and flag waits.
            memory_instructions,
            /// Line transactions that left the coalescers.
            transactions,
            /// CTAs run.
            ctas,
            /// Loads looked up in an L1, by line.
            l1_loads,
            /// Of these, hits.
            l1_hits,
            /// Of these, merged into a pending miss.
            l1_merges,
            /// Bulk invalidations of an L1.
            l1_invalidations,
            /// Translations that missed the SM's TLB.
            tlb_misses,
            /// Of these, missed the module's TLB too and walked.
            tlb_walks,
            /// Flag polls that found the flag not yet set.
            failed_polls,
        }
        statistics {
            /// Times that a warp was parked for a miss register, a line or a store credit.
            parks,
            /// Of these, for a page that its module may not use so.
            page_waits,
            /// Events in which a warp, woken for a resource, found it gone: always zero.
            retries,
            /// Issue events of sub-cores.
            issues,
            /// Of these, overtaken by an earlier one.
            stale_issues,
            /// Conflict-free passes of the scratchpads.
            scratchpad_passes,
        }
    }
}

counters! {
    /// What the L2 slices, the directory and the memory of a module did.
    pub struct L2Stats {
        results {
            /// Reads looked up.
            reads,
            /// Of these, hits.
            read_hits,
            /// Of these, from other modules.
            remote_reads,
            /// Of the reads from other modules, hits.
            remote_read_hits,
            /// Of the reads, merged into a pending miss.
            merges,
            /// Stores taken.
            writes,
            /// Atomics performed.
            atomics,
            /// Atomics passed on toward the home that performs them.
            atomics_passed,
            /// Lines evicted for room.
            evictions,
            /// Dirty lines written back by an eviction or a release.
            writebacks,
            /// Invalidations sent because of a store or an atomic.
            invalidations_by_store,
            /// Invalidations sent because a directory entry was replaced.
            invalidations_by_eviction,
            /// Invalidations forwarded by a GPU home.
            invalidations_forwarded,
            /// Stores and atomics that invalidated at least one sharer.
            stores_on_shared,
            /// Directory entries replaced.
            directory_evictions,
            /// Directory entries replaced that had a sharer.
            directory_evictions_shared,
            /// Lines dropped because of an invalidation that a store caused.
            lines_invalidated_by_store,
            /// Lines dropped because of an invalidation that a directory eviction caused, or with the replaced entry that stood
            /// for them.
            lines_invalidated_by_eviction,
            /// Bytes of invalidations sent on links.
            invalidation_bytes,
            /// Bulk invalidations of an L2.
            bulk_invalidations,
            /// Phases of acquires and releases answered.
            phases,
            /// Loads sent to another GPU.
            inter_gpu_loads,
            /// Bytes read from memory.
            memory_read_bytes,
            /// Bytes written to memory.
            memory_write_bytes,
        }
        statistics {
            /// Requests parked on a pending miss.
            parks,
            /// Requests that waited in an input queue for a miss register or a store credit.
            queued,
            /// Of the reads, stores and atomics, those that passed the L2 without looking into it.
            passed,
            /// Bytes that came back to slices for their misses.
            fill_bytes,
            /// Dirty bytes that left slices by an eviction, a release or an invalidation.
            write_back_bytes,
        }
    }
}

/// A hash of a set of facts, equal in whichever order and by whichever part of the machine they are mixed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(pub u64);

impl Digest {
    /// Mixes a word in.
    #[inline]
    pub fn mix(&mut self, word: u64) {
        self.0 = self.0.wrapping_add(scramble(word));
    }

    /// Mixes an event in: when and at whom.
    #[inline]
    pub fn event(&mut self, at: Ps, whom: Mark) {
        self.mix(at.0.wrapping_add(whom.0));
    }

    /// Mixes a named value in; zero changes nothing, so that a value more of the machine, not used, changes no digest.
    pub fn value(&mut self, name: &str, value: u64) {
        if value != 0 {
            self.mix(named(name) ^ scramble(value));
        }
    }

    /// Mixes another set of facts in.
    pub fn merge(&mut self, other: Digest) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What stands for a component in a digest of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

impl Mark {
    /// That of a component.
    pub fn of(place: Place) -> Mark {
        let (kind, module, index) = match place {
            Place::Module(module, Unit::Sm(sm)) => (1, module.0, sm.0),
            Place::Module(module, Unit::Slice(slice)) => (2, module.0, slice),
            Place::Module(module, Unit::Controller) => (3, module.0, 0),
            Place::Switch => (4, 0, 0),
            Place::CommandProcessor => (5, 0, 0),
            Place::Module(module, Unit::CopyEngine) => (6, module.0, 0),
            Place::Driver => (7, 0, 0),
            Place::Way(gpu, way) => (8, gpu.0, way as u16),
        };
        let place = kind << 32 | u64::from(module) << 16 | u64::from(index);
        Mark(place.wrapping_mul(SPREAD))
    }
}

/// The 64-bit golden ratio, odd: multiples of it are far from each other.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A bijection of 64-bit words without structure. Source: the finaliser of SplitMix64 (Steele, Lea, Flood, 2014).
#[inline]
fn scramble(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// A hash of a name. Source: FNV-1a, 64 bits.
fn named(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::{ModuleId, SmId};

    fn of(events: &[(u64, Place)]) -> Digest {
        let mut digest = Digest::default();
        events.iter().for_each(|&(at, place)| digest.event(Ps(at), Mark::of(place)));
        digest
    }

    #[test]
    fn a_digest_tells_times_places_and_names_apart_and_not_their_order() {
        let sm = |module, sm| Place::Module(ModuleId(module), Unit::Sm(SmId(sm)));
        let slice = Place::Module(ModuleId(0), Unit::Slice(1));
        assert_eq!(of(&[(1, sm(0, 1)), (2, slice)]), of(&[(2, slice), (1, sm(0, 1))]));
        let all =
            [of(&[(1, sm(0, 1))]), of(&[(2, sm(0, 1))]), of(&[(1, sm(1, 1))]), of(&[(1, sm(0, 2))]), of(&[(1, slice)])];
        for (index, one) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other != one), "{index}");
        }
        assert_ne!(of(&[(1, slice), (1, slice)]), Digest::default(), "equal facts do not cancel out");
        let value = |name, value| {
            let mut digest = Digest::default();
            digest.value(name, value);
            digest
        };
        assert_ne!(value("reads", 1), value("writes", 1));
        assert_eq!(value("reads", 0), Digest::default());
    }
}
