//! Traffic between the levels in a module, in message sizes like on links: a header, the bytes and a mask, in whole
//! flits. Not counted: store acknowledgments, which are piggybacked on further messages.

use tombolo_types::Bytes;

/// Bytes between the levels of one module, in both directions together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelTraffic {
    /// Between SMs and L2 slices: requests from the SMs, and replies to the SMs, including replies from other modules.
    pub l1_l2: Bytes,
    /// Between L2 slices and memory, or the memory-side cache.
    pub l2_l3: Bytes,
}

impl LevelTraffic {
    /// Adds the traffic of another module to these counts.
    pub fn merge(&mut self, other: LevelTraffic) {
        self.l1_l2 += other.l1_l2;
        self.l2_l3 += other.l2_l3;
    }
}
