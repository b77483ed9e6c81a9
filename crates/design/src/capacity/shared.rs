//! A common LRU order for all lines.

use super::{CacheLevel, CapacityPolicy};
use crate::axis::option;

option! {
    /// A common LRU order.
    pub struct Shared = "shared" {}
}

impl CapacityPolicy for Shared {
    fn start(&self, _: CacheLevel, _: u32) -> Option<u32> {
        None
    }
}
