//! Transfers between host and device memory while no kernel runs: copies, and host code's reads and writes.
//!
//! A write goes to the line's memory, and drops at once the line copies that no acquire at the next launch drops. A
//! read returns the same contents as an access at the home. L1s drop all lines when the next kernel starts.
//!
//! | accesses meet at | a write drops | a read finds |
//! | --- | --- | --- |
//! | the home's L2 | the home's copy; remote copies if launches acquire nothing: under a directory, or `ideal` | the home's copy, completed from memory |
//! | memory, on a path through the home's L2 | the home's copy, readable by modules outside the next kernel | memory alone: dirty bytes have been flushed |
//! | memory alone | nothing: the next launch invalidates L2s, or the elision table knows the host as a user | memory alone: dirty bytes have been flushed |
//!
//! Whole lines are dropped, but dirty bytes left by kernels next to the written bytes stay. Directory entries stay
//! too: a sharer without any remaining lines is invalidated once more than necessary.
//!
//! Source: gem5's pull requests 1011 and 1093 (a write by the host or a DMA engine invalidates lines in a GPU's
//! L2).

use crate::coherence::{Coherence, LineSlot, LineState, OrderingPoint, Protocol};
use crate::data::Data;
use crate::plan::Sync;
use tombolo_types::{Mask, ModuleId};

/// Transfer rules that may be broken on purpose. A checked run must catch each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BrokenTransfer {
    /// A write leaves all copies of its lines in place.
    WriteKeepsCopies,
    /// A write drops only the copy at the home.
    WriteKeepsSharers,
    /// A read returns memory's contents only.
    ReadPassesL2,
}

impl BrokenTransfer {
    /// All variants.
    pub const ALL: [BrokenTransfer; 3] =
        [BrokenTransfer::WriteKeepsCopies, BrokenTransfer::WriteKeepsSharers, BrokenTransfer::ReadPassesL2];
}

/// True if `rule` is the broken rule.
fn broken<P: Protocol>(protocol: &P, rule: BrokenTransfer) -> bool {
    P::BREAKABLE && protocol.options().broken_transfer == Some(rule)
}

/// True if a write drops a line's copy in an L2, at the line's home (`is_home`) or at another module.
fn drops(protocol: &impl Coherence, is_home: bool) -> bool {
    if broken(protocol, BrokenTransfer::WriteKeepsCopies) {
        return false;
    }
    match protocol.ordering_point() {
        OrderingPoint::Memory { by_home_l2 } => is_home && by_home_l2,
        OrderingPoint::HomeL2 => {
            let is_acquired = !protocol.acquire(Sync::Kernel).is_empty();
            is_home || !is_acquired && !broken(protocol, BrokenTransfer::WriteKeepsSharers)
        }
    }
}

/// Applies a host write to the bytes `mask` of a line, at module `at`'s L2. Bytes in flight to this L2 are older:
/// they serve their waiters and never install.
pub fn write<D: Data>(protocol: &impl Coherence, at: ModuleId, slot: &mut LineSlot<D>, mask: Mask) {
    if !drops(protocol, at == slot.homes.system) {
        return;
    }
    if let Some(pending) = &mut slot.pending {
        pending.invalidate();
    }
    if let Some(line) = &mut slot.line {
        line.dirty = line.dirty & !mask;
        line.valid = line.dirty;
        if line.valid.is_empty() {
            slot.line = None;
        }
    }
}

/// A host read's result for a line, given the contents in memory and in the home's L2.
pub fn read<D: Data>(protocol: &impl Coherence, memory: D, line: Option<&LineState<D>>) -> D {
    let mut data = memory;
    let looks = !protocol.ordering_point().is_memory() && !broken(protocol, BrokenTransfer::ReadPassesL2);
    if let Some(line) = line.filter(|_| looks) {
        data.merge(line.data, line.valid);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coherence::Pending;
    use crate::hmg::Hmg;
    use crate::ideal::Ideal;
    use crate::options::{ProtocolOptions, Remote};
    use crate::software_flat::SoftwareFlat;
    use crate::topology::Homes;
    use crate::viper::Viper;
    use tombolo_types::{Line, Scope};

    /// A line with a byte per grain, for the lowest four grains.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    struct Grains([u8; 4]);

    impl Data for Grains {
        type Update = u8;

        fn merge(&mut self, from: Grains, mask: Mask) {
            (0..4).filter(|grain| mask.0 >> grain & 1 != 0).for_each(|grain| self.0[grain] = from.0[grain]);
        }

        fn update(&mut self, update: u8, mask: Mask) -> Grains {
            let before = *self;
            self.merge(Grains([update; 4]), mask);
            before
        }
    }

    const HOME: ModuleId = ModuleId(0);
    const OTHER: ModuleId = ModuleId(1);

    fn slot(dirty: u32) -> LineSlot<Grains> {
        let line = LineState { valid: Mask(0b1111), dirty: Mask(dirty), data: Grains([1; 4]) };
        let homes = Homes { system: HOME, gpu: HOME };
        LineSlot { line_id: Line(0), homes, line: Some(line), pending: None, entry: None }
    }

    /// Valid bytes after a write to the lowest two grains, at the home and at another module.
    fn left(protocol: &impl Coherence, dirty: u32) -> [u32; 2] {
        [HOME, OTHER].map(|at| {
            let mut slot = slot(dirty);
            write(protocol, at, &mut slot, Mask(0b11));
            slot.line.map_or(0, |line| line.valid.0)
        })
    }

    fn options(broken: Option<BrokenTransfer>) -> ProtocolOptions {
        ProtocolOptions { broken_transfer: broken, ..ProtocolOptions::default() }
    }

    #[test]
    fn a_write_drops_the_copies_that_no_acquire_drops() {
        assert_eq!(left(&Hmg::<true>::new(options(None)), 0), [0, 0]);
        assert_eq!(left(&Ideal::<true>::new(options(None)), 0), [0, 0]);
        assert_eq!(left(&SoftwareFlat::<true>::new(options(None)), 0), [0, 0b1111]);
        assert_eq!(left(&Viper::<true>::new(options(None)), 0), [0b1111, 0b1111]);
        let cached = ProtocolOptions { remote: Remote::Cached, ..options(None) };
        assert_eq!(left(&Viper::<true>::new(cached), 0), [0, 0b1111]);
    }

    #[test]
    fn dirty_bytes_next_to_the_written_bytes_stay() {
        assert_eq!(left(&Hmg::<true>::new(options(None)), 0b0110)[0], 0b0100);
    }

    #[test]
    fn bytes_in_flight_never_install() {
        let mut slot = LineSlot { pending: Some(Pending::started(Mask(0b1100), Scope::Cta)), ..slot(0) };
        write(&Hmg::<true>::new(options(None)), HOME, &mut slot, Mask(0b1));
        assert_eq!(slot.pending.map(|pending| pending.stale), Some(Mask(0b1100)));
    }

    #[test]
    fn a_read_returns_the_contents_of_the_ordering_point() {
        let line = LineState { valid: Mask(0b0110), dirty: Mask(0b0010), data: Grains([1; 4]) };
        let found = |protocol: &Hmg| read(protocol, Grains([7; 4]), Some(&line));
        assert_eq!(found(&Hmg::new(options(None))), Grains([7, 1, 1, 7]));
        assert_eq!(found(&Hmg::new(options(Some(BrokenTransfer::ReadPassesL2)))), Grains([7; 4]));
        assert_eq!(read(&Viper::<true>::new(options(None)), Grains([7; 4]), Some(&line)), Grains([7; 4]));
    }

    #[test]
    fn each_broken_write_rule_keeps_the_copies_it_names() {
        let hmg = |broken| left(&Hmg::<true>::new(options(Some(broken))), 0);
        assert_eq!(hmg(BrokenTransfer::WriteKeepsCopies), [0b1111, 0b1111]);
        assert_eq!(hmg(BrokenTransfer::WriteKeepsSharers), [0, 0b1111]);
    }
}
