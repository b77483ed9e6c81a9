//! Counters for a run: plain integers, one set per module, added up at the end.

use crate::layout::{ComponentKind, Unit};
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

            /// Results from the simulated machine: included in a run's digest.
            pub fn results(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$( (stringify!($field), self.$field) ),+].into_iter()
            }

            /// Statistics without influence on decisions: included only in the statistics digest.
            pub fn statistics(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$( (stringify!($seen_field), self.$seen_field) ),+].into_iter()
            }
        }
    };
}

counters! {
    /// Counters for the SMs in a module.
    pub struct SmStats {
        results {
            /// Warp instructions issued.
            warp_instructions,
            /// Loads, stores, atomics and flag waits among these instructions.
            memory_instructions,
            /// Line transactions sent by the coalescers.
            transactions,
            /// CTAs run.
            ctas,
            /// Loads looked up in an L1, by line.
            l1_loads,
            /// L1 hits among these lookups.
            l1_hits,
            /// L1 lookups merged into a pending miss.
            l1_merges,
            /// Bulk invalidations in an L1.
            l1_invalidations,
            /// Translations with a miss in the SM's TLB.
            tlb_misses,
            /// TLB misses that also missed the module's TLB and required a page walk.
            tlb_walks,
            /// Flag polls that found the flag not yet set.
            failed_polls,
        }
        statistics {
            /// Number of times a warp parked for an MSHR, a line or a store credit.
            parks,
            /// Parks for a page whose mapping does not permit the module's access.
            page_waits,
            /// Events in which a warp was woken for a resource and found none: always zero.
            retries,
            /// Issue events in sub-cores.
            issues,
            /// Issue events made obsolete by an earlier event.
            stale_issues,
            /// Conflict-free passes through the scratchpads.
            scratchpad_passes,
        }
    }
}

counters! {
    /// Counters for the L2 slices, the directory and the memory in a module.
    pub struct L2Stats {
        results {
            /// Reads looked up.
            reads,
            /// Hits among these reads.
            read_hits,
            /// Reads from other modules.
            remote_reads,
            /// Hits among the reads from other modules.
            remote_read_hits,
            /// Reads merged into a pending miss.
            merges,
            /// Stores accepted.
            writes,
            /// Atomics performed.
            atomics,
            /// Atomics forwarded to the home for execution.
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
            /// Stores and atomics with at least one sharer invalidated.
            stores_on_shared,
            /// Directory entries replaced.
            directory_evictions,
            /// Replaced directory entries with a sharer.
            directory_evictions_shared,
            /// Lines dropped for an invalidation caused by a store.
            lines_invalidated_by_store,
            /// Lines dropped for an invalidation caused by a directory eviction, or together with the replaced entry
            /// that tracked them.
            lines_invalidated_by_eviction,
            /// Bytes sent on links for invalidations.
            invalidation_bytes,
            /// Bulk invalidations in an L2.
            bulk_invalidations,
            /// Acquire and release phases answered.
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
            /// Requests that waited in an input queue for an MSHR or a store credit.
            queued,
            /// Reads, stores and atomics that bypassed the L2 without a lookup.
            passed,
            /// Bytes returned to slices for their misses.
            fill_bytes,
            /// Dirty bytes that left slices by an eviction, a release or an invalidation.
            write_back_bytes,
        }
    }
}

/// Hash for a set of facts. It does not depend on the order in which facts are mixed in, nor on the machine part that
/// mixes them in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(pub u64);

impl Digest {
    /// Mixes in a word.
    #[inline]
    pub fn mix(&mut self, word: u64) {
        self.0 = self.0.wrapping_add(scramble(word));
    }

    /// Mixes in an event: its time and component.
    #[inline]
    pub fn event(&mut self, at: Ps, whom: ComponentMark) {
        self.mix(at.0.wrapping_add(whom.0));
    }

    /// Mixes in a named value. Zero changes nothing, so an additional unused value leaves every digest unchanged.
    pub fn value(&mut self, name: &str, value: u64) {
        if value != 0 {
            self.mix(named(name) ^ scramble(value));
        }
    }

    /// Mixes in a further set of facts.
    pub fn merge(&mut self, other: Digest) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Number that represents a component in an event digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComponentMark(u64);

impl ComponentMark {
    /// Mark for a component.
    pub fn of(place: ComponentKind) -> ComponentMark {
        let (kind, module, index) = match place {
            ComponentKind::Module(module, Unit::Sm(sm)) => (1, module.0, sm.0),
            ComponentKind::Module(module, Unit::Slice(slice)) => (2, module.0, slice),
            ComponentKind::Module(module, Unit::Controller) => (3, module.0, 0),
            ComponentKind::Switch => (4, 0, 0),
            ComponentKind::CommandProcessor => (5, 0, 0),
            ComponentKind::Module(module, Unit::CopyEngine) => (6, module.0, 0),
            ComponentKind::Driver => (7, 0, 0),
            ComponentKind::GpuPort(gpu, direction) => (8, gpu.0, direction as u16),
        };
        let place = kind << 32 | u64::from(module) << 16 | u64::from(index);
        ComponentMark(place.wrapping_mul(SPREAD))
    }
}

/// The 64-bit golden ratio, odd: its multiples are far apart.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Bijective scrambling of 64-bit words. Source: the finaliser in SplitMix64 (Steele, Lea, Flood, 2014).
#[inline]
fn scramble(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Hash of a name. Source: FNV-1a, 64 bits.
fn named(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::{ModuleId, SmId};

    fn of(events: &[(u64, ComponentKind)]) -> Digest {
        let mut digest = Digest::default();
        events.iter().for_each(|&(at, place)| digest.event(Ps(at), ComponentMark::of(place)));
        digest
    }

    #[test]
    fn a_digest_tells_times_places_and_names_apart_and_not_their_order() {
        let sm = |module, sm| ComponentKind::Module(ModuleId(module), Unit::Sm(SmId(sm)));
        let slice = ComponentKind::Module(ModuleId(0), Unit::Slice(1));
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
