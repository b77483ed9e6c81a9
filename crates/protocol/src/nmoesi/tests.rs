//! NMOESI by hand: Table II cell by cell, and the examples that decide how bytes are merged.

mod cells;
mod examples;
mod races;
mod traffic;
mod world;
