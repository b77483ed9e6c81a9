//! Deterministic parallel discrete-event engine.
//!
//! A machine is divided into [`Partition`]s: component sets with no interaction except timestamped messages. The
//! smallest delays between partitions are the [`Lookahead`]. Partitions close to each other, relative to the rest, form
//! groups. A window is a time in which no group can receive messages from another, so all groups may run in parallel.
//! Each group subdivides the window into shorter windows.
//!
//! Events are totally ordered by time, destination, source and the source's own sequence number ([`Event`]). Each
//! partition handles its events in this order. Neither the number of threads nor the division into partitions therefore
//! changes the simulation, on two conditions. Components in different partitions share no state, and no two components
//! in different partitions are closer than the lookahead.
//!
//! Modelled: time, order, delivery. Not modelled: any part of a machine. No event is ever revoked or moved, and the
//! engine neither loses nor delays messages between components.
//!
//! Read next: [`Partition`] and [`Outbox`] (`partition.rs`) for a model's view of the engine, and [`EventQueue`]
//! (`queue.rs`) for the time wheel. Then read [`Engine`] (`engine.rs`) for windows on one thread, `parallel.rs` for
//! windows on several threads, and `run_threads.rs` for the thread count. The crate `model` holds the hardware.

mod balance;
mod barrier;
mod engine;
mod event;
mod lane;
mod lookahead;
mod mailbox_grid;
mod occupancy;
mod parallel;
mod partition;
mod prefetch;
mod queue;
mod run_threads;
mod share;
mod stopwatch;

pub use engine::{Engine, EngineStats, HORIZON};
pub use event::Event;
pub use lookahead::Lookahead;
pub use partition::{Outbox, Partition};
pub use prefetch::{HOST_LINE, prefetch};
pub use queue::EventQueue;
pub use run_threads::ThreadPool;
