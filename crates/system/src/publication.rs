//! Cost and traffic for publishing stores to subscribers.

use crate::counters::{ModuleCounters, PublicationCounters};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tombolo_machine::MachineConfig;
use tombolo_model::driver::Driver;
use tombolo_model::publisher::{DrainCause, PublicationStats};

/// Lookups in subscribers' TLBs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriberTlbRecord {
    /// All lookups, one for each entry or atomic sent.
    pub accesses: u64,
    /// Lookups that hit, or that joined a walk already in flight.
    pub hits: u64,
}

/// Entries drained from the write queues, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainsRecord {
    /// The queue was at its watermark.
    pub watermark: u64,
    /// A release, a kernel's end, or a page change.
    pub release: u64,
    /// A load that matched some bytes in the entry.
    pub load: u64,
    /// An atomic to the line.
    pub atomic: u64,
}

/// Publication statistics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublicationRecord {
    /// Stores to pages with several subscribers.
    pub stores: u64,
    /// Stores among them that matched an entry in the write queue.
    pub queue_hits: u64,
    /// Atomics to such pages.
    pub atomics: u64,
    /// Lines sent, counted once per subscriber.
    pub published_lines: u64,
    /// Bytes sent for lines and atomics, headers included.
    pub published_bytes: u64,
    /// Published bytes that no SM at the subscriber loaded before the next publication, or at all.
    pub useless_bytes: u64,
    /// Bytes in published lines that no store had written: lines are sent as a whole.
    pub unwritten_bytes: u64,
    /// Lines sent repeatedly since the last release.
    pub republished_lines: u64,
    /// Entries drained from the queues.
    pub drains: DrainsRecord,
    /// TLBs for subscribers.
    pub tlb: SubscriberTlbRecord,
    /// Loads served from the write queue in a GPU without a replica.
    pub forwards: u64,
    /// Loads served by a subscriber.
    pub remote_loads: u64,
    /// Pages reduced to a single copy by a store at `.sys` scope.
    pub collapses: u64,
    /// Page counts by number of holding GPUs at the end of the run.
    pub subscribers: BTreeMap<String, u64>,
}

impl PublicationRecord {
    /// Sums the counters from modules and driver; `None` if no module publishes.
    pub(crate) fn new(
        machine: &MachineConfig,
        modules: &[&dyn ModuleCounters],
        driver: &Driver,
    ) -> Option<PublicationRecord> {
        let grain = machine.line.grain();
        let publishers: Vec<PublicationCounters> =
            modules.iter().filter_map(|module| module.publication(grain)).collect();
        if publishers.is_empty() {
            return None;
        }
        let (mut sum, mut tlb, mut useless) = (PublicationStats::default(), SubscriberTlbRecord::default(), 0);
        for publisher in &publishers {
            sum.merge(&publisher.stats);
            let stats = publisher.tlb;
            tlb.accesses += stats.hits + stats.joins + stats.misses;
            tlb.hits += stats.hits + stats.joins;
            useless += publisher.useless_bytes;
        }
        let drained = |cause: DrainCause| sum.drains[cause as usize];
        let pages = driver.holders();
        let held = (1..).zip(&pages[1..]).filter(|(_, pages)| **pages > 0);
        Some(PublicationRecord {
            stores: sum.stores,
            queue_hits: sum.queue_hits,
            atomics: sum.atomics,
            published_lines: sum.published_lines,
            published_bytes: sum.published_bytes,
            useless_bytes: useless,
            unwritten_bytes: sum.unwritten_bytes,
            republished_lines: sum.republished_lines,
            drains: DrainsRecord {
                watermark: drained(DrainCause::Watermark),
                release: drained(DrainCause::Release),
                load: drained(DrainCause::Load),
                atomic: drained(DrainCause::Atomic),
            },
            tlb,
            forwards: sum.forwards,
            remote_loads: sum.remote_loads,
            collapses: driver.stats.collapses,
            subscribers: held.map(|(count, pages): (u32, _)| (count.to_string(), *pages)).collect(),
        })
    }
}
