//! Time intervals: kernels, and operations outside any kernel.

use tombolo_types::{LaunchDevices, Ps};

/// Interval in which a kernel was open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelTime {
    /// Kernel index.
    pub kernel: u32,
    /// Stream in the host program.
    pub stream: u32,
    /// GPUs or modules that ran the kernel.
    pub on: LaunchDevices,
    /// End time for the launch latency.
    pub start: Ps,
    /// End time of the release.
    pub end: Ps,
}

/// Interval spent in an operation outside any kernel: a copy between host and device memory, or boundary operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Start time.
    pub start: Ps,
    /// End time.
    pub end: Ps,
}

/// Returns the interval, or `None` if it is empty.
pub(super) fn time_range(start: Ps, end: Ps) -> Option<TimeRange> {
    (end > start).then_some(TimeRange { start, end })
}
