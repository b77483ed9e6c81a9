//! Utilisation of resources inside modules: memory channels, L2 slices, crossbars.

use crate::counters::ModuleCounters;
pub use tombolo_metrics::{UtilizationRecord, UtilizationShares};
use tombolo_model::memory::DramStats;
use tombolo_types::Ps;

/// Shares for resources busy for the given times, in a run that ended at `end`.
fn shares(times: impl Iterator<Item = Ps>, end: Ps) -> UtilizationShares {
    let (count, sum, most) = times
        .fold((0_u64, 0, 0), |(count, sum, most), Ps(time)| (count + 1, sum + u128::from(time), u64::max(most, time)));
    let whole = end.0.max(1) as f64;
    UtilizationShares { mean: sum as f64 / (whole * count.max(1) as f64), highest: most as f64 / whole }
}

/// Shares over the resources in all modules, for a run that ended at `end`.
pub(crate) fn utilization(modules: &[BusyTimes], end: Ps) -> UtilizationRecord {
    let of_all = |of: fn(&BusyTimes) -> &Vec<Ps>| shares(modules.iter().flat_map(of).copied(), end);
    UtilizationRecord {
        dram_channels: of_all(|busy| &busy.channels),
        l2_slices: of_all(|busy| &busy.slices),
        crossbar_to_sms: of_all(|busy| &busy.to_sms),
        crossbar_from_sms: of_all(|busy| &busy.from_sms),
    }
}

/// Busy times for a module's resources, indexed by resource.
pub(crate) struct BusyTimes {
    module: String,
    channels: Vec<Ps>,
    slices: Vec<Ps>,
    to_sms: Vec<Ps>,
    from_sms: Vec<Ps>,
    dram: DramStats,
}

impl BusyTimes {
    /// Busy times for a module after the end of the run.
    pub(crate) fn of(module: &dyn ModuleCounters) -> BusyTimes {
        BusyTimes {
            module: module.id().to_string(),
            channels: module.memory().channels,
            slices: module.slices().iter().map(|slice| slice.busy).collect(),
            to_sms: module.busy_to_sms(),
            from_sms: module.sms().iter().map(|sm| sm.busy).collect(),
            dram: module.dram(),
        }
    }

    /// Each number by name, for the statistics digest.
    pub(crate) fn named(&self) -> impl Iterator<Item = (String, u64)> {
        let kinds = [
            ("channel", &self.channels),
            ("slice", &self.slices),
            ("to_sm", &self.to_sms),
            ("from_sm", &self.from_sms),
        ];
        let times = kinds.into_iter().flat_map(|(kind, times)| times.iter().enumerate().map(move |at| (kind, at)));
        let times = times.map(|(kind, (index, time))| (format!("{}.busy.{kind}{index}", self.module), time.0));
        let DramStats { row_hits, row_misses, row_conflicts, .. } = self.dram;
        let rows = [("row_hits", row_hits), ("row_misses", row_misses), ("row_conflicts", row_conflicts)];
        times.chain(rows.into_iter().map(|(name, count)| (format!("{}.{name}", self.module), count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistics_digest_knows_resources_by_these_names() {
        let one = || vec![Ps(1)];
        let dram = DramStats { row_hits: 2, row_misses: 3, row_conflicts: 4, ..DramStats::default() };
        let module = "module0".to_owned();
        let busy = BusyTimes { module, channels: one(), slices: one(), to_sms: one(), from_sms: one(), dram };
        let named: Vec<_> = busy.named().map(|(name, number)| format!("{name} {number}")).collect();
        let resources = ["channel0", "slice0", "to_sm0", "from_sm0"].map(|name| format!("module0.busy.{name} 1"));
        let rows = ["row_hits 2", "row_misses 3", "row_conflicts 4"].map(|row| format!("module0.{row}"));
        assert_eq!(named, [&resources[..], &rows[..]].concat());
    }

    #[test]
    fn shares_are_of_the_time_of_the_run() {
        let shares = |times: &[u64], end| super::shares(times.iter().copied().map(Ps), Ps(end));
        assert_eq!(shares(&[10, 30, 20], 100), UtilizationShares { mean: 0.2, highest: 0.3 });
        assert_eq!(shares(&[], 100), UtilizationShares::default());
        assert_eq!(shares(&[0], 0), UtilizationShares::default());
    }
}
