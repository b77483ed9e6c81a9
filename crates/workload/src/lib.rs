//! The SIMT kernel language, and readers for recorded traces.
//!
//! A workload is a host program that launches kernels over arrays. A kernel is Rust that reads like CUDA and really
//! computes. Running a workload once gives a [`tombolo_types::stream::Program`]: the warp instructions of each CTA,
//! coalesced into line transactions, compressed, and identical for every memory system.
//!
//! Not modelled: instruction fetch, registers beyond their count, divergent lanes that run apart.
//!
//! Read [`program!`] (a program as a whole), [`simt`] (the language), then [`bench`](mod@bench) (what a benchmark is;
//! the crate of programs has those that ship), then [`record`] and [`encode`] (recording and byte form of the streams).
//! [`trace`] reads programs recorded elsewhere.

pub mod bench;
mod chains;
pub mod encode;
pub mod graph;
pub mod noise;
pub mod parameter;
pub mod prelude;
pub mod record;
pub mod scale;
pub mod simt;
pub mod trace;
mod transfers;
mod unpack;
