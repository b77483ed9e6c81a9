//! Observations: load `latency` by leg, `stall` times, `activity` over time, line values for a checker
//! (`value_probe`), and counters (`stats`).

pub(crate) mod activity;
pub(crate) mod latency;
pub(crate) mod stall;
pub(crate) mod stats;
pub(crate) mod timeline;
pub(crate) mod unloaded_latency;
pub(crate) mod value_probe;

pub use activity::{Activity, Sample};
pub use latency::{Latencies, LoadServer, Loads, NoteValue, StoredNote};
pub use stall::{QUEUED, Queue, Stall, StallTimes};
pub use stats::{ComponentMark, Digest, L2Stats, SmStats};
pub use timeline::LinkTimeline;
pub use unloaded_latency::UnloadedLatencies;
pub use value_probe::{Contents, ValueProbe, WarpSlot};
