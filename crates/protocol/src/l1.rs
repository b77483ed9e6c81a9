//! The write-through, no-write-allocate L1 of an SM, under every design here.
//!
//! An L1 is the serialisation point of its SM: a store updates a present line as it issues and follows
//! every earlier request of its line on the way to the L2. Source: HMG IV-A ("software-managed and
//! write-through"); readings: fill epochs, acquire order.

use crate::broken_rule::BrokenRule;
use crate::coherence::{Pending, Protocol};
use crate::data::Data;
use crate::options::Polls;
use tombolo_types::{Mask, Order, Scope};

/// A line in an L1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct L1Line<D> {
    /// Bytes that may be read.
    pub valid: Mask,
    /// Contents.
    pub data: D,
}

/// A miss on its way to an L1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct L1Pending {
    /// The reads that were sent; [`Pending::invalidate`] is for an L1 that is invalidated.
    pub miss: Pending,
    /// Of its bytes, those in sectors that a store or an atomic has followed: they serve their waiters and never install.
    pub poisoned: Mask,
}

impl L1Pending {
    /// A read of `mask` has been sent.
    pub fn of(mask: Mask, scope: Scope) -> L1Pending {
        L1Pending { miss: Pending::of(mask, scope), poisoned: Mask::NONE }
    }

    /// The miss with one more read sent, of bytes that are not on their way yet.
    pub fn and(pending: Option<L1Pending>, mask: Mask, scope: Scope) -> L1Pending {
        let poisoned = pending.map_or(Mask::NONE, |pending| pending.poisoned);
        L1Pending { miss: Pending::and(pending.map(|pending| pending.miss), mask, scope), poisoned }
    }
}

/// What a load does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load<D> {
    /// Returns these contents.
    Hit(D),
    /// Waits for bytes on their way.
    Wait {
        /// Bytes that are here already: it takes these at once.
        here: Mask,
        /// Their contents.
        data: D,
        /// Bytes that are sent for; none where all the others are on their way.
        asked: Mask,
    },
    /// Must not use the pending miss: runs again when it is done.
    Stall,
}

/// A load of `mask`, in whole sectors, at `scope` (`Cta` where weak). May drop what is here of the bytes it sends for:
/// a strong load beyond the CTA must not leave an older copy behind that a later weak load would read. `pending`: the
/// line's miss, looked up where it counts.
pub fn load<D: Data>(
    protocol: &impl Protocol,
    line: &mut Option<L1Line<D>>,
    pending: impl FnOnce() -> Option<L1Pending>,
    mask: Mask,
    scope: Scope,
) -> Load<D> {
    let may_hit = scope == Scope::Cta || protocol.broken(BrokenRule::LoadIgnoresScope);
    let present = line.filter(|_| may_hit).unwrap_or_default();
    if present.valid.contains(mask) {
        return Load::Hit(present.data);
    }
    let missing = protocol.sectors().widen(mask & !present.valid);
    let pending = pending().unwrap_or_default();
    if !may_merge(protocol, pending, missing & pending.miss.mask, scope) {
        return Load::Stall;
    }
    let asked = missing & !pending.miss.mask;
    if scope != Scope::Cta {
        drop_bytes(line, asked);
    }
    Load::Wait { here: mask & !missing, data: present.data, asked }
}

/// Whether a load may wait for these bytes of a miss that is already on its way.
fn may_merge(protocol: &impl Protocol, pending: L1Pending, mask: Mask, scope: Scope) -> bool {
    let fresh = (pending.miss.stale & mask).is_empty() || protocol.broken(BrokenRule::LoadMergesAcrossAcquire);
    let clean = (pending.poisoned & mask).is_empty() || protocol.broken(BrokenRule::StoreKeepsFill);
    mask.is_empty() || fresh && clean && pending.miss.scope >= scope
}

/// Drops bytes of a line.
fn drop_bytes<D: Data>(line: &mut Option<L1Line<D>>, mask: Mask) {
    if let Some(present) = line {
        present.valid = present.valid & !mask;
        if present.valid.is_empty() {
            *line = None;
        }
    }
}

/// A store of `mask`, sent to the L2 in any case.
pub fn store<D: Data>(
    protocol: &impl Protocol,
    line: &mut Option<L1Line<D>>,
    pending: &mut Option<L1Pending>,
    mask: Mask,
    data: D,
) {
    if let Some(present) = line {
        present.data.merge(data, mask);
        present.valid |= mask;
    }
    if !protocol.broken(BrokenRule::StoreKeepsFill) {
        poison(protocol, pending, mask);
    }
}

/// An atomic of `mask`, sent to the L2 in any case: it is performed elsewhere, so the sectors here go.
pub fn atomic<D: Data>(
    protocol: &impl Protocol,
    line: &mut Option<L1Line<D>>,
    pending: &mut Option<L1Pending>,
    mask: Mask,
) {
    if !protocol.broken(BrokenRule::AtomicKeepsL1) {
        drop_bytes(line, protocol.sectors().widen(mask));
    }
    if !protocol.broken(BrokenRule::AtomicKeepsFill) {
        poison(protocol, pending, mask);
    }
}

fn poison(protocol: &impl Protocol, pending: &mut Option<L1Pending>, mask: Mask) {
    if let Some(pending) = pending {
        pending.poisoned |= protocol.sectors().widen(mask) & pending.miss.mask;
    }
}

/// Bytes of a miss have come: what of them installs, and what of the miss is left. Its waiters take `data` in any case.
pub fn fill<D: Data>(
    protocol: &impl Protocol,
    line: &mut Option<L1Line<D>>,
    pending: L1Pending,
    mask: Mask,
    data: D,
) -> Option<L1Pending> {
    let stale = if protocol.broken(BrokenRule::FillSurvivesAcquire) { Mask::NONE } else { pending.miss.stale };
    let fresh = mask & !stale & !pending.poisoned;
    if !fresh.is_empty() {
        let present = line.get_or_insert_with(L1Line::default);
        present.data.merge(data, fresh);
        present.valid |= fresh;
    }
    pending.miss.without(mask).map(|miss| L1Pending { miss, poisoned: pending.poisoned & miss.mask })
}

/// Whether an acquire of this scope invalidates the L1 (and makes its pending misses stale). It does so
/// when everything the acquire waits for has happened, as its last act. Source: HMG IV-B, "greater than
/// .cta".
pub fn acquire_invalidates(protocol: &impl Protocol, scope: Scope) -> bool {
    scope != Scope::Cta && protocol.invalidates_l1() && !protocol.broken(BrokenRule::AcquireKeepsL1)
}

/// True where a poll of this order that has not found its flag invalidates the L1. Hardware makes each poll an acquiring load
/// of its own, so one that acquires does. Nothing is lost where it does not: the poll that finds the flag acquires.
pub fn failed_poll_invalidates(protocol: &impl Protocol, order: Order) -> bool {
    protocol.options().polls == Polls::DropL1
        && order.semantics.acquires()
        && acquire_invalidates(protocol, order.scope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_side::MemorySide;
    use crate::options::Options;

    #[test]
    fn a_failed_poll_invalidates_where_it_acquires_beyond_its_cta_and_the_design_drops() {
        let invalidates = |polls: Polls, broken_rule: Option<BrokenRule>, order: Order| {
            failed_poll_invalidates(&MemorySide::new(Options { polls, broken_rule, ..Options::default() }), order)
        };
        let acquire = Order::acquire(Scope::Gpu);
        assert!(invalidates(Polls::DropL1, None, acquire));
        assert!(!invalidates(Polls::KeepL1, None, acquire));
        assert!(!invalidates(Polls::DropL1, None, Order::relaxed(Scope::Gpu)));
        assert!(!invalidates(Polls::DropL1, None, Order::acquire(Scope::Cta)));
        assert!(!invalidates(Polls::DropL1, Some(BrokenRule::AcquireKeepsL1), acquire));
    }
}
