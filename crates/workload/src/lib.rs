//! The SIMT kernel language, its benchmarks, and readers of recorded traces.
