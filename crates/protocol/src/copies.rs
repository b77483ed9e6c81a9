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
use tombolo_types::Mask;

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
            _ => &[ArrivalStep::DropLine, ArrivalStep::Write],
        }
    }

    /// True if the launch of the next kernel waits until the copies are in memory.
    pub fn launch_waits(self) -> bool {
        !self.is_broken(BrokenCopies::LaunchSkipsCopies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two bytes.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    struct Two([u8; 2]);

    impl Data for Two {
        type Update = ();

        fn merge(&mut self, from: Two, mask: Mask) {
            (0..2).filter(|byte| mask.0 >> byte & 1 != 0).for_each(|byte| self.0[byte] = from.0[byte]);
        }

        fn update(&mut self, (): (), _: Mask) -> Two {
            *self
        }
    }

    #[test]
    fn a_copy_sends_what_the_l2_has_and_completes_it_from_memory() {
        let (memory, cached) = (Two([1, 2]), Some((Mask(1), Two([7, 9]))));
        assert_eq!(Copies::default().sent(memory, cached), Two([7, 2]));
        assert_eq!(Copies::default().sent(memory, None), Two([1, 2]));
        let broken = Copies { broken: Some(BrokenCopies::SourceSkipsL2) };
        assert_eq!(broken.sent(memory, cached), Two([1, 2]));
    }

    #[test]
    fn the_receiver_drops_its_line_before_memory_takes_the_bytes() {
        assert_eq!(Copies::default().arrival(), [ArrivalStep::DropLine, ArrivalStep::Write]);
        assert_eq!(Copies::default().carried(Mask(6)), Mask(6));
        assert!(Copies::default().launch_waits());
    }

    #[test]
    fn each_broken_rule_changes_its_own_decision() {
        let decisions = |rule: Option<BrokenCopies>| {
            let rules = Copies { broken: rule };
            let sent = rules.sent(Two([1, 2]), Some((Mask(1), Two([7, 9]))));
            (sent, rules.carried(Mask(1)), rules.arrival(), rules.launch_waits())
        };
        let (sent, carried, arrival, waits) = decisions(None);
        use BrokenCopies::{DirtyAfterCopy, LaunchSkipsCopies, ReceiverKeepsLine, SourceSkipsL2, WholeLineWritten};
        assert_eq!(decisions(Some(SourceSkipsL2)), (Two([1, 2]), carried, arrival, waits));
        assert_eq!(decisions(Some(WholeLineWritten)), (sent, Mask::ALL, arrival, waits));
        assert_eq!(decisions(Some(ReceiverKeepsLine)), (sent, carried, &[ArrivalStep::Write][..], waits));
        let late = [ArrivalStep::Write, ArrivalStep::DropLine];
        assert_eq!(decisions(Some(DirtyAfterCopy)), (sent, carried, &late[..], waits));
        assert_eq!(decisions(Some(LaunchSkipsCopies)), (sent, carried, arrival, false));
    }
}
