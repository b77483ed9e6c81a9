//! Module activity over time, shown as counters per GPU.

use super::{ModuleTrack, Timeline, TraceEvent, changes};
use crate::record::KernelRecord;
use std::collections::BTreeSet;
use tombolo_model::observe::Sample;
use tombolo_types::{GpuId, Ps};

impl ModuleTrack {
    /// The module's state at `at`: equal to the preceding sample, because nothing has happened since.
    fn before(&self, at: Ps) -> Sample {
        let next = self.samples.partition_point(|sample| sample.at <= at);
        next.checked_sub(1).map_or_else(Sample::default, |index| self.samples[index])
    }

    /// The module's state at `at` or soon after: equal to the next sample, because nothing happened in between.
    fn after(&self, at: Ps) -> Sample {
        let next = self.samples.partition_point(|sample| sample.at < at);
        self.samples.get(next).or(self.samples.last()).copied().unwrap_or_default()
    }
}

/// Sum of two samples, field by field, with the first sample's time.
fn and(sum: Sample, other: Sample) -> Sample {
    Sample {
        at: sum.at,
        warps: sum.warps + other.warps,
        misses: sum.misses + other.misses,
        l2_loads: sum.l2_loads + other.l2_loads,
        l2_hits: sum.l2_hits + other.l2_hits,
        dram_bytes: sum.dram_bytes + other.dram_bytes,
        sent_bytes: sum.sent_bytes + other.sent_bytes,
    }
}

/// Difference from `before` to `after` for counts; current levels are copied from `after`.
fn between(before: Sample, after: Sample) -> Sample {
    Sample {
        l2_loads: after.l2_loads - before.l2_loads,
        l2_hits: after.l2_hits - before.l2_hits,
        dram_bytes: after.dram_bytes - before.dram_bytes,
        sent_bytes: after.sent_bytes - before.sent_bytes,
        ..after
    }
}

impl Timeline {
    /// Activity of a GPU's modules while a kernel was open, summed over the modules.
    pub(super) fn moved(&self, gpu: GpuId, kernel: &KernelRecord) -> Sample {
        let at = |seconds: f64| Ps((seconds * 1e12).round() as u64);
        let (start, end) = (at(kernel.start_s), at(kernel.end_s));
        let modules = self.modules.iter().filter(|module| module.gpu == gpu);
        modules.map(|module| between(module.before(start), module.after(end))).fold(Sample::default(), and)
    }

    /// Counters for each GPU, and for its modules' links.
    pub(super) fn activity(&self, pid: u32) -> Vec<TraceEvent> {
        let mut events = Vec::new();
        let gpus: BTreeSet<GpuId> = self.modules.iter().map(|module| module.gpu).collect();
        for gpu in gpus {
            let modules: Vec<&ModuleTrack> = self.modules.iter().filter(|module| module.gpu == gpu).collect();
            let windows = self.windows(&modules);
            let mut add = |name: &str, what, value: &dyn Fn(&Sample) -> f64| {
                let values = windows.iter().map(|(since, window)| (*since, value(window)));
                events.extend(changes(pid, &format!("{gpu} {name}"), what, values));
            };
            let seconds = self.window.seconds();
            add("DRAM", "GB/s", &|window| window.dram_bytes as f64 / seconds / 1e9);
            add("L2 loads", "per us", &|window| window.l2_loads as f64 / seconds / 1e6);
            add("L2 hits", "%", &|window| match window.l2_loads {
                0 => 0.0,
                loads => 100.0 * window.l2_hits as f64 / loads as f64,
            });
            add("warps", "resident", &|window| f64::from(window.warps));
            add("L1 misses", "outstanding", &|window| f64::from(window.misses));
        }
        let Some(rate) = self.module_rate.filter(|rate| !rate.is_infinite()) else { return events };
        let most = rate.0 as f64 * self.window.seconds();
        for module in &self.modules {
            let windows = self.windows(&[module]);
            let values = windows.iter().map(|(since, window)| (*since, window.sent_bytes as f64 / most));
            events.extend(changes(pid, &format!("{}.out utilization", module.module), "utilization", values));
        }
        events
    }

    /// Activity in each window, by window start, followed by an idle window. Current levels are sampled at a window's
    /// end.
    fn windows(&self, modules: &[&ModuleTrack]) -> Vec<(Ps, Sample)> {
        let end = modules.iter().filter_map(|module| module.samples.last()).map(|sample| sample.at).max();
        let count = end.unwrap_or(Ps::ZERO).0.div_ceil(self.window.0);
        let at = |window: u64| {
            let time = Ps(window * self.window.0);
            modules.iter().map(|module| module.before(time)).fold(Sample::default(), and)
        };
        let mut before = at(0);
        let window = |index: u64| {
            let after = at(index + 1);
            let did = between(std::mem::replace(&mut before, after), after);
            (Ps(index * self.window.0), did)
        };
        let mut windows: Vec<_> = (0..count).map(window).collect();
        windows.push((Ps(count * self.window.0), Sample::default()));
        windows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::ModuleId;

    fn track(gpu: u8, samples: &[(u64, u32, u64)]) -> ModuleTrack {
        let sample =
            |&(at, warps, dram_bytes): &(u64, u32, u64)| Sample { at: Ps(at), warps, dram_bytes, ..Sample::default() };
        ModuleTrack { module: ModuleId(gpu), gpu: GpuId(gpu), samples: samples.iter().map(sample).collect() }
    }

    #[test]
    fn windows_add_up_to_what_the_modules_did() {
        let modules = vec![
            track(0, &[(0, 0, 0), (100, 4, 10), (130, 4, 12), (200, 2, 30), (250, 0, 31)]),
            track(0, &[(0, 0, 0), (200, 1, 5), (250, 0, 5)]),
        ];
        let timeline = Timeline {
            window: Ps(100),
            tracks: Vec::new(),
            modules,
            module_rate: None,
            kernels: Vec::new(),
            ways: Vec::new(),
        };
        let both: Vec<&ModuleTrack> = timeline.modules.iter().collect();
        let told: Vec<_> = timeline.windows(&both).iter().map(|(at, did)| (at.0, did.warps, did.dram_bytes)).collect();
        assert_eq!(told, [(0, 4, 10), (100, 3, 25), (200, 0, 1), (300, 0, 0)]);
        let kernel = KernelRecord { start_s: 100e-12, end_s: 201e-12, ..KernelRecord::default() };
        assert_eq!(timeline.moved(GpuId(0), &kernel).dram_bytes, 21 + 5);
    }
}
