//! Litmus tests on the timing model: promises of designs, hosts, duties of hosts, single writers, timed runs, and
//! the branches that these reach.

mod duties;
mod host;
mod one_writer;
mod promises;
mod reached;
mod timed;
