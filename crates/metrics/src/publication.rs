//! Cost and traffic for publishing stores to subscribers.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

metrics! {
    /// Lookups in subscribers' TLBs.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct SubscriberTlbRecord {
        accesses: u64 = "lookups of subscribers", "", "Lookups in the TLBs of subscribers.";
        hits: u64 = "subscribers found", "", "Lookups that found the page, or its walk on the way.";
    }
}

metrics! {
    /// Entries drained from the write queues, by cause.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct DrainsRecord {
        watermark: u64 = "entries drained by the watermark", "", "Entries that left a write queue at its watermark.";
        release: u64 = "entries drained by releases", "", "Entries that left at a release, a kernel's end, or a change of their page.";
        load: u64 = "entries drained by loads", "", "Entries that left ahead of a load that found some of its bytes there.";
        atomic: u64 = "entries drained by atomics", "", "Entries that left ahead of an atomic of their line.";
    }
}

metrics! {
    /// Publication statistics.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct PublicationRecord {
        stores: u64 = "published stores", "", "Stores to pages with several subscribers.";
        queue_hits: u64 = "queue hits", "", "Published stores whose line was in the write queue.";
        atomics: u64 = "published atomics", "", "Atomics to pages with several subscribers.";
        published_lines: u64 = "lines published", "", "Lines sent to subscribers, once each.";
        published_bytes: u64 = "bytes published", "B", "Bytes of lines and atomics sent to subscribers, headers included.";
        useless_bytes: u64 = "bytes published in vain", "B", "Bytes published that no SM there loaded before they were published again, or at all.";
        unwritten_bytes: u64 = "bytes unwritten", "B", "Bytes of published lines that nobody had written.";
        republished_lines: u64 = "lines published again", "", "Lines sent that had been sent since the last release.";
        /// Entries drained from the queues.
        drains: DrainsRecord => [];
        /// TLBs for subscribers.
        tlb: SubscriberTlbRecord => [];
        forwards: u64 = "loads from the queue", "", "Loads of a GPU without a replica that its queue answered.";
        remote_loads: u64 = "loads of subscribers' replicas", "", "Loads of a GPU without a replica that went to a subscriber.";
        collapses: u64 = "pages collapsed", "", "Pages of which a store at .sys scope left one copy.";
        /// Page counts by number of holding GPUs at the end of the run.
        subscribers: BTreeMap<String, u64> => [
            "*", "pages by subscribers", "", "Pages that so many GPUs hold in the end.",
        ];
    }
}
