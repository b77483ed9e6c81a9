//! Queues, memories and drains against reference simulators and closed forms.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod drains;
mod reference_dram;
mod reference_queueing;
