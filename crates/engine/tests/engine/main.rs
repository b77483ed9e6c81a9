//! Order of events, delivery, and partitions that share work.

mod delivery;
mod queue_order;
mod sharing;
mod stopping;
mod traffic;
