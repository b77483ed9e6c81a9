//! Designs that ship, errors in files, and files that are cut or changed at random.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod errors;
mod fuzz;
mod presets;
