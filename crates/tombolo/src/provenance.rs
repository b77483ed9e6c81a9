//! Program and host behind a result. The provenance is stored in every document next to the result, but is excluded
//! from digests and from the keys of stored results.

use crate::output::command_line;
use crate::version::{COMMIT, COMMIT_DATE, VERSION};
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};
use tombolo_experiment::MODEL_VERSION;
use tombolo_experiment::workload::WorkloadChoice;
use tombolo_report::document::Provenance;

/// A result with its provenance.
#[derive(Serialize)]
pub(crate) struct WithProvenance<'a, T> {
    #[serde(flatten)]
    pub(crate) answer: &'a T,
    pub(crate) provenance: Provenance,
}

/// Returns the provenance for this program, command and host, at the current time.
pub(crate) fn provenance(threads: usize, seeds: &[u64]) -> Provenance {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Provenance {
        tombolo: VERSION.to_owned(),
        commit: COMMIT.to_owned(),
        commit_date: COMMIT_DATE.to_owned(),
        model: MODEL_VERSION.to_owned(),
        date: day(now / (24 * 60 * 60)),
        os: std::env::consts::OS.to_owned(),
        architecture: std::env::consts::ARCH.to_owned(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        threads,
        seeds: seeds.to_vec(),
        command: command_line(),
        experiments: Vec::new(),
    }
}

/// Returns the distinct seeds for generated inputs; traces have no seeds.
pub(crate) fn seeds(chosen: &[WorkloadChoice]) -> Vec<u64> {
    let generated = chosen.iter().filter(|choice| !choice.is_trace());
    let mut seeds: Vec<u64> = generated.map(|choice| choice.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    seeds
}

/// Formats the date `since_1970` days after 1970-01-01, for example `2026-11-25`. Source: H. Hinnant, chrono-Compatible
/// Low-Level Date Algorithms, `civil_from_days`: years begin in March, in eras with 400 years.
fn day(since_1970: u64) -> String {
    let days = since_1970 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let days = [0, 58, 59, 11_016, 11_017, 19_782, 20_782, 47_540];
        let expected = [
            "1970-01-01",
            "1970-02-28",
            "1970-03-01",
            "2000-02-29",
            "2000-03-01",
            "2024-02-29",
            "2026-11-25",
            "2100-02-28",
        ];
        assert_eq!(days.map(day), expected);
        assert_eq!(day(47_541), "2100-03-01", "no leap year");
    }
}
