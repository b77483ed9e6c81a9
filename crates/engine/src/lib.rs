//! Deterministic parallel discrete-event engine.
//!
//! A machine is cut into [`Partition`]s of components that exchange only timestamped messages. The smallest delays
//! between them are the [`Lookahead`]. Partitions that are nearer to each other than to the rest form groups. A
//! window is a time within which no group can hear from another, so that all may run in parallel; within it each
//! group has shorter windows of its own.
//!
//! Events are totally ordered by time, destination, source and the source's own sequence number ([`Event`]). Each
//! partition handles its events in that order. Therefore neither the number of threads nor the cut into partitions
//! changes what is simulated, on two conditions. Components of different partitions share nothing, and no two
//! components that a cut may separate are closer than the lookahead.
//!
//! Modelled: time, order, delivery. Not modelled: anything of a machine; no event is ever taken back or
//! moved, and messages between components are neither lost nor delayed by the engine.
//!
//! Read next: [`Partition`] and [`Outbox`] (`partition.rs`) for what a model sees, [`EventQueue`]
//! (`queue.rs`) for the time wheel, [`Engine`] (`engine.rs`) for the windows on one thread, `parallel.rs` for those on
//! several, and `staff.rs` for how many there are. The crate `model` holds the hardware.

mod balance;
mod barrier;
mod engine;
mod event;
mod exchange;
mod lane;
mod lookahead;
mod occupancy;
mod parallel;
mod partition;
mod prefetch;
mod queue;
mod share;
mod staff;
mod stopwatch;

pub use engine::{Engine, EngineStats, HORIZON};
pub use event::Event;
pub use lookahead::Lookahead;
pub use partition::{Outbox, Partition};
pub use prefetch::{HOST_LINE, prefetch};
pub use queue::EventQueue;
pub use staff::Spare;
