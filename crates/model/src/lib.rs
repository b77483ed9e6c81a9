//! Timing models for the hardware, with a file per component.
//!
//! There are two kinds. *Pieces* are passive: they receive time as an argument, return their effects, and know neither
//! the engine nor a protocol. Examples are tag arrays, MSHRs, directories, links, switches, DRAM, and translation.
//! *Components* handle events: an SM with its L1, an L2 slice, a module's controller, the fabric between GPUs or a GPU's
//! port at a switch, the command processor. Slices and SMs host the rules from `protocol`: a host decides when a load
//! returns, never the value.
//!
//! - [`sm`]: an SM with its L1, translation, and the dispatcher of CTAs. [`l2`]: slices, blocks, their arrays and queues.
//!   [`memory`]: DRAM and the memory-side cache.
//! - [`fabric`]: links, switches, ports and packets. [`front_end`]: command processor, driver, copy engines, host.
//! - [`module`]: the partition that holds a GPU module, with its two halves at the crossbar; no mutable state belongs to
//!   both. [`message`] and [`layout`]: events and component numbers. [`observe`]: latency, stalls, counters, values.
//!
//! Not modelled: the SM's pipeline below issue, instruction fetch, ECC, power states.
//!
//! Read [`message`], `fabric/packet.rs`, [`module`], `l2/slice` and [`sm`]; then the pieces: `l2/cache`, `l2/mshr`,
//! `fabric/link.rs`, `l2/credits.rs`, `memory/dram`.

mod bytes;
pub mod calendar;
pub mod convert;
pub mod fabric;
pub mod front_end;
pub mod l2;
pub mod layout;
pub mod memory;
pub mod message;
pub mod module;
pub mod observe;
pub mod sm;
