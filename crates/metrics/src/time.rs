//! Parts of a run's time.

use serde::{Deserialize, Serialize};

metrics! {
    /// A run's time in seconds: four parts that add up to the whole, the region, and the time with CTAs.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct TimeRecord {
        kernels_s: f64 = "time of kernels", "s", "Time while a kernel was open: from the end of its launch latency to the end of its release.";
        copies_s: f64 = "time of copies", "s", "Of the rest, time while a copy between host and device memory ran.";
        host_s: f64 = "time of the host program", "s", "Of the rest, time while the host program worked on memory.";
        launches_s: f64 = "time of launches", "s", "The rest of the time: launch latencies.";
        region_s: f64 = "time of the region", "s", "Time from the first kernel's opening to the last one's end, with the gaps and the copies between.";
        #[serde(default)]
        ctas_s: f64 = "time with CTAs", "s", "Time in which CTAs were present: for each kernel, from the start of its first CTA to the end of its last.";
        #[serde(default)]
        drained_s: f64 = "time with CTAs or their stores", "s", "Time from the arrival of a kernel's launch to the end of its last CTA and of the stores of its CTAs.";
        whole_s: f64 = "simulated time", "s", "Time from the start of the program to the end of its last command.";
    }
}

impl TimeRecord {
    /// Adds `kernels_s` seconds in kernels and `launches_s` seconds in launches that were not simulated.
    pub fn with(self, kernels_s: f64, launches_s: f64) -> TimeRecord {
        TimeRecord {
            kernels_s: self.kernels_s + kernels_s,
            launches_s: self.launches_s + launches_s,
            region_s: self.region_s + kernels_s + launches_s,
            ctas_s: self.ctas_s + kernels_s,
            drained_s: self.drained_s + kernels_s,
            whole_s: self.whole_s + kernels_s + launches_s,
            ..self
        }
    }

    /// The time selected by `choice`.
    pub fn of(&self, choice: TimeChoice) -> f64 {
        match choice {
            TimeChoice::Region => self.region_s,
            TimeChoice::Kernels => self.kernels_s,
            TimeChoice::Ctas => self.ctas_s,
            TimeChoice::Drained => self.drained_s,
            TimeChoice::Whole => self.whole_s,
        }
    }
}

/// The time by which tables and figures compare runs, chosen by the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeChoice {
    /// From the first kernel's start to the last kernel's end.
    #[default]
    #[serde(rename = "region")]
    Region,
    /// While a kernel was open.
    #[serde(rename = "kernels")]
    Kernels,
    /// While CTAs were present, from a kernel's first to its last.
    #[serde(rename = "ctas")]
    Ctas,
    /// While CTAs were present or their stores were under way.
    #[serde(rename = "drained")]
    Drained,
    /// From the program's start to the last command's end.
    #[serde(rename = "whole")]
    Whole,
}

impl TimeChoice {
    /// Every choice, in the order of the enum.
    pub const ALL: [TimeChoice; 5] =
        [TimeChoice::Region, TimeChoice::Kernels, TimeChoice::Ctas, TimeChoice::Drained, TimeChoice::Whole];

    /// The choice's keyword.
    pub fn word(self) -> &'static str {
        match self {
            TimeChoice::Region => "region",
            TimeChoice::Kernels => "kernels",
            TimeChoice::Ctas => "ctas",
            TimeChoice::Drained => "drained",
            TimeChoice::Whole => "whole",
        }
    }

    /// The choice's path in a record.
    pub fn path(self) -> &'static str {
        match self {
            TimeChoice::Region => "time.region_s",
            TimeChoice::Kernels => "time.kernels_s",
            TimeChoice::Ctas => "time.ctas_s",
            TimeChoice::Drained => "time.drained_s",
            TimeChoice::Whole => "time.whole_s",
        }
    }

    /// Description for the title of a table or a figure.
    pub fn title(self) -> &'static str {
        match self {
            TimeChoice::Region => "of the region from the first kernel to the end of the last",
            TimeChoice::Kernels => "of the kernels alone",
            TimeChoice::Ctas => "with CTAs present",
            TimeChoice::Drained => "with CTAs present, or their stores under way",
            TimeChoice::Whole => "of the whole program",
        }
    }
}

impl std::fmt::Display for TimeChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_has_the_path_of_its_value() {
        let record = TimeRecord {
            region_s: 1.0,
            kernels_s: 2.0,
            ctas_s: 4.0,
            drained_s: 5.0,
            whole_s: 3.0,
            ..TimeRecord::default()
        };
        let value = serde_json::json!({ "time": record });
        for choice in TimeChoice::ALL {
            let at = value.pointer(&format!("/{}", choice.path().replace('.', "/")));
            assert_eq!(at.and_then(serde_json::Value::as_f64), Some(record.of(choice)), "{choice}");
        }
    }
}
