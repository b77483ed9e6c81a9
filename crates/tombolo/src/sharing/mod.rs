//! `share`: compares memory-sharing policies between GPUs.
//!
//! [`policies`] is the table of policies. [`policy_runs`] runs them, together with the reference run on one GPU.
//! [`break_even`] finds the link rate at which the best two break even. [`advice`] gives advice for each array, with
//! calls to paste. [`exchange`] lists the required exchanges between GPUs, and [`overlap`] their time behind kernels.
//! [`host`] computes the costs of host-memory policies. [`report`] is the printed result.

pub(crate) mod advice;
pub(crate) mod break_even;
pub(crate) mod exchange;
pub(crate) mod host;
pub(crate) mod overlap;
pub(crate) mod policies;
pub(crate) mod policy_runs;
pub(crate) mod report;
