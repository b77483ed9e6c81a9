//! Attacks the timing model with the litmus tests that protocols are verified with, and checks results against the PTX
//! axioms. Each failing run can be repeated from its seed.
//!
//! A run is a litmus test on a machine under a design. All its parameters are drawn from a seed: latencies, sizes for
//! queues and caches, placements of threads and pages, delays between instructions, additional traffic. Lines carry
//! values through the timing model. `tombolo_check::axiomatic` must allow the final state.
//!
//! Additional loads, polls and warps allow no final state beyond the test's own: without them, a run is an execution of
//! the test. Some failures without a forbidden value are violations too: a panic, a run without an end, a missing
//! result. Tests with branches or with several barrier numbers are counted and not run.
//!
//! Host threads run between kernels only; tests with host code beside a kernel are counted and not run. With a host,
//! all pages are in host memory and each GPU has a single module.
//!
//! - [`series`]: runs distributed over tests and designs. [`report`]: their results.
//! - [`setup`]: all parameters of a run; `draw` and `machine` draw them, `host` adds a host, `pages` memories with few
//!   pages; [`shrink`] minimises a failing run.
//! - `script`: threads as straight-line code. `staging`: the streams of a run. [`trial`]: a run and its verdict.
//! - [`reached`]: counters that runs have moved.
//! - [`values`]: line contents. [`observer`]: receives loads and supplies stored values. `chart`: the messages of a
//!   run.
//!
//! Outside this crate: the axioms and the litmus reader (crate `check`), the machine (crates `model`, `system`).
//!
//! Read [`setup`] next, then [`trial`].

mod chart;
mod draw;
mod host;
mod machine;
pub mod observer;
mod pages;
pub mod reached;
pub mod report;
mod script;
pub mod series;
pub mod setup;
pub mod shrink;
mod staging;
pub mod trial;
pub mod values;

pub use report::{FailingRun, SkippedTests, TimedReport, TimedTest, TimedVerdict};
pub use series::{Attack, ProgressObserver, Target, at_boundaries, attack, attack_shipped, catch, shipped};
pub use values::register;
