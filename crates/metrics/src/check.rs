//! Result of a checked run.

use serde::Serialize;

/// A load that returned a forbidden value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Violation {
    /// Time when the load returned, in picoseconds.
    pub time_ps: u64,
    /// Issuing warp, for example `module3 sm1 warp 17`.
    pub by: String,
    /// Kernel, counted from 0 in launch order.
    pub launch: u32,
    /// First byte's address in the program's address space.
    pub address: u64,
    /// The violated rule.
    pub kind: ViolationKind,
    /// The returned store, and the reason for the violation.
    pub why: String,
}

/// The rule violated by a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ViolationKind {
    /// The load returned data overwritten before the load.
    #[serde(rename = "old")]
    Old,
    /// The load returned a store that happens after it, or a store never issued.
    #[serde(rename = "future")]
    Future,
    /// The load returned a store to different bytes.
    #[serde(rename = "misplaced")]
    Misplaced,
    /// A poll passed on its flag and returned bytes older than the store that sets the flag.
    #[serde(rename = "early-flag")]
    EarlyFlag,
}

/// Result of a checked run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Line transactions by loads with a checked result.
    pub loads: u64,
    /// Line transactions by stores and atomics that were numbered.
    pub stores: u64,
    /// Loads that returned a forbidden value.
    pub violations: u64,
    /// The first violations by time.
    pub first: Vec<Violation>,
    /// All violations grouped by launch, module and array, sorted in this order: the first hundred groups.
    pub places: Vec<ViolationSite>,
}

/// Wrong loads from an array by a single module in a single launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ViolationSite {
    /// Array name; null for addresses outside every array.
    pub array: Option<String>,
    /// The loading module, for example `module3`.
    pub module: String,
    /// Kernel, counted from 0 in launch order.
    pub launch: u32,
    /// Half-open byte range in the array that covers the first wrong byte in each load; without an array, addresses.
    pub bytes: [u64; 2],
    /// Number of wrong loads.
    pub violations: u64,
}
