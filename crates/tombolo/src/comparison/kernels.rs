//! Kernels in comparison: launches with a common name are combined, with their time under each design.

use super::Launches;
use crate::table::{Cell, Table, count, seconds};
use std::collections::BTreeMap;

/// Maximum number of kernels shown for a workload. Source: a number that fits on a screen next to further tables.
const MOST: usize = 10;

/// Builds a table with the longest kernels of each workload, ranked by their time under the slowest design. Launches
/// that overlap in time are counted separately.
pub(super) fn table(all: &[Launches], designs: &[String]) -> Table {
    let heads = ["workload", "kernel", "launches"].into_iter().chain(designs.iter().map(String::as_str));
    let mut table = Table::new(2).with_headings(heads);
    let mut workloads: Vec<&str> = Vec::new();
    for one in all {
        if !workloads.contains(&one.workload.as_str()) {
            workloads.push(&one.workload);
        }
    }
    for workload in workloads {
        let sums = sums(all.iter().filter(|one| one.workload == workload), designs);
        let more = sums.len().saturating_sub(MOST);
        let mut name = workload;
        for (kernel, Sum { launches, seconds: times }) in sums.into_iter().take(MOST) {
            let labels = [std::mem::take(&mut name).to_owned(), kernel.to_owned(), count(launches)];
            let times = times.into_iter().map(|time| time.map_or("failed".to_owned(), seconds));
            table.row(labels.into_iter().chain(times).map(Cell::plain).collect());
        }
        if more > 0 {
            let labels = [String::new(), format!("and {more} more")];
            let blank = std::iter::repeat_n(String::new(), designs.len() + 1);
            table.row(labels.into_iter().chain(blank).map(Cell::plain).collect());
        }
    }
    table
}

/// Launches of a kernel name.
struct Sum {
    launches: u64,
    /// Seconds by design; `None` if the run gave no result.
    seconds: Vec<Option<f64>>,
}

/// Returns the sums by kernel name, longest first; equal times are ordered by name.
fn sums<'a>(runs: impl Iterator<Item = &'a Launches>, designs: &[String]) -> Vec<(&'a str, Sum)> {
    let mut all: BTreeMap<&str, Sum> = BTreeMap::new();
    for run in runs {
        let Some(design) = designs.iter().position(|design| *design == run.design) else { continue };
        let mut launches: BTreeMap<&str, u64> = BTreeMap::new();
        for kernel in &run.kernels {
            let sum =
                all.entry(&kernel.name).or_insert_with(|| Sum { launches: 0, seconds: vec![None; designs.len()] });
            *sum.seconds[design].get_or_insert(0.0) += kernel.end_s - kernel.start_s;
            *launches.entry(&kernel.name).or_default() += 1;
        }
        for (name, launches) in launches {
            all.entry(name).and_modify(|sum| sum.launches = sum.launches.max(launches));
        }
    }
    let longest = |sum: &Sum| sum.seconds.iter().flatten().copied().fold(0.0, f64::max);
    let mut sorted: Vec<_> = all.into_iter().collect();
    sorted.sort_by(|(_, a), (_, b)| longest(b).total_cmp(&longest(a)));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_system::record::KernelRecord;

    fn launches(design: &str, kernels: &[(&str, f64)]) -> Launches {
        let kernel = |(name, end_s): &(&str, f64)| KernelRecord {
            name: (*name).to_owned(),
            end_s: *end_s,
            ..KernelRecord::default()
        };
        Launches { workload: "w".into(), design: design.into(), kernels: kernels.iter().map(kernel).collect() }
    }

    #[test]
    fn launches_of_one_name_add_up_and_the_longest_come_first() {
        let all = [
            launches("a", &[("short", 1e-6), ("long", 2e-6), ("long", 3e-6)]),
            launches("b", &[("short", 1e-6), ("long", 4e-6), ("long", 4e-6)]),
        ];
        let designs = ["a".to_owned(), "b".to_owned()];
        let sums = sums(all.iter(), &designs);
        assert_eq!(sums.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["long", "short"]);
        assert_eq!((sums[0].1.launches, sums[0].1.seconds[1]), (2, Some(8e-6)));
    }
}
