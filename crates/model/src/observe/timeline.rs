//! Activity on a link direction over time: bytes per window, and lane counts. Recorded only in runs with a timeline.

use tombolo_types::{Bytes, Ps};

/// Activity on a link direction over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkTimeline {
    window: Ps,
    bytes: Vec<u64>,
    lanes: Vec<(Ps, u32)>,
}

impl LinkTimeline {
    /// Timeline for a direction with `lanes` lanes, in windows of length `window`, which must be above zero.
    pub(crate) fn new(window: Ps, lanes: u32) -> LinkTimeline {
        assert!(window > Ps::ZERO, "a timeline has windows of some length");
        LinkTimeline { window, bytes: Vec::new(), lanes: vec![(Ps::ZERO, lanes)] }
    }

    /// Records a packet whose last byte leaves at `at`. The whole packet counts in the window with this time.
    pub(crate) fn sent(&mut self, at: Ps, bytes: Bytes) {
        let index = (at.0 / self.window.0) as usize;
        if self.bytes.len() <= index {
            self.bytes.resize(index + 1, 0);
        }
        self.bytes[index] += bytes.0;
    }

    /// Sets the lane count from `at` on. Calls must be in time order.
    pub(crate) fn set_lanes(&mut self, at: Ps, lanes: u32) {
        if self.lanes.last().is_none_or(|(_, before)| *before != lanes) {
            self.lanes.push((at, lanes));
        }
    }

    /// Bytes sent per window from time zero; the list ends with the last window that has any.
    pub fn bytes(&self) -> &[u64] {
        &self.bytes
    }

    /// Lane counts, each with a start time.
    pub fn lanes(&self) -> &[(Ps, u32)] {
        &self.lanes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_in_the_window_of_their_end() {
        let mut timeline = LinkTimeline::new(Ps(100), 8);
        timeline.sent(Ps(99), Bytes(5));
        timeline.sent(Ps(300), Bytes(7));
        timeline.sent(Ps(100), Bytes(1));
        assert_eq!(timeline.bytes(), [5, 1, 0, 7]);
    }

    #[test]
    fn lanes_are_kept_where_they_change() {
        let mut timeline = LinkTimeline::new(Ps(100), 8);
        [(10, 8), (20, 7), (30, 7), (40, 8)].into_iter().for_each(|(at, lanes)| timeline.set_lanes(Ps(at), lanes));
        assert_eq!(timeline.lanes(), [(Ps(0), 8), (Ps(20), 7), (Ps(40), 8)]);
    }
}
