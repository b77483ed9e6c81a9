//! Shipped tests and special tests under every protocol, executed as in `check`.

mod core;
mod h100;
mod synthetic;
