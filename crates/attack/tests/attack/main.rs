//! Litmus tests on the timing model: promises of designs, hosts, duties of hosts, single writers, and timed runs.

mod duties;
mod host;
mod one_writer;
mod promises;
mod timed;
