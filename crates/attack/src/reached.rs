//! Counters that a run has moved: which branches of the timing model a series has reached, and how often.

use std::collections::BTreeMap;
use tombolo_metrics::{BlocksRecord, PagingRecord, PublicationRecord, RunRecord};

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
/// Counters of blocks of host memory.
const BLOCKS: [Counter<BlocksRecord>; 4] = [
    ("from_peers", |of| of.from_peers),
    ("evicted", |of| of.evicted),
    ("merged", |of| of.merged),
    ("home_waits", |of| of.home_waits),
];

/// Paths of the counters that are above zero in `record`.
pub(crate) fn moved(record: &RunRecord) -> Vec<String> {
    [
        above_zero("coherence", record.coherence.iter().map(|(name, count)| (&**name, *count))),
        above_zero("sm", record.sm.iter().map(|(name, count)| (&**name, *count))),
        listed("paging", record.paging.as_ref(), &PAGING),
        listed("publication", record.publication.as_ref(), &PUBLICATION),
        listed("blocks", record.blocks.as_ref(), &BLOCKS),
    ]
    .concat()
}

/// The `counters` of a section that are above zero; none if the record lacks the section.
fn listed<R>(section: &str, record: Option<&R>, counters: &[Counter<R>]) -> Vec<String> {
    record.map_or_else(Vec::new, |record| above_zero(section, counters.iter().map(|(name, of)| (*name, of(record)))))
}

fn above_zero<'a>(section: &str, counters: impl Iterator<Item = (&'a str, u64)>) -> Vec<String> {
    counters.filter(|(_, count)| *count > 0).map(|(name, _)| format!("{section}.{name}")).collect()
}
