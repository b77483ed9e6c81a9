//! The write-through, no-write-allocate L1 in an SM, under every design in this crate.
//!
//! An L1 is its SM's serialisation point: a store updates a present line as it issues, and follows every earlier
//! request for its line on the path to the L2. Source: HMG IV-A ("software-managed and write-through"); readings:
//! fill epochs, acquire order.

use crate::broken_rule::BrokenRule;
use crate::coherence::Pending;
use crate::data::Data;
use crate::options::Polls;
use crate::sm_rules::L1Protocol;
use tombolo_types::{Mask, Order, Scope};

/// A line in an L1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct L1Line<D> {
    /// Readable bytes.
    pub valid: Mask,
    /// Contents.
    pub data: D,
}

/// A miss in flight to an L1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct L1Pending {
    /// The reads sent; [`Pending::invalidate`] is for an L1 under invalidation.
    pub miss: Pending,
    /// Subset of the miss's bytes whose sectors have seen a later store or atomic: they serve their waiters and
    /// never install.
    pub poisoned: Mask,
}

impl L1Pending {
    /// A miss with a single read sent, for `mask`.
    pub fn of(mask: Mask, scope: Scope) -> L1Pending {
        L1Pending { miss: Pending::started(mask, scope), poisoned: Mask::NONE }
    }

    /// Extends the miss by another read, for bytes not yet in flight.
    pub fn and(pending: Option<L1Pending>, mask: Mask, scope: Scope) -> L1Pending {
        let poisoned = pending.map_or(Mask::NONE, |pending| pending.poisoned);
        L1Pending { miss: Pending::extended(pending.map(|pending| pending.miss), mask, scope), poisoned }
    }
}

/// The outcome of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load<D> {
    /// The load hits and returns these contents.
    Hit(D),
    /// The load waits for bytes in flight.
    Wait {
        /// Bytes already present: the load reads them immediately.
        here: Mask,
        /// Contents of the present bytes.
        data: D,
        /// Bytes to request; empty if all remaining bytes are in flight.
        asked: Mask,
    },
    /// The load must not use the pending miss: it runs again when the miss is done.
    Stall,
}

/// Performs a load for `mask`, in whole sectors, at `scope` (`Cta` if weak). The load may drop present bytes that
/// it requests: a strong load beyond the CTA must not leave an older copy behind, because a later weak load would
/// read it. `pending`: the line's miss, looked up only when needed.
pub fn load<D: Data>(
    protocol: &impl L1Protocol,
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
    let missing = protocol.options().sectors.widen(mask & !present.valid);
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

/// True if a load may wait for these bytes in a miss already in flight.
fn may_merge(protocol: &impl L1Protocol, pending: L1Pending, mask: Mask, scope: Scope) -> bool {
    let fresh = (pending.miss.stale & mask).is_empty() || protocol.broken(BrokenRule::LoadMergesAcrossAcquire);
    let clean = (pending.poisoned & mask).is_empty() || protocol.broken(BrokenRule::StoreKeepsFill);
    mask.is_empty() || fresh && clean && pending.miss.scope >= scope
}

/// Drops bytes from a line.
fn drop_bytes<D: Data>(line: &mut Option<L1Line<D>>, mask: Mask) {
    if let Some(present) = line {
        present.valid = present.valid & !mask;
        if present.valid.is_empty() {
            *line = None;
        }
    }
}

/// Performs a store to `mask`, which is sent to the L2 in any case.
pub fn store<D: Data>(
    protocol: &impl L1Protocol,
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

/// Performs an atomic on `mask`, which is sent to the L2 in any case. The update happens elsewhere, so the affected
/// sectors are dropped.
pub fn atomic<D: Data>(
    protocol: &impl L1Protocol,
    line: &mut Option<L1Line<D>>,
    pending: &mut Option<L1Pending>,
    mask: Mask,
) {
    if !protocol.broken(BrokenRule::AtomicKeepsL1) {
        drop_bytes(line, protocol.options().sectors.widen(mask));
    }
    if !protocol.broken(BrokenRule::AtomicKeepsFill) {
        poison(protocol, pending, mask);
    }
}

fn poison(protocol: &impl L1Protocol, pending: &mut Option<L1Pending>, mask: Mask) {
    if let Some(pending) = pending {
        pending.poisoned |= protocol.options().sectors.widen(mask) & pending.miss.mask;
    }
}

/// Handles arriving bytes for a miss: installs the installable bytes and returns the remaining miss. Its waiters
/// receive `data` in any case.
pub fn fill<D: Data>(
    protocol: &impl L1Protocol,
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
    pending.miss.remaining(mask).map(|miss| L1Pending { miss, poisoned: pending.poisoned & miss.mask })
}

/// True if an acquire with this scope invalidates the L1 (and makes its pending misses stale). The invalidation is
/// the acquire's last act, after everything the acquire waits for. Source: HMG IV-B, "greater than .cta".
pub fn acquire_invalidates(protocol: &impl L1Protocol, scope: Scope) -> bool {
    scope != Scope::Cta && protocol.invalidates_l1() && !protocol.broken(BrokenRule::AcquireKeepsL1)
}

/// True if a poll with this order invalidates the L1 when it has not found its flag. Hardware makes each poll a
/// separate acquiring load, so an acquiring poll invalidates. Nothing is lost without the invalidation: the poll
/// that finds the flag acquires.
pub fn failed_poll_invalidates(protocol: &impl L1Protocol, order: Order) -> bool {
    protocol.options().polls == Polls::DropL1
        && order.semantics.acquires()
        && acquire_invalidates(protocol, order.scope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_side::MemorySide;
    use crate::options::ProtocolOptions;

    #[test]
    fn a_failed_poll_invalidates_if_it_acquires_beyond_its_cta_and_the_design_drops_l1s() {
        let invalidates = |polls: Polls, broken_rule: Option<BrokenRule>, order: Order| {
            failed_poll_invalidates(
                &MemorySide::new(ProtocolOptions { polls, broken_rule, ..ProtocolOptions::default() }),
                order,
            )
        };
        let acquire = Order::acquire(Scope::Gpu);
        assert!(invalidates(Polls::DropL1, None, acquire));
        assert!(!invalidates(Polls::KeepL1, None, acquire));
        assert!(!invalidates(Polls::DropL1, None, Order::relaxed(Scope::Gpu)));
        assert!(!invalidates(Polls::DropL1, None, Order::acquire(Scope::Cta)));
        assert!(!invalidates(Polls::DropL1, Some(BrokenRule::AcquireKeepsL1), acquire));
    }
}
