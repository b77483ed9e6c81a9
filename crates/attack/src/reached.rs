//! Counters that a run has moved: which branches of the timing model a series has reached, and how often.

use std::collections::BTreeMap;
use tombolo_metrics::{PagingRecord, PublicationRecord, RunRecord};

/// Number of runs that have moved a counter, by the counter's path in the JSON of a run.
pub type Reached = BTreeMap<String, u64>;

/// A counter of a record: its name, and its value.
type Counter<R> = (&'static str, fn(&R) -> u64);

/// Counters of the driver that moves pages.
const PAGING: [Counter<PagingRecord>; 7] = [
    ("faults", |of| of.faults),
    ("batches", |of| of.batches),
    ("migrations", |of| of.migrations),
    ("prefetched_bytes", |of| of.prefetched_bytes),
    ("shootdowns", |of| of.shootdowns),
    ("evictions", |of| of.evictions),
    ("pins", |of| of.pins),
];
/// Counters of publishers.
const PUBLICATION: [Counter<PublicationRecord>; 11] = [
    ("stores", |of| of.stores),
    ("queue_hits", |of| of.queue_hits),
    ("atomics", |of| of.atomics),
    ("republished_lines", |of| of.republished_lines),
    ("drains.watermark", |of| of.drains.watermark),
    ("drains.release", |of| of.drains.release),
    ("drains.load", |of| of.drains.load),
    ("drains.atomic", |of| of.drains.atomic),
    ("forwards", |of| of.forwards),
    ("remote_loads", |of| of.remote_loads),
    ("collapses", |of| of.collapses),
];

/// Paths of the counters that are above zero in `record`.
pub(crate) fn moved(record: &RunRecord) -> Vec<String> {
    let listed = |section: &str, counters: &BTreeMap<String, u64>| {
        let above = counters.iter().filter(|(_, count)| **count > 0);
        above.map(|(name, _)| format!("{section}.{name}")).collect::<Vec<_>>()
    };
    let mut paths = [listed("coherence", &record.coherence), listed("sm", &record.sm)].concat();
    if let Some(paging) = &record.paging {
        paths.extend(PAGING.iter().filter(|(_, of)| of(paging) > 0).map(|(name, _)| format!("paging.{name}")));
    }
    if let Some(publication) = &record.publication {
        let above = PUBLICATION.iter().filter(|(_, of)| of(publication) > 0);
        paths.extend(above.map(|(name, _)| format!("publication.{name}")));
    }
    if let Some(blocks) = &record.blocks {
        let counters = [
            ("from_peers", blocks.from_peers),
            ("evicted", blocks.evicted),
            ("merged", blocks.merged),
            ("home_waits", blocks.home_waits),
        ];
        let above = counters.into_iter().filter(|(_, count)| *count > 0);
        paths.extend(above.map(|(name, _)| format!("blocks.{name}")));
    }
    paths
}
