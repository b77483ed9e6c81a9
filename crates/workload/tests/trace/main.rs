//! Tests for reading and writing traces: real traces, small handwritten traces, damaged traces, random traces.

#![allow(clippy::unwrap_used, reason = "an unwrap that fails is a failed test")]

mod coverage;
mod damage;
mod forms;
mod fuzz;
mod hopper;
mod kit;
mod list;
mod native;
mod nvbit;
mod partial;
mod real;
mod table;
mod tracez;
