//! A run, split into its first iteration and the later ones.

use serde::{Deserialize, Serialize};

metrics! {
    /// The region of interest, split into two parts.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct IterationRecord {
        launches: u32 = "launches of the first iteration", "", "Launches before the first one that does what an earlier one did.";
        of: u32 = "launches of the program", "", "All launches of the program.";
        later: u32 = "iterations behind the first", "", "Complete iterations behind the first, of equally many launches.";
        first_s: f64 = "first iteration", "s", "From the first kernel's opening to that of the first launch behind the first iteration.";
        steady_s: f64 = "time behind the first iteration", "s", "The rest of the region.";
        last_s: f64 = "last iteration", "s", "From the opening of the last complete iteration's first kernel to the next iteration's, or to the region's end; 0 if only one iteration is complete.";
    }
}
