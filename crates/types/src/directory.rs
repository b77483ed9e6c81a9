//! Options of a coherence directory.

use crate::choice;

choice! {
    /// The effect of a store on an L2 without a copy, and on a directory without an entry.
    pub enum StoreAllocation: Default {
        /// The bytes stay in each L2 on the path, and homes record the sender: HMG, Table I, read literally.
        Literal = "literal",
        /// The bytes stay at the system home only, and homes record no sender: only readers are sharers.
        SharersOnly = "sharers-only",
    }
}

choice! {
    /// The regions that have entries in a home's directory.
    pub enum Tracks: Default {
        /// Regions shared by another module or GPU: HMG, Table I.
        Shared = "shared",
        /// Additionally, regions with a line in the home's own L2, installed by any requester. A replaced entry
        /// evicts these lines along with it; dirty lines are written to memory. This is a reading of CPElide's HMG,
        /// which gives the number of lines per entry but not the lines.
        All = "all",
    }
}
