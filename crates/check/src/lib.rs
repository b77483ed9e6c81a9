//! Litmus reader, axiomatic PTX memory model and protocol explorer.
