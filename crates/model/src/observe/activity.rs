//! Activity of a module over time: counters at the end of each window, and the times at which kernels begin and end.
//! Recorded only in runs that ask for a timeline.
//!
//! Counters are read at the first event after a window's end, before the event is handled: they include everything up
//! to the end, and nothing later. A timeline therefore needs no events and changes none.

use tombolo_types::Ps;

/// A module's state at one moment. Counts start at the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Time of the sample.
    pub at: Ps,
    /// Warps that have not ended, in all SMs of the module.
    pub warps: u32,
    /// Misses in flight from the module's L1s.
    pub misses: u32,
    /// Loads looked up in the module's L2, local and remote, in line transactions.
    pub l2_loads: u64,
    /// L2 hits among these loads.
    pub l2_hits: u64,
    /// Bytes read and written by the module's memory, in whole bursts.
    pub dram_bytes: u64,
    /// Bytes sent to other modules, including headers.
    pub sent_bytes: u64,
}

/// Time series with a module's samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    window: Ps,
    /// End of the current window.
    end: Ps,
    /// Time at which a kernel has begun or ended since the last sample.
    marked: Option<Ps>,
    samples: Vec<Sample>,
}

impl Activity {
    /// Activity for an idle module, in windows with the length `window`, which must be above zero.
    pub(crate) fn new(window: Ps) -> Activity {
        assert!(window > Ps::ZERO, "a timeline has windows of some length");
        Activity { window, end: window, marked: None, samples: vec![Sample::default()] }
    }

    /// Notes that a kernel begins or ends at `now`. The event at `now` changes no counter, so the next event takes a
    /// sample first.
    pub(crate) fn mark(&mut self, now: Ps) {
        self.marked = Some(now);
    }

    /// Earliest time whose event must be preceded by [`Activity::take`].
    pub(crate) fn due(&self) -> Ps {
        if self.marked.is_some() { Ps::ZERO } else { self.end }
    }

    /// Records the module's state before an event at `now`. The time stored in `state` is ignored.
    pub(crate) fn take(&mut self, now: Ps, state: Sample) {
        // No event has run since the one that set the mark either, so `state` still describes its time.
        if let Some(at) = self.marked.take() {
            self.push(Sample { at, ..state });
        }
        if now >= self.end {
            // No event has run since the window's end, so `state` describes the end.
            self.push(Sample { at: self.end, ..state });
            let windows = now.0 / self.window.0;
            self.push(Sample { at: Ps(windows * self.window.0), ..state });
            self.end = Ps((windows + 1) * self.window.0);
        }
    }

    fn push(&mut self, sample: Sample) {
        if self.samples.last().is_none_or(|last| last.at < sample.at) {
            self.samples.push(sample);
        }
    }

    /// Samples in order of time, the first at zero.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(dram_bytes: u64) -> Sample {
        Sample { dram_bytes, ..Sample::default() }
    }

    fn taken(activity: &Activity) -> Vec<(u64, u64)> {
        activity.samples().iter().map(|sample| (sample.at.0, sample.dram_bytes)).collect()
    }

    #[test]
    fn what_happened_in_a_window_is_at_its_end_however_late_the_next_event_comes() {
        let mut activity = Activity::new(Ps(100));
        assert_eq!(activity.due(), Ps(100));
        activity.take(Ps(130), state(7));
        assert_eq!(activity.due(), Ps(200));
        activity.take(Ps(555), state(9));
        assert_eq!(taken(&activity), [(0, 0), (100, 7), (200, 9), (500, 9)]);
        assert_eq!(activity.due(), Ps(600));
    }

    #[test]
    fn where_a_kernel_begins_there_is_a_sample() {
        let mut activity = Activity::new(Ps(100));
        activity.mark(Ps(20));
        assert_eq!(activity.due(), Ps::ZERO);
        activity.take(Ps(30), state(7));
        assert_eq!((taken(&activity), activity.due()), (vec![(0, 0), (20, 7)], Ps(100)));
    }
}
