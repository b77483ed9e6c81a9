//! When kernels were open, and when something ran outside any.

use tombolo_types::{On, Ps};

/// When one kernel was open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelTime {
    /// Index of the kernel.
    pub kernel: u32,
    /// Stream of the host program.
    pub stream: u32,
    /// Where it ran.
    pub on: On,
    /// End of its launch latency.
    pub start: Ps,
    /// End of its release.
    pub end: Ps,
}

/// When something ran outside any kernel: a copy between host and device memory, or operations of a boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Its start.
    pub start: Ps,
    /// Its end.
    pub end: Ps,
}

/// A wait, where there was one.
pub(super) fn stretch(start: Ps, end: Ps) -> Option<Stretch> {
    (end > start).then_some(Stretch { start, end })
}
