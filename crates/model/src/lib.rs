//! Timing models for the hardware, with a file per component.
//!
//! There are two kinds. *Pieces* are passive: they receive time as an argument, return their effects, and know neither
//! the engine nor a protocol. Examples are tag arrays, MSHRs, directories, links, switches, DRAM, and translation.
//! *Components* handle events: an SM with its L1 ([`sm`]), an L2 slice ([`mod@slice`]), a module's [`controller`], the
//! [`fabric`] between GPUs or a [`gpu_port`] at a switch, the [`command_processor`]. [`module`] is the partition that
//! holds a GPU module. Slices and SMs host the rules from `protocol`: a host decides when a load returns, never the
//! value. Both form the two [`module_halves`] at a module's crossbar, next to the [`uncore`]. The [`context`] is a component's
//! view of the module; no mutable state belongs to both sides.
//!
//! Not modelled: the SM's pipeline below issue, instruction fetch, ECC, power states.
//!
//! Read [`message`], [`packet`], [`module`], [`mod@slice`] and [`sm`]; then the pieces: [`cache`], [`mshr`], [`link`],
//! [`credits`], [`dram`].

pub mod actions;
pub mod activity;
pub mod address_map;
pub mod block;
pub mod boundaries;
mod bytes;
pub mod cache;
pub mod calendar;
pub mod command_processor;
pub mod context;
pub mod controller;
pub mod convert;
pub mod copy_engine;
pub mod cpu;
pub mod credits;
pub mod crossbar;
pub mod departure;
pub mod directory;
pub mod dispatcher;
pub mod drains;
pub mod dram;
pub mod driver;
pub mod fabric;
pub mod fixed_links;
pub mod flags;
pub mod gpu_port;
pub mod group;
pub mod host_end;
pub mod kernel_slot;
pub mod kernel_stats;
pub mod l2_backend;
pub mod latency;
pub mod layout;
pub mod link;
pub mod memory;
pub mod memory_cache;
pub mod message;
pub mod module;
pub mod module_config;
pub mod module_halves;
pub mod mshr;
pub mod outstanding;
pub mod packet;
pub mod packet_size;
mod page_moves;
pub mod page_run;
pub mod page_table;
pub mod page_waits;
pub mod pairs;
pub mod partitioning;
pub mod parts;
pub mod port;
pub mod posted;
pub mod publisher;
pub mod residency;
pub mod schedule;
pub mod set_index;
pub mod shared_bus;
pub mod sideband;
pub mod slice;
pub mod sm;
pub mod stall;
pub mod stats;
pub mod switch;
pub mod timeline;
pub mod tlb;
pub mod traffic;
pub mod transfer;
pub mod translation;
pub mod tree;
pub mod turning_link;
pub mod uncore;
pub mod unloaded_latency;
pub mod value_probe;
pub mod view;
pub mod way_partition;
pub mod write_queue;
