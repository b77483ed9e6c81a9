//! Operations at kernel boundaries.

use serde::{Deserialize, Serialize};

metrics! {
    /// Boundary operations in a run, summed over modules.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ElisionRecord {
        /// Kind of kernel labels; `none` if no table reads labels.
        labels: String;
        /// Extent of an operation.
        operations: String;
        /// Knowledge that the table keeps; `none` without a table.
        table: String;
        boundaries: u64 = "kernel boundaries", "", "Launches, and the end of the program.";
        flushes: u64 = "flushes at boundaries", "", "Flushes of a module's L2 at kernel boundaries, for the host and at the end included.";
        invalidations: u64 = "invalidations at boundaries", "", "Invalidations of a module's L2 at kernel boundaries.";
        elided_flushes: u64 = "flushes elided", "", "Flushes fewer than one of each module at each boundary.";
        elided_invalidations: u64 = "invalidations elided", "", "Invalidations fewer than one of each module at each launch.";
        /// Null if a kernel touches lines outside every array.
        needed_flushes: Option<u64> = "flushes needed", "", "Flushes at kernel boundaries that an oracle would have done.";
        /// Null in the same case.
        needed_invalidations: Option<u64> = "invalidations needed", "", "Invalidations at kernel boundaries that an oracle would have done.";
        /// Null in the same case.
        elidable_flushes: Option<u64> = "flushes that an oracle elides", "", "Flushes that an oracle elides, likewise.";
        /// Null in the same case.
        elidable_invalidations: Option<u64> = "invalidations that an oracle elides", "", "Invalidations that an oracle elides, likewise.";
        flushed_lines: u64 = "lines flushed at boundaries", "lines", "Dirty lines that kernel boundaries wrote to memory.";
        dropped_lines: u64 = "lines dropped at boundaries", "lines", "Lines that kernel boundaries dropped from L2 caches.";
        rows_peak: u64 = "rows of the chiplet table", "", "Rows of the command processor's table in use at most.";
    }
}
