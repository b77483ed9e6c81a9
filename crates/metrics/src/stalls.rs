//! Cycle accounting for a run's warp slots: every cycle is in exactly one class, and whole cycles add up.

use crate::table::{Metric, Metrics, Prefix};
use serde::{Deserialize, Serialize};

metrics! {
    /// Cycles within a class that were spent in queues. The class already includes them.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct QueueRecord: Sum {
        link: u64 = "queues of links, {0}", "cycles", "Of the cycles of `stalls.{1}`, those spent in queues of links between modules.";
        slice: u64 = "queues of slices, {0}", "cycles", "Of the cycles of `stalls.{1}`, those spent in queues of L2 slices.";
        dram: u64 = "queues of memory, {0}", "cycles", "Of the cycles of `stalls.{1}`, those spent in queues of memory.";
    }
}

metrics! {
    /// Cycles spent in queues, for the classes that can have any: stalls on loads served outside the SM.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct QueuedRecord: Sum {
        /// Queueing within class `own_l2`.
        own_l2: QueueRecord => ["waits for its module", "own_l2"];
        /// Queueing within class `module`.
        module: QueueRecord => ["waits for other modules", "module"];
        /// Queueing within class `gpu`.
        gpu: QueueRecord => ["waits for other GPUs", "gpu"];
        /// Queueing within class `host`.
        host: QueueRecord => ["waits for the host", "host"];
    }
}

macro_rules! classes {
    ($( $field:ident = $label:literal, $about:literal; )+) => {
        metrics! {
            /// Warp slot cycles, by class.
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
            #[serde(default)]
            pub struct StallRecord: Sum {
                warp_slot_cycles: u64 = "warp-slot cycles", "cycles", "Cycles of the SM clock, once for each warp slot: the classes below add up to it.";
                $( $field: u64 = $label, "cycles", $about; )+
                /// Cycles spent in queues, by class; present if the run tracks load latencies.
                #[serde(skip_serializing_if = "Option::is_none")]
                queued: Option<QueuedRecord> => [];
            }
        }

        impl StallRecord {
            /// Every class with its name, in order.
            pub fn named(&self) -> [(&'static str, u64); 16] {
                [$( (stringify!($field), self.$field) ),+]
            }

            /// Record with the given cycles by class, in order, and their sum.
            pub fn of(cycles: [u64; 16]) -> StallRecord {
                let [$( $field ),+] = cycles;
                StallRecord { warp_slot_cycles: cycles.iter().sum(), $( $field, )+ queued: None }
            }
        }
    };
}

classes! {
    issue = "issue", "Of the warp-slot cycles, those in which a warp issued other than arithmetic, or was ready and waited for its sub-core.";
    arithmetic = "arithmetic", "Those in which a warp's arithmetic occupied its sub-core's pipelines.";
    scratchpad = "waits for the scratchpad", "Those in which a warp waited for the scratchpad.";
    l1 = "waits for the L1", "Those in which a warp waited for hits of the L1, or in its queue.";
    own_l2 = "waits for its module", "Those in which a warp waited for loads and atomics that the L2 or the memory of its own module answered, or for the room that one left.";
    module = "waits for other modules", "Likewise, where another module of its GPU answered.";
    gpu = "waits for other GPUs", "Likewise, where another GPU answered.";
    host = "waits for the host", "Likewise, where the host answered.";
    tlb = "waits for translations", "Those in which a warp waited for translations.";
    page = "waits for pages", "Those in which a warp waited for pages that its GPU was not to use so.";
    store_credit = "waits for store credits", "Those in which a warp waited for a store credit.";
    barrier = "waits at barriers", "Those in which a warp waited for the others of its CTA at a barrier.";
    acquire = "waits to acquire", "Those in which a warp waited for a flag, or for the operations of an acquire.";
    release = "waits to release", "Those in which a warp waited for its posted stores before a release, or for the operations of that.";
    kernel_boundary = "empty at boundaries", "Those without a warp while a kernel was open and no CTA of any ran: launches, and the operations at boundaries.";
    idle = "idle", "Those without a warp otherwise, or whose warp had ended.";
}

impl StallRecord {
    /// Share in all warp slot cycles, 0 to 1; 0 if there are none.
    pub fn share(&self, cycles: u64) -> f64 {
        cycles as f64 / self.warp_slot_cycles.max(1) as f64
    }
}

impl QueueRecord {
    /// Sum over all queues.
    pub fn sum(&self) -> u64 {
        self.link + self.slice + self.dram
    }
}

impl QueuedRecord {
    /// Every class with its name.
    pub fn named(&self) -> [(&'static str, QueueRecord); 4] {
        [("own_l2", self.own_l2), ("module", self.module), ("gpu", self.gpu), ("host", self.host)]
    }
}

/// Metrics of a device's part in the run's stalls. The first word is the device.
pub(crate) struct DeviceStalls;

impl Metrics for DeviceStalls {
    fn append(at: &Prefix, table: &mut Vec<Metric>) {
        let mut stalls = Vec::new();
        StallRecord::append(&Prefix::at("stalls"), &mut stalls);
        let device = at.words[0];
        let own = stalls.into_iter().map(|metric| {
            let (_, field) = metric.path.split_once('.').expect("a field of the stalls");
            let about = if field == "warp_slot_cycles" {
                metric.about.replace("warp slot", &format!("warp slot of the {device}"))
            } else {
                format!("Of the {device}'s warp-slot cycles, those that `{}` counts.", metric.path)
            };
            Metric { path: at.join(field), about, ..metric.clone() }
        });
        table.extend(own);
    }
}
