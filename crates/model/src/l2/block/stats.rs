//! Block statistics for a slice.

use tombolo_protocol::client_home::MessageClass;

/// Block counters for a single slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockStats {
    /// Requests from a client to the home, for a block or for exclusive ownership.
    pub requests: u64,
    /// Blocks received and written to a stack.
    pub fills: u64,
    /// Lines accessed during their block's residency in a stack, counted once per residency.
    pub used_lines: u64,
    /// Blocks evicted to free a frame.
    pub evicted: u64,
    /// Requests whose set had no evictable block.
    pub(crate) frame_stalls: u64,
    /// Blocks merged for a release or a launch.
    pub merged: u64,
    /// Requests delayed at a home until an earlier transaction of their block, or of any block, ended.
    pub home_waits: u64,
    /// Blocks requested by a GPU, counted on the host.
    pub requested_blocks: u64,
    /// Requesting GPUs per block, summed over `requested_blocks`.
    pub requesting_gpus: u64,
    /// Messages without data.
    empty: u64,
    /// Inter-module traffic: number of messages without data, and data bytes in messages with data.
    between: (u64, u64),
    /// Number of messages and data bytes, indexed by [`MessageClass`].
    classes: [(u64, u64); 4],
}

impl BlockStats {
    /// Counts a message and its data bytes. `leaves`: true if the message leaves its module.
    pub(super) fn count(&mut self, class: MessageClass, data: u64, leaves: bool) {
        let (messages, bytes) = &mut self.classes[class as usize];
        *messages += 1;
        *bytes += data;
        self.empty += u64::from(data == 0);
        self.between.0 += u64::from(leaves && data == 0);
        self.between.1 += if leaves { data } else { 0 };
    }

    /// Number of messages without data.
    pub fn empty(&self) -> u64 {
        self.empty
    }

    /// Inter-module traffic: number of messages without data, and data bytes in messages with data.
    pub fn between(&self) -> (u64, u64) {
        self.between
    }

    /// Number of messages in a class, and their data bytes.
    pub fn class(&self, class: MessageClass) -> (u64, u64) {
        self.classes[class as usize]
    }

    /// Adds the counters from another slice.
    pub fn merge(&mut self, other: &BlockStats) {
        self.requests += other.requests;
        self.fills += other.fills;
        self.used_lines += other.used_lines;
        self.evicted += other.evicted;
        self.frame_stalls += other.frame_stalls;
        self.merged += other.merged;
        self.home_waits += other.home_waits;
        self.requested_blocks += other.requested_blocks;
        self.requesting_gpus += other.requesting_gpus;
        self.empty += other.empty;
        self.between.0 += other.between.0;
        self.between.1 += other.between.1;
        for ((messages, bytes), (more, more_bytes)) in self.classes.iter_mut().zip(other.classes) {
            *messages += more;
            *bytes += more_bytes;
        }
    }
}
