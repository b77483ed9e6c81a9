//! Litmus reader, axiomatic PTX memory model, generator for random litmus programs, and an explorer for coherence
//! protocols. All results are deterministic, for any number of threads.
//!
//! Three parts are independent from protocols:
//! - [`litmus`] reads, checks and prints litmus tests. Both the model and the protocol explorer run its
//!   [`litmus::Program`].
//! - [`axiomatic`] computes the complete set of final states that the PTX memory model allows for a program.
//! - [`random`] generates programs; a seed yields an identical program on every platform.
//!
//! The fourth, [`explore`], runs litmus programs on the protocols in [`tombolo_protocol`] under every possible
//! interleaving. The fifth, [`verify`], repeats this for many tests, designs and placements within budgets and reports
//! the verdicts. `docs/verification.md` states the guarantee that follows.
//!
//! ```
//! use tombolo_check::axiomatic::{Limits, outcomes};
//! let litmus = tombolo_check::litmus::parse("sb", "PTX sb { x=0; y=0; }
//!     P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
//!     st.weak x, 1   | st.weak y, 1   ;
//!     fence.sc.gpu   | fence.sc.gpu   ;
//!     ld.weak r0, y  | ld.weak r0, x  ;
//!     exists P0:r0 = 0 /\\ P1:r0 = 0")?;
//! assert!(!outcomes(&litmus.program, &Limits::default())?.allow_event(&litmus));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`sequential`] computes the final states under plain interleavings.
//!
//! Not modelled: proxies, virtual aliases, mixed-size accesses, wrapping values. Read
//! [`litmus::program`] next, then [`axiomatic`], [`explore`] and [`verify`].

pub mod axiomatic;
pub mod explore;
pub mod litmus;
pub mod random;
pub mod sequential;
pub mod verify;
