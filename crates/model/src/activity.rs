//! What a module did over time: its counters at the end of each window, and where kernels begin and end on it. Kept only
//! where a run is asked for it.
//!
//! Counters are read at the first event after a window's end, before it is handled: what happened before the end is in
//! them, and nothing since. So a timeline needs no event of its own, and changes none.

use tombolo_types::Ps;

/// A module at a moment. Counts are from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Ps,
    /// Warps that have not ended, in all its SMs.
    pub warps: u32,
    /// Misses of its L1s under way.
    pub misses: u32,
    /// Loads looked up in its L2, its own and others', in line transactions.
    pub l2_loads: u64,
    /// Of these, hits.
    pub l2_hits: u64,
    /// Bytes that its memory read and wrote, in whole bursts.
    pub dram_bytes: u64,
    /// Bytes that it sent to other modules, headers included.
    pub sent_bytes: u64,
}

/// The samples of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    window: Ps,
    /// End of the window that is open.
    end: Ps,
    /// When a kernel has begun or ended since the last sample.
    marked: Option<Ps>,
    samples: Vec<Sample>,
}

impl Activity {
    /// Of an idle module, in windows of `window`, above zero.
    pub fn new(window: Ps) -> Activity {
        assert!(window > Ps::ZERO, "a timeline has windows of some length");
        Activity { window, end: window, marked: None, samples: vec![Sample::default()] }
    }

    /// A kernel begins or ends at `now`, in an event that changes no counter: the next is to be preceded by a sample.
    pub(crate) fn mark(&mut self, now: Ps) {
        self.marked = Some(now);
    }

    /// The time from which on an event is to be preceded by [`Activity::take`].
    pub(crate) fn due(&self) -> Ps {
        if self.marked.is_some() { Ps::ZERO } else { self.end }
    }

    /// The module as it is before an event at `now`, whatever `state` says of the time.
    pub fn take(&mut self, now: Ps, state: Sample) {
        // Nothing has happened since the event that marked it, either.
        if let Some(at) = self.marked.take() {
            self.push(Sample { at, ..state });
        }
        if now >= self.end {
            // Nothing has happened since the end of the window.
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

    /// In order of time, the first at zero.
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
