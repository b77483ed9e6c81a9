//! Collective operations: each rank is a GPU, and a single cooperative kernel runs on all of them.
//!
//! A rank has an input, an output, staging memory and signals of its own, which a first launch writes, so that first touch
//! places them there. Sizes are those of nccl-tests: the larger of a rank's input and output.
//!
//! Data cross a link once per use, by plain stores to a peer's memory or plain loads from it. A signal, one word per message,
//! tells that data are there: a release at system scope behind a CTA barrier, and polls of the reader's own memory with an
//! acquire behind them. Protocols whose data carry their own flags (LL, LL128) are not modelled: PTX does not order them.
//!
//! - [`operations`]: the programs and their parameters. [`ranks`]: buffers, CTAs and messages of the ranks.
//! - [`ring`], [`direct`], [`tree`]: the algorithms.

mod direct;
pub(super) mod operations;
mod ranks;
mod ring;
#[cfg(test)]
mod tests;
mod tree;
