//! What happened to blocks at a slice.

use tombolo_protocol::nodes::Class;

/// Counters of one slice's blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockStats {
    /// Times that a client asked for a block, or to have it alone.
    pub asked: u64,
    /// Blocks that came and were written to a stack.
    pub filled: u64,
    /// Lines of blocks in stacks that were used there, once for each time that the block came.
    pub used_lines: u64,
    /// Blocks that had to go for others.
    pub evicted: u64,
    /// Requests whose set had no block that could go.
    pub crowded: u64,
    /// Blocks that a release or a launch had merged.
    pub merged: u64,
    /// Requests that waited at a home for the transaction before them.
    pub home_waits: u64,
    /// Blocks that a GPU asked for, on the host.
    pub wanted: u64,
    /// GPUs that asked for a block, summed over these.
    pub wanting: u64,
    /// Messages without data.
    empty: u64,
    /// Messages between modules without data, and bytes of data in the others.
    between: (u64, u64),
    /// By [`Class`]: messages, and bytes of data in them.
    classes: [(u64, u64); 4],
}

impl BlockStats {
    /// Counts a message and the data in it, and whether it leaves its module.
    pub(super) fn count(&mut self, class: Class, data: u64, leaves: bool) {
        let (messages, bytes) = &mut self.classes[class as usize];
        *messages += 1;
        *bytes += data;
        self.empty += u64::from(data == 0);
        self.between.0 += u64::from(leaves && data == 0);
        self.between.1 += if leaves { data } else { 0 };
    }

    /// Messages without data.
    pub fn empty(&self) -> u64 {
        self.empty
    }

    /// Messages between modules without data, and bytes of data in the others.
    pub fn between(&self) -> (u64, u64) {
        self.between
    }

    /// Messages of a class, and bytes of data in them.
    pub fn class(&self, class: Class) -> (u64, u64) {
        self.classes[class as usize]
    }

    /// Adds another slice's.
    pub fn merge(&mut self, other: &BlockStats) {
        self.asked += other.asked;
        self.filled += other.filled;
        self.used_lines += other.used_lines;
        self.evicted += other.evicted;
        self.crowded += other.crowded;
        self.merged += other.merged;
        self.home_waits += other.home_waits;
        self.wanted += other.wanted;
        self.wanting += other.wanting;
        self.empty += other.empty;
        self.between.0 += other.between.0;
        self.between.1 += other.between.1;
        for ((messages, bytes), (more, more_bytes)) in self.classes.iter_mut().zip(other.classes) {
            *messages += more;
            *bytes += more_bytes;
        }
    }
}
