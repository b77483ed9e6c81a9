//! Copies between GPUs behind kernels: each GPU has its own copy of all memory, which its loads and stores use. Between
//! two kernels, each GPU sends the bytes that it has written to the memories of the other GPUs.
//!
//! - Order: copies start after the kernel's end has released its stores. The next kernel is launched after the last
//!   copied byte is in memory.
//! - Source: the bytes of a line in the sender's L2, completed from the sender's memory.
//! - Destination: the L2 drops its copy of the line, and dirty bytes go to memory. Then memory takes the bytes that the
//!   sender has written in the kernel. Other bytes stay: a third GPU, or the receiver, may have written them.
//!
//! Source: GPS, section 6 (the memcpy paradigm: "broadcasts updates at synchronization barriers").

use crate::broken_rule::broken_rules;
use crate::data::Data;
use tombolo_types::{Mask, ModuleId};

broken_rules! {
    /// A broken rule for copies between GPUs. The explorer and a checked run must catch each.
    pub enum BrokenCopies {
        /// A copy reads memory alone: bytes that only the sender's L2 has are not sent.
        SourceSkipsL2 = "SourceSkipsL2",
        /// The receiver's L2 keeps its copy of the line.
        ReceiverKeepsLine = "ReceiverKeepsLine",
        /// The receiver's dirty bytes go to memory after the copied bytes.
        DirtyAfterCopy = "DirtyAfterCopy",
        /// A copy overwrites whole lines, including bytes that the sender has not written.
        WholeLineWritten = "WholeLineWritten",
        /// The next kernel is launched before the copies are in memory.
        LaunchSkipsCopies = "LaunchSkipsCopies",
    }
}

/// Rules for copies between GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Copies {
    /// Broken rule, if any.
    pub broken: Option<BrokenCopies>,
}

/// A step at the receiver when copied bytes of a line arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalStep {
    /// The L2 drops its copy of the line, and dirty bytes go to memory.
    DropLine,
    /// Memory takes the copied bytes.
    Write,
}

impl Copies {
    fn is_broken(self, rule: BrokenCopies) -> bool {
        self.broken == Some(rule)
    }

    /// Contents sent for a line, given the contents in memory and in the sender's L2 with their valid bytes.
    pub fn sent<D: Data>(self, memory: D, cached: Option<(Mask, D)>) -> D {
        let mut sent = memory;
        if let Some((valid, data)) = cached.filter(|_| !self.is_broken(BrokenCopies::SourceSkipsL2)) {
            sent.merge(data, valid);
        }
        sent
    }

    /// The bytes of a line that a copy writes, given the bytes that the sender has written in the kernel.
    pub fn carried(self, written: Mask) -> Mask {
        if self.is_broken(BrokenCopies::WholeLineWritten) { Mask::ALL } else { written }
    }

    /// Steps at the receiver, in order.
    pub fn arrival(self) -> &'static [ArrivalStep] {
        match self.broken {
            Some(BrokenCopies::ReceiverKeepsLine) => &[ArrivalStep::Write],
            Some(BrokenCopies::DirtyAfterCopy) => &[ArrivalStep::Write, ArrivalStep::DropLine],
            Some(BrokenCopies::SourceSkipsL2 | BrokenCopies::WholeLineWritten | BrokenCopies::LaunchSkipsCopies)
            | None => &[ArrivalStep::DropLine, ArrivalStep::Write],
        }
    }

    /// True if the launch of the next kernel waits until the copies are in memory.
    pub fn launch_waits(self) -> bool {
        !self.is_broken(BrokenCopies::LaunchSkipsCopies)
    }
}

/// The module whose copy of a page serves the loads of `module` in a kernel, if nothing is copied: that of the page's
/// latest writer. A module that stores to the page in the kernel uses its own copy. Source: GPS, section 6 (remote
/// demand loads).
pub fn loads_from(module: ModuleId, stores: bool, latest_writer: ModuleId) -> ModuleId {
    if stores { module } else { latest_writer }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::test_bytes::Bytes;

    #[test]
    fn a_copy_sends_what_the_l2_has_and_completes_it_from_memory() {
        let (memory, cached) = (Bytes([1, 2, 0, 0]), Some((Mask(1), Bytes([7, 9, 0, 0]))));
        assert_eq!(Copies::default().sent(memory, cached), Bytes([7, 2, 0, 0]));
        assert_eq!(Copies::default().sent(memory, None), Bytes([1, 2, 0, 0]));
        let broken = Copies { broken: Some(BrokenCopies::SourceSkipsL2) };
        assert_eq!(broken.sent(memory, cached), Bytes([1, 2, 0, 0]));
    }

    #[test]
    fn the_receiver_drops_its_line_before_memory_takes_the_bytes() {
        assert_eq!(Copies::default().arrival(), [ArrivalStep::DropLine, ArrivalStep::Write]);
        assert_eq!(Copies::default().carried(Mask(6)), Mask(6));
        assert!(Copies::default().launch_waits());
    }

    #[test]
    fn a_module_that_stores_to_a_page_loads_from_its_own_copy() {
        assert_eq!(loads_from(ModuleId(1), true, ModuleId(2)), ModuleId(1));
        assert_eq!(loads_from(ModuleId(1), false, ModuleId(2)), ModuleId(2));
    }

    #[test]
    fn each_broken_rule_changes_its_own_decision() {
        let decisions = |rule: Option<BrokenCopies>| {
            let rules = Copies { broken: rule };
            let sent = rules.sent(Bytes([1, 2, 0, 0]), Some((Mask(1), Bytes([7, 9, 0, 0]))));
            (sent, rules.carried(Mask(1)), rules.arrival(), rules.launch_waits())
        };
        let (sent, carried, arrival, waits) = decisions(None);
        use BrokenCopies::{DirtyAfterCopy, LaunchSkipsCopies, ReceiverKeepsLine, SourceSkipsL2, WholeLineWritten};
        assert_eq!(decisions(Some(SourceSkipsL2)), (Bytes([1, 2, 0, 0]), carried, arrival, waits));
        assert_eq!(decisions(Some(WholeLineWritten)), (sent, Mask::ALL, arrival, waits));
        assert_eq!(decisions(Some(ReceiverKeepsLine)), (sent, carried, &[ArrivalStep::Write][..], waits));
        let late = [ArrivalStep::Write, ArrivalStep::DropLine];
        assert_eq!(decisions(Some(DirtyAfterCopy)), (sent, carried, &late[..], waits));
        assert_eq!(decisions(Some(LaunchSkipsCopies)), (sent, carried, arrival, false));
    }
}
