//! Sampling details for a run.

use serde::{Deserialize, Serialize};

metrics! {
    /// Sampling details for a run.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct SamplingRecord {
        launches: u64 = "launches of the program", "", "Launches of the program of which a sample was asked for.";
        launches_run: u64 = "launches run", "", "Of the launches, those that were simulated.";
        launches_counted: u64 = "launches counted", "", "Of the launches run, those that the time is from; the others warm caches.";
        error_s: f64 = "error of the sample", "s", "How far each time may be off, either way, with 95 % confidence; 0 of a program that ran whole.";
        warm_up_s: f64 = "error of warm-ups", "s", "Of the error of the sample, what warm-ups may be off by.";
        /// Reason for running the program whole; absent if it was sampled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<String>;
    }
}
