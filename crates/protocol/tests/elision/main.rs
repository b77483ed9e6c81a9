//! Elision against truth: no load returns an old value and nothing stored is lost, whatever is elided.

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
