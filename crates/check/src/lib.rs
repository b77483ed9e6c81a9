//! Litmus reader, axiomatic PTX memory model and generator of random litmus programs.
//!
//! Three parts that know nothing of protocols:
//! - [`litmus`] reads, checks and prints litmus tests. Its [`litmus::Program`] is what both the model and an
//!   explorer of protocols run.
//! - [`axiomatic`] computes the complete set of final states that the PTX memory model allows a program.
//! - [`random`] makes programs that are the same on every platform for the same seed.
//!
//! Not modelled: proxies, aliases, mixed-size accesses, loops in the axiomatic model.
//! Read [`litmus::program`] next, then [`axiomatic`].

pub mod axiomatic;
pub mod litmus;
pub mod random;
