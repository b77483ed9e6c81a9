//! `share`: ways to share memory between GPUs, run side by side.
//!
//! [`ways`] is the table of them. [`field`] runs them and the one GPU that speed-ups are over. [`break_even`] finds the link
//! rate at which the best two change places, [`advice`] what to do with each array, [`exchange`]
//! what GPUs must send each other, [`host`] what ways to use a host's memory cost, and [`answer`] is what is printed.

pub(crate) mod advice;
pub(crate) mod answer;
pub(crate) mod break_even;
pub(crate) mod exchange;
pub(crate) mod field;
pub(crate) mod host;
pub(crate) mod ways;
