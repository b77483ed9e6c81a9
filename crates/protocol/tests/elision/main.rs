//! Elision against ground truth: under every elision, loads return current values and stores are never lost.

mod cases;
mod counts;
mod directed;
mod figures;
mod kernel;
mod mutants;
mod random;
mod search;
mod sound;
mod truth;
mod unsound;
