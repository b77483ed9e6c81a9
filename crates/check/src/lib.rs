//! Litmus reader, axiomatic PTX memory model, generator of random litmus programs, and an explorer of
//! coherence protocols.
//!
//! Three parts that know nothing of protocols:
//! - [`litmus`] reads, checks and prints litmus tests. Its [`litmus::Program`] is what both the model and an
//!   explorer of protocols run.
//! - [`axiomatic`] computes the complete set of final states that the PTX memory model allows a program.
//! - [`random`] makes programs that are the same on every platform for the same seed.
//!
//! The fourth, [`explore`], runs litmus programs on the protocols of [`tombolo_protocol`] in every way they
//! can run; the fifth, [`verify`], does so for many tests, designs and placements within budgets and says what
//! came of it. `docs/verification.md` says what that proves.
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
//! [`sequential`] has the final states of plain interleavings.
//!
//! Not modelled: proxies, virtual aliases, mixed-size accesses, values that wrap, loops in the axiomatic model.
//! Read [`litmus::program`] next, then [`axiomatic`], [`explore`] and [`verify`].

pub mod axiomatic;
pub mod explore;
pub mod litmus;
pub mod random;
pub mod sequential;
pub mod verify;
