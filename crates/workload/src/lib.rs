//! The SIMT kernel language, its benchmarks, and readers of recorded traces.
//!
//! A workload is a host program that launches kernels over arrays; a kernel is Rust that reads like CUDA
//! and really computes. Running it once gives a [`tombolo_types::stream::Program`]: the warp instructions
//! of each CTA, coalesced into line transactions, compressed, and the same for every memory system.
//!
//! Not modelled: instruction fetch, registers beyond their count, lanes of a warp that run apart.
//!
//! Read [`simt`] (the language), then one file of [`bench`](mod@bench) (pathfinder is a good one), then
//! [`record`] and [`encode`] (how streams are kept); [`trace`] for programs recorded elsewhere.

pub mod bench;
mod chains;
pub mod encode;
pub mod graph;
mod noise;
pub mod parameter;
pub mod record;
pub mod scale;
pub mod simt;
pub mod trace;
mod transfers;
mod unpack;
