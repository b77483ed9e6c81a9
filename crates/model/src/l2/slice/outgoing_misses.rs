//! Misses of a slice that occupy its GPU's port to the host and to the other GPUs (`host_link.outstanding`).

/// Misses in flight beyond the slice's GPU, up to this slice's share of the requests at its GPU's port.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutgoingMisses {
    held: u32,
    most: u32,
}

impl OutgoingMisses {
    /// Creates a slice's share without misses; `most`: its size, `None` for no limit.
    pub(super) fn new(most: Option<u32>) -> OutgoingMisses {
        OutgoingMisses { held: 0, most: most.unwrap_or(u32::MAX) }
    }

    /// True if another miss may leave.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.held < self.most
    }

    /// Records the start of a miss; `leaves`: true if the miss leaves the GPU.
    #[inline]
    pub(super) fn start(&mut self, leaves: bool) {
        self.held += u32::from(leaves);
    }

    /// Records the end of a miss; `left`: true if the miss had left the GPU.
    #[inline]
    pub(super) fn end(&mut self, left: bool) {
        self.held -= u32::from(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_that_stay_in_the_gpu_take_no_room_at_the_port() {
        let mut outgoing = OutgoingMisses::new(Some(2));
        outgoing.start(false);
        outgoing.start(true);
        assert!(outgoing.has_room());
        outgoing.start(true);
        assert!(!outgoing.has_room());
        outgoing.end(false);
        assert!(!outgoing.has_room());
        outgoing.end(true);
        assert!(outgoing.has_room());
        assert!(OutgoingMisses::new(None).has_room());
    }
}
