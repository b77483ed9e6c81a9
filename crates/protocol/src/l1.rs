//! The write-through, no-write-allocate L1 of an SM, under every design here.
//!
//! An L1 is the serialisation point of its SM: a store updates a present line as it issues and follows
//! every earlier request of its line on the way to the L2. Source: HMG IV-A ("software-managed and
//! write-through"); readings: fill epochs, acquire order.

use crate::broken_rule::BrokenRule;
use crate::coherence::{Coherence, Pending};
use crate::data::Data;
use tombolo_types::{Mask, Scope};

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
    /// The read that was sent; `stale` is set when the L1 is invalidated.
    pub miss: Pending,
    /// Whether a store or an atomic to the line has followed it: it serves its waiters and never installs.
    pub poisoned: bool,
}

/// What a load does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load<D> {
    /// Returns these contents.
    Hit(D),
    /// Waits for the pending miss.
    Merge,
    /// Must not use the pending miss: runs again when it is done.
    Stall,
    /// Is sent to the L2.
    Miss,
}

/// A load of `mask` at `scope` (`Cta` where weak). May drop the line: a strong load beyond the CTA must not
/// leave an older copy behind that a later weak load would read. `pending`: the line's miss, looked up where it counts.
pub fn load<D: Data>(
    protocol: &impl Coherence,
    line: &mut Option<L1Line<D>>,
    pending: impl FnOnce() -> Option<L1Pending>,
    mask: Mask,
    scope: Scope,
) -> Load<D> {
    let may_hit = scope == Scope::Cta || protocol.broken(BrokenRule::LoadIgnoresScope);
    if let Some(present) = line
        && may_hit
        && present.valid.contains(mask)
    {
        return Load::Hit(present.data);
    }
    match pending() {
        Some(pending) if may_merge(protocol, pending, mask, scope) => Load::Merge,
        Some(_) => Load::Stall,
        None => {
            if scope != Scope::Cta {
                *line = None;
            }
            Load::Miss
        }
    }
}

/// Whether a load may wait for a miss that is already on its way.
fn may_merge(protocol: &impl Coherence, pending: L1Pending, mask: Mask, scope: Scope) -> bool {
    let fresh = !pending.miss.stale || protocol.broken(BrokenRule::LoadMergesAcrossAcquire);
    let clean = !pending.poisoned || protocol.broken(BrokenRule::StoreKeepsFill);
    fresh && clean && pending.miss.mask.contains(mask) && pending.miss.scope >= scope
}

/// A store of `mask`, sent to the L2 in any case.
pub fn store<D: Data>(
    protocol: &impl Coherence,
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
        poison(pending);
    }
}

/// An atomic, sent to the L2 in any case: it is performed elsewhere, so the copy here goes.
pub fn atomic<D: Data>(protocol: &impl Coherence, line: &mut Option<L1Line<D>>, pending: &mut Option<L1Pending>) {
    if !protocol.broken(BrokenRule::AtomicKeepsL1) {
        *line = None;
    }
    if !protocol.broken(BrokenRule::AtomicKeepsFill) {
        poison(pending);
    }
}

fn poison(pending: &mut Option<L1Pending>) {
    if let Some(pending) = pending {
        pending.poisoned = true;
    }
}

/// The fill of a miss: whether and how it installs. Its waiters take `data` in any case.
pub fn fill<D: Data>(protocol: &impl Coherence, line: &mut Option<L1Line<D>>, pending: L1Pending, mask: Mask, data: D) {
    let fresh = !pending.miss.stale || protocol.broken(BrokenRule::FillSurvivesAcquire);
    if !fresh || pending.poisoned {
        return;
    }
    let present = line.get_or_insert_with(L1Line::default);
    present.data.merge(data, mask);
    present.valid |= mask;
}

/// Whether an acquire of this scope invalidates the L1 (and makes its pending misses stale). It does so
/// when everything the acquire waits for has happened, as its last act. Source: HMG IV-B, "greater than
/// .cta".
pub fn acquire_invalidates(protocol: &impl Coherence, scope: Scope) -> bool {
    scope != Scope::Cta && protocol.invalidates_l1() && !protocol.broken(BrokenRule::AcquireKeepsL1)
}
