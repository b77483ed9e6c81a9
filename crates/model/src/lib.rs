//! Timing models of the hardware, one file a piece: tag arrays, miss registers, links, switches, DRAM,
//! translation.
//!
//! Each piece is passive: time comes in as an argument, effects leave by return value, and nothing here knows
//! the engine or a coherence protocol. Read [`cache`] and [`mshr`] first, then [`link`], [`credits`] and [`dram`].

pub mod cache;
pub mod credits;
pub mod link;
pub mod mshr;
pub mod set_index;
