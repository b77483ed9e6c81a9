//! Reading and writing traces: real ones, small ones written here, damaged ones, random ones.

#![allow(clippy::unwrap_used, reason = "an unwrap that fails is a failed test")]

mod damage;
mod forms;
mod fuzz;
mod kit;
mod list;
mod native;
mod nvbit;
mod partial;
mod real;
