//! Attacks the timing model with the litmus tests that protocols are proved with, and holds what comes to the PTX axioms.
//!
//! A run is one litmus test on one machine under one design. Everything about it is drawn from a seed: latencies, sizes of
//! queues and caches, where threads and pages are, delays between instructions, other traffic. Lines carry values
//! through the timing model. The final state must be one that `tombolo_check::axiomatic` allows.
//!
//! - [`series`]: runs dealt over tests and designs. [`report`]: what came of them.
//! - [`setup`]: all that one run is made of; `draw` and `machine` draw it, `host` what a host adds; [`shrink`] makes a failing
//!   one small.
//! - `script`: threads as straight-line code. `staging`: the streams of a run. [`trial`]: one run and its verdict.
//! - [`values`]: what lines carry. [`observer`]: who hears of loads and says what is stored. `chart`: what passed.
//!
//! Not here: the axioms and the reader of tests (crate `check`), the machine (crates `model`, `system`).
//!
//! Read [`setup`] next, then [`trial`].

mod chart;
mod draw;
mod host;
mod machine;
pub mod observer;
pub mod report;
mod script;
pub mod series;
pub mod setup;
pub mod shrink;
mod staging;
pub mod trial;
pub mod values;

pub use report::{Failing, NotRun, TimedReport, TimedTest, TimedVerdict};
pub use series::{Attack, Target, Watch, attack, catch, shipped};
