//! Timing models of the hardware, one file a piece.
