//! Litmus tests: what the reader accepts and refuses, and verdicts of the corpus.

mod aliases;
mod corpus;
mod interleaving;
mod reader;
mod spellings;
mod typed;
