//! Shipped tests and tests of a kind under every protocol, as `check` runs them.

mod core;
mod h100;
mod synthetic;
