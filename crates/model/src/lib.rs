//! Timing models of the hardware, one file a piece: tag arrays, miss registers, directories, links, switches,
//! DRAM, translation.
//!
//! Each piece is passive: time comes in as an argument, effects leave by return value, and nothing here knows
//! the engine or a coherence protocol. Pieces are asked in order of time; what they answer may lie ahead. Read
//! [`cache`] and [`mshr`] first, then [`link`], [`credits`] and [`dram`].

pub mod cache;
pub mod calendar;
pub mod credits;
pub mod directory;
pub mod dram;
pub mod link;
pub mod mshr;
pub mod page_table;
pub mod set_index;
pub mod switch;
pub mod tlb;
