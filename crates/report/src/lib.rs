//! Renders the outcome of experiments.
//!
//! - [`document`]: what there is to show: figures as tables of numbers, the published values beside them, claims
//!   with their verdicts, machines and designs as used. Knows no experiment, no machine and no design.
//!
//! Read [`document`] next.

pub mod document;

pub use document::Document;
