//! What passes between the levels of a module, weighed as messages on links are: a header, the bytes and which they are, in
//! whole flits. Not counted: acknowledgments of stores, which ride on other messages.

use tombolo_types::Bytes;

/// Bytes between the levels of one module, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Between its SMs and L2 slices: requests of its SMs, and what comes back to them, from other modules too.
    pub l1_l2: Bytes,
    /// Between its L2 slices and its memory, or the cache in front of that.
    pub l2_l3: Bytes,
}

impl Traffic {
    /// Adds another module's.
    pub fn merge(&mut self, other: Traffic) {
        self.l1_l2 += other.l1_l2;
        self.l2_l3 += other.l2_l3;
    }
}
