//! Address windows of the scratchpad and of local memory, and subsets of a warp's lanes.

use super::coalescer::WINDOW;
use super::header::Header;
use super::instruction::Instruction;
use super::opcode::{LANES, MemorySpace};

/// Number of scratchpads in the window of a cluster: rank `r` lies `r` × [`WINDOW`] above the base. Source: CUDA C++
/// Programming Guide, "Thread Block Clusters": at most 16 thread blocks, on H100; Accel-Sim, issue 561.
const MOST_RANKS: u64 = 16;
/// First binary version (compute capability × 10) with clusters.
const CLUSTERS_SINCE: u32 = 90;

/// The windows of generic addresses, as far as the header states their bases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    shared_base: u64,
    local_base: u64,
    /// Bytes from the base of the scratchpad to the end of the last window.
    shared_bytes: u64,
    /// Rank of the current thread block in its cluster.
    pub(super) rank: u32,
}

impl Windows {
    /// The windows of a kernel.
    pub(super) fn new(header: &Header) -> Windows {
        let ranks = if header.binary_version >= CLUSTERS_SINCE { MOST_RANKS } else { 1 };
        Windows {
            shared_base: header.shared_base,
            local_base: header.local_base,
            shared_bytes: ranks * WINDOW,
            rank: 0,
        }
    }

    /// True if the header states both bases.
    pub(super) fn known(self) -> bool {
        self.shared_base != 0 && self.local_base != 0
    }

    /// Memory space of a generic address.
    #[inline]
    pub(super) fn space(self, address: u64) -> MemorySpace {
        let inside = |base: u64, bytes: u64| base != 0 && address.wrapping_sub(base) < bytes;
        if inside(self.shared_base, WINDOW) {
            MemorySpace::Shared
        } else if inside(self.local_base, WINDOW) {
            MemorySpace::Local
        } else if inside(self.shared_base, self.shared_bytes) {
            MemorySpace::Shared
        } else {
            MemorySpace::Global
        }
    }

    /// True if `address` is in a scratchpad: an offset, or a generic address.
    pub(super) fn in_scratchpad(self, address: u64) -> bool {
        address < self.shared_bytes || self.space(address) == MemorySpace::Shared
    }

    /// True if `address`, in a scratchpad, is in that of another thread block of the cluster. An offset below the first
    /// window without a rank is in the own scratchpad.
    pub(super) fn is_remote(self, address: u64) -> bool {
        let rank = |offset: u64| offset / WINDOW;
        if address < self.shared_bytes {
            return rank(address) != 0 && rank(address) != u64::from(self.rank);
        }
        self.shared_base != 0 && rank(address.wrapping_sub(self.shared_base)) != u64::from(self.rank)
    }
}

/// Some lanes of an instruction.
pub(super) struct LaneSubset {
    mask: u32,
    count: usize,
    addresses: [u64; LANES as usize],
}

impl LaneSubset {
    /// Those of the lanes in `mask`, with the given addresses, that `chosen` accepts.
    pub(super) fn of(mask: u32, addresses: &[u64], chosen: impl Fn(u64) -> bool) -> LaneSubset {
        let mut subset = LaneSubset { mask: 0, count: 0, addresses: [0; LANES as usize] };
        let mut lanes = mask;
        for address in addresses {
            let lane = lanes & lanes.wrapping_neg();
            lanes &= !lane;
            if chosen(*address) {
                subset.mask |= lane;
                subset.addresses[subset.count] = *address;
                subset.count += 1;
            }
        }
        subset
    }

    /// True if no lane was chosen.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of lanes.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Mask of the lanes.
    pub(super) fn mask(&self) -> u32 {
        self.mask
    }

    /// Addresses of the lanes, lowest lane first.
    pub(super) fn addresses(&self) -> &[u64] {
        &self.addresses[..self.count]
    }

    /// `instruction`, executed by these lanes only.
    pub(super) fn within<'a>(&'a self, instruction: &Instruction<'a>) -> Instruction<'a> {
        let addresses = instruction.addresses.map(|_| self.addresses());
        Instruction { mask: if addresses.is_some() { self.mask } else { instruction.mask }, addresses, ..*instruction }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(binary_version: u32) -> Windows {
        Windows::new(&Header {
            binary_version,
            shared_base: 0x7f20_0000_0000,
            local_base: 0x7f40_0000_0000,
            ..Header::default()
        })
    }

    #[test]
    fn the_window_of_a_cluster_holds_a_scratchpad_for_each_rank() {
        for (binary, address, space) in [
            (90, 0x7f20_0000_0100, MemorySpace::Shared),
            (90, 0x7f20_0700_0000, MemorySpace::Shared),
            (90, 0x7f20_1000_0000, MemorySpace::Global),
            (80, 0x7f20_0700_0000, MemorySpace::Global),
            (90, 0x7f40_00ff_ff00, MemorySpace::Local),
            (90, 0x7f40_0100_0000, MemorySpace::Global),
            (90, 0, MemorySpace::Global),
        ] {
            assert_eq!(windows(binary).space(address), space, "{binary}: {address:x}");
        }
    }

    #[test]
    fn a_scratchpad_of_another_rank_is_remote() {
        let mut windows = windows(90);
        for (rank, address, remote) in [
            (0, 0x7f20_0000_0100, false),
            (0, 0x7f20_0700_0000, true),
            (7, 0x7f20_0700_0000, false),
            (7, 0x7f20_0000_0000, true),
            (7, 0x400, false),
            (7, 0x0700_0400, false),
            (7, 0x0100_0400, true),
        ] {
            windows.rank = rank;
            assert_eq!(windows.is_remote(address), remote, "rank {rank}: {address:x}");
        }
    }

    #[test]
    fn a_subset_keeps_lanes_with_their_addresses() {
        let subset = LaneSubset::of(0b1011_0000, &[1, 2, 3], |address| address != 2);
        assert_eq!((subset.mask(), subset.addresses()), (0b1001_0000, &[1, 3][..]));
    }
}
