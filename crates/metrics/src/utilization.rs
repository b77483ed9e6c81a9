//! Utilisation of resources inside modules: memory channels, L2 slices, crossbars.

use serde::{Deserialize, Serialize};

metrics! {
    /// Utilisation for one kind of resource, each share relative to the run's time.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "Shares")]
    pub struct UtilizationShares {
        mean: f64 = "{0}", "share of time", "Share of the simulated time that {2}: the mean of all.";
        /// Writes still draining from memory when the run ended may push the share above 1.
        highest: f64 = "{1}", "share of time", "Likewise, of the busiest.";
    }
}

metrics! {
    /// Utilisation of resources inside GPU modules. A host's resources are not included.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct UtilizationRecord {
        /// Memory channel buses, including turnarounds between reads and writes.
        dram_channels: UtilizationShares => ["memory channels in use", "busiest memory channel", "the bus of a memory channel was in use, turns included"];
        /// L2 slice ports: lookups, and bytes in and out.
        l2_slices: UtilizationShares => ["L2 slices in use", "busiest L2 slice", "the port of an L2 slice was in use, by lookups and bytes"];
        /// Crossbar ports from the slices to each SM.
        crossbar_to_sms: UtilizationShares => ["crossbars to SMs in use", "busiest crossbar to an SM", "the way of a crossbar to an SM was in use"];
        /// Crossbar ports from each SM to the slices: bytes for stores and atomics.
        crossbar_from_sms: UtilizationShares => ["crossbars from SMs in use", "busiest crossbar from an SM", "the way of a crossbar from an SM was in use, by bytes of stores and atomics"];
    }
}
