//! A run's record, and its metrics. A counter is one declaration: field, type, label, unit and description.
//!
//! - [`RunRecord`]: the result of a run in the format that scripts read. It contains the other records.
//! - [`table()`], [`find`]: label, unit and description for every number in a record, by path.
//! - [`L2Stats`], [`SmStats`]: counters that the model increments.
//!
//! A new counter is a line in its record, and its increment. `declaration.rs` documents the macro.
//!
//! Not in this crate: conversion of the model's state to records (crate `system`).
//!
//! Read [`RunRecord`] next.

#[macro_use]
mod declaration;
mod caches;
mod check;
mod devices;
mod elision;
mod energy;
mod host;
mod iteration;
mod latency;
mod paging;
mod publication;
mod run;
mod sampling;
mod stalls;
mod stats;
mod table;
mod time;
mod utilization;

pub use caches::{DramRecord, L1Record, L2Record, LocalWaysRecord, MemoryCacheRecord, TrafficRecord, WaysRecord};
pub use check::{CheckReport, Violation, ViolationKind, ViolationSite};
pub use devices::{GpuRecord, KernelRecord, LinkRecord, ModuleRecord};
pub use elision::ElisionRecord;
pub use energy::Energy;
pub use host::{BlocksRecord, HostRecord, PhasesRecord};
pub use iteration::IterationRecord;
pub use latency::{LatencyRecord, LegsRecord, ServedRecord};
pub use paging::{CopiesRecord, PagingRecord};
pub use publication::{DrainsRecord, PublicationRecord, SubscriberTlbRecord};
pub use run::RunRecord;
pub use sampling::SamplingRecord;
pub use stalls::{QueueRecord, QueuedRecord, StallRecord};
pub use stats::{L2Stats, SmStats};
pub use table::{Metric, find, table};
pub use time::{TimeChoice, TimeRecord};
pub use utilization::{UtilizationRecord, UtilizationShares};
