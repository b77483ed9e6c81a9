//! Hand-written NMOESI tests: Table II cell by cell, and the examples that decide the merge order for bytes.

mod cells;
mod examples;
mod races;
mod traffic;
mod world;
