//! Litmus tests: what the reader accepts and refuses, and verdicts of the corpus.

mod corpus;
mod interleaving;
mod reader;
mod spellings;
