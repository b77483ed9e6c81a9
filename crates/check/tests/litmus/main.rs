//! Litmus tests: texts that the reader accepts and rejects, and verdicts for the corpus.

mod aliases;
mod corpus;
mod interleaving;
mod reader;
mod spellings;
mod typed;
