//! What publishing stores to subscribers took.

use crate::counters::{ModuleCounters, PublicationCounters};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tombolo_machine::MachineConfig;
use tombolo_model::driver::Driver;
use tombolo_model::publisher::{Drained, PublicationStats};

/// Lookups in the TLBs of subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriberTlbRecord {
    /// All, one an entry or an atomic that is sent.
    pub accesses: u64,
    /// Of these, found, or on their way by another's walk.
    pub hits: u64,
}

/// Entries that left the write queues, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainsRecord {
    /// The queue was at its watermark.
    pub watermark: u64,
    /// A release, a kernel's end, a page that changed.
    pub release: u64,
    /// A load that found some of its bytes there.
    pub load: u64,
    /// An atomic of the line.
    pub atomic: u64,
}

/// What was published.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublicationRecord {
    /// Stores to pages with several subscribers.
    pub stores: u64,
    /// Of these, stores whose line was in the write queue.
    pub queue_hits: u64,
    /// Atomics to such pages.
    pub atomics: u64,
    /// Lines sent, once a subscriber.
    pub published_lines: u64,
    /// Bytes of lines and atomics sent, headers included.
    pub published_bytes: u64,
    /// Bytes published that no SM there loaded before they were published again, or at all.
    pub useless_bytes: u64,
    /// Bytes of published lines that nobody had written: lines cross as a whole.
    pub unwritten_bytes: u64,
    /// Lines sent that had been sent since the last release.
    pub republished_lines: u64,
    /// Entries that left the queues.
    pub drains: DrainsRecord,
    /// TLBs of subscribers.
    pub tlb: SubscriberTlbRecord,
    /// Loads of a GPU without a replica that its queue answered.
    pub forwards: u64,
    /// Those that went to a subscriber.
    pub remote_loads: u64,
    /// Pages of which a store at `.sys` scope left one copy.
    pub collapses: u64,
    /// Pages by how many GPUs hold them in the end.
    pub subscribers: BTreeMap<String, u64>,
}

impl PublicationRecord {
    /// What modules and the driver have counted; `None` where nobody publishes.
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
        let drained = |cause: Drained| sum.drains[cause as usize];
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
                watermark: drained(Drained::Watermark),
                release: drained(Drained::Release),
                load: drained(Drained::Load),
                atomic: drained(Drained::Atomic),
            },
            tlb,
            forwards: sum.forwards,
            remote_loads: sum.remote_loads,
            collapses: driver.stats.collapses,
            subscribers: held.map(|(count, pages): (u32, _)| (count.to_string(), *pages)).collect(),
        })
    }
}
