//! Cost and traffic for publishing stores to subscribers.

use crate::counters::{ModuleCounters, PublicationCounters};
use tombolo_machine::MachineConfig;
pub use tombolo_metrics::{DrainsRecord, PublicationRecord, SubscriberTlbRecord};
use tombolo_model::front_end::Driver;
use tombolo_model::l2::{DrainCause, PublicationStats};

/// Sums the counters from modules and driver; `None` if no module publishes.
pub(crate) fn publication(
    machine: &MachineConfig,
    modules: &[&dyn ModuleCounters],
    driver: &Driver,
) -> Option<PublicationRecord> {
    let grain = machine.line.grain();
    let publishers: Vec<PublicationCounters> = modules.iter().filter_map(|module| module.publication(grain)).collect();
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
