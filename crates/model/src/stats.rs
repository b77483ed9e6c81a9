//! Counters of a run: plain integers, one set a module, added up at the end.

use tombolo_types::Ps;

macro_rules! counters {
    ($(#[doc = $about:literal])* pub struct $Name:ident { $( $(#[doc = $doc:literal])* $field:ident ),+ $(,)? }) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $Name { $( $(#[doc = $doc])* pub $field: u64 ),+ }

        impl $Name {
            /// Adds another set.
            pub fn merge(&mut self, other: &$Name) {
                $( self.$field += other.$field; )+
            }

            /// Every counter by name.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$( (stringify!($field), self.$field) ),+].into_iter()
            }
        }
    };
}

counters! {
    /// What the SMs of a module did.
    pub struct SmStats {
        /// Warp instructions issued.
        warp_instructions,
        /// Of these, loads, stores, atomics and flag waits.
        memory_instructions,
        /// Line transactions that left the coalescers.
        transactions,
        /// CTAs run.
        ctas,
        /// L1 load lookups, by line.
        l1_accesses,
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
        /// Times that a warp was parked for a miss register, a line or a store credit.
        parks,
        /// Events in which a warp, woken for a resource, found it gone: always zero.
        retries,
        /// Issue events of sub-cores.
        issues,
        /// Of these, overtaken by an earlier one.
        stale_issues,
    }
}

counters! {
    /// What the L2 slices, the directory and the memory of a module did.
    pub struct L2Stats {
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
        /// Atomics performed or passed on.
        atomics,
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
        /// Lines dropped because of an invalidation that a directory eviction caused.
        lines_invalidated_by_eviction,
        /// Bytes of invalidations sent on links.
        invalidation_bytes,
        /// Bulk invalidations of an L2.
        bulk_invalidations,
        /// Phases of acquires and releases answered.
        phases,
        /// Requests parked on a pending miss.
        parks,
        /// Requests that waited in an input queue for a miss register or a store credit.
        queued,
        /// Loads sent to another GPU.
        inter_gpu_loads,
        /// Bytes read from memory.
        memory_read_bytes,
        /// Bytes written to memory.
        memory_write_bytes,
    }
}

/// A running hash of everything a module handled, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(pub u64);

impl Default for Digest {
    fn default() -> Digest {
        // The FNV-1a 64-bit offset basis.
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Mixes a word in. Multiplier: the 64-bit golden ratio, odd.
    #[inline]
    pub fn mix(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    }

    /// Mixes an event in: when and at whom.
    #[inline]
    pub fn event(&mut self, at: Ps, component: u16) {
        self.mix(at.0 ^ u64::from(component) << 48);
    }
}
