//! Tests the assumptions of the reductions on a protocol before exploration: applies the step function to every kind of
//! slot and request, and inspects the effects without performing them.
//!
//! L2 cases:
//! - a line in each [`Class`] (the line's homes, seen from the L2), every scope, whole and partial masks;
//! - requesters in the module, in the module's GPU and in a different GPU;
//! - no pending miss, or one of five: whole and partial masks, all scopes, fresh or made stale by an acquire;
//! - lines that are absent, partly or wholly valid, and partly dirty if lines are written back.
//!
//! L1s are probed with the corresponding cases, if applicable.
//!
//! | assumption | without it |
//! | --- | --- |
//! | an L2 sends requests only to the line's homes, and invalidates only sharers in its own directory entry (`edges`) | the exploration reports a violation |
//! | while a miss is in flight, stores and atomics to the line wait, and the directory records no reader before the data's departure | memory's reply is a separate step, no request is postponed, entries may also be replaced before reads |
//! | after an acquire or a store during an L1 miss, the L1 does not install the miss's data | a fill's arrival is a separate step |
//! | an eviction sends no message | evictions are explored at any time, not only before an affected access |

use super::layout::ProgramLayout;
use super::trial::RecordedEffects;
use super::values::{Cells, Values, WHOLE_LINE, cells};
use crate::litmus::{Operand, Update};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use tombolo_protocol::directory::{Sharer, Sharers};
use tombolo_protocol::l1::{self, L1Line, L1Pending, Load};
use tombolo_protocol::vi::ProtocolOptions;
use tombolo_protocol::{
    Class, Coherence, L2Event, LineSlot, LineState, Pending, Protocol, Refusal, Request, Requester, Topology,
};
use tombolo_types::{Line, Mask, ModuleId, Scope};

/// Each location on a line with two locations, and both together.
const MASKS: [Mask; 3] = [Mask(1), Mask(2), Mask(3)];

/// Assumptions of the reductions that a protocol may fail to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProbedAssumptions {
    /// See [`misses_are_plain`].
    pub(super) plain_misses: bool,
    /// See [`fills_are_plain`].
    pub(super) plain_fills: bool,
}

impl ProbedAssumptions {
    /// Probes `protocol` on the machine of `layout`, with `lines` lines.
    pub(super) fn of<P: Coherence>(protocol: &P, layout: &ProgramLayout, lines: usize) -> ProbedAssumptions {
        ProbedAssumptions {
            plain_misses: misses_are_plain(protocol, layout, lines),
            plain_fills: fills_are_plain(protocol),
        }
    }
}

/// A protocol by its name and options, and a machine: a layout without threads, and its number of lines.
type ProbeKey = (&'static str, ProtocolOptions, ProgramLayout, usize);

thread_local! {
    /// Assumptions that this thread has probed: many programs are explored on one machine.
    static PROBED: RefCell<FxHashMap<ProbeKey, ProbedAssumptions>> = RefCell::default();
}

/// The assumptions of the protocol called `name` under `options`, on the machine of `layout` with `lines` lines. Each
/// thread probes them once. `protocol` is the protocol that this name and these options choose.
pub(super) fn remembered<P: Coherence>(
    name: &'static str,
    options: &ProtocolOptions,
    protocol: &P,
    layout: &ProgramLayout,
    lines: usize,
) -> ProbedAssumptions {
    let key = (name, *options, ProgramLayout { threads: Vec::new(), ..layout.clone() }, lines);
    let probe = || ProbedAssumptions::of(protocol, layout, lines);
    PROBED.with(|probed| *probed.borrow_mut().entry(key).or_insert_with(probe))
}

/// True if no change happens at a slot while its miss is in flight: stores and atomics wait, or bypass to memory
/// without an effect on the slot, and the directory records no reader before the data leaves.
pub(super) fn misses_are_plain<P: Coherence>(protocol: &P, topology: &impl Topology, lines: usize) -> bool {
    let probe = Probe { protocol, topology };
    one_of_each_class(topology, lines).into_iter().all(|(at, line)| {
        let requesters = requesters(topology, at);
        probe.slots(at, line).iter().all(|slot| {
            let waits = |from, request| {
                let is_left_alone = || probe.passes_by(at, slot, from, request);
                slot.pending.is_none() || probe.refuses(at, slot, from, request) || is_left_alone()
            };
            requesters.iter().all(|&from| {
                probe.updates().all(|request| waits(from, request))
                    && probe.reads().all(|request| probe.is_unheard(at, slot, from, request))
            })
        })
    })
}

/// A module and a line for each class on this machine.
fn one_of_each_class(topology: &impl Topology, lines: usize) -> Vec<(ModuleId, Line)> {
    let mut found: Vec<(Class, (ModuleId, Line))> = Vec::new();
    for line in (0..lines as u64).map(Line) {
        for at in (0..topology.modules()).map(ModuleId) {
            let class = Class::of(topology, at, topology.homes(at, line));
            if !found.iter().any(|(known, _)| *known == class) {
                found.push((class, (at, line)));
            }
        }
    }
    found.into_iter().map(|(_, place)| place).collect()
}

/// Requesters at the L2 of `at`: an SM in the module, another module in the GPU, a module in another GPU.
fn requesters(topology: &impl Topology, at: ModuleId) -> Vec<Requester> {
    let is_near = |other: &ModuleId| topology.gpu_of(*other) == topology.gpu_of(at);
    let others = || (0..topology.modules()).map(ModuleId).filter(|other| *other != at);
    let near = others().find(is_near);
    let far = others().find(|other| !is_near(other));
    [Requester::Local].into_iter().chain(near.into_iter().chain(far).map(Requester::Module)).collect()
}

/// A protocol on a machine.
struct Probe<'a, P, T> {
    protocol: &'a P,
    topology: &'a T,
}

impl<P: Coherence, T: Topology> Probe<'_, P, T> {
    /// Possible slot contents for a line.
    fn slots(&self, at: ModuleId, line: Line) -> Vec<LineSlot<Values>> {
        let homes = self.topology.homes(at, line);
        let class = Class::of(self.topology, at, homes);
        let mut slots = Vec::new();
        for copy in self.copies(class) {
            for pending in misses() {
                // No directory entry, or `at` as the only sharer: `at` is no requester in the test.
                for entry in [None, Some(Sharers::only(Sharer::Module(at)))] {
                    slots.push(LineSlot { line_id: line, homes, line: copy, pending, entry });
                }
            }
        }
        slots
    }

    fn copies(&self, class: Class) -> Vec<Option<LineState<Values>>> {
        let copy = |valid, dirty| Some(LineState { valid, dirty, data: Cells([1, 2]) });
        let mut copies = vec![None];
        if self.protocol.caches(class) {
            copies.extend([copy(WHOLE_LINE, Mask::NONE), copy(Mask(1), Mask::NONE)]);
            if self.protocol.writes_back() {
                copies.extend([copy(WHOLE_LINE, Mask(1)), copy(Mask(2), Mask(2))]);
            }
        }
        copies
    }

    /// Stores and atomics.
    fn updates(&self) -> impl Iterator<Item = Request<Values>> {
        let (data, update) = (Cells([3, 4]), Update::Exchange(Operand::Value(5)));
        masks_and_scopes().flat_map(move |(mask, scope)| {
            [
                Request::Write { mask, scope, data, tracked: true },
                Request::Write { mask, scope, data, tracked: false },
                Request::Atomic { mask, scope, update, returns: true },
            ]
        })
    }

    fn reads(&self) -> impl Iterator<Item = Request<Values>> {
        masks_and_scopes().map(|(mask, scope)| Request::Read { mask, scope })
    }

    fn refuses(&self, at: ModuleId, slot: &LineSlot<Values>, from: Requester, request: Request<Values>) -> bool {
        let event = L2Event::Request { from, request };
        let result = self.protocol.step(self.topology, at, &mut slot.clone(), event, &mut RecordedEffects::default());
        result == Err(Refusal::Stall)
    }

    /// True if a request bypasses to memory and leaves the slot unchanged.
    fn passes_by(&self, at: ModuleId, slot: &LineSlot<Values>, from: Requester, request: Request<Values>) -> bool {
        let (mut after, mut notes) = (*slot, RecordedEffects::default());
        let event = L2Event::Request { from, request };
        let result = self.protocol.step(self.topology, at, &mut after, event, &mut notes);
        result.is_ok() && notes.passed_to_memory && (after.line, after.pending) == (slot.line, slot.pending)
    }

    /// True if the directory records no reader at the request: the entry changes only with a reply.
    fn is_unheard(&self, at: ModuleId, slot: &LineSlot<Values>, from: Requester, request: Request<Values>) -> bool {
        let (mut after, mut notes) = (*slot, RecordedEffects::default());
        let event = L2Event::Request { from, request };
        // A refused step changes nothing: the explorer checks this at each step.
        let _ = self.protocol.step(self.topology, at, &mut after, event, &mut notes);
        after.entry == slot.entry || notes.replied
    }
}

fn masks_and_scopes() -> impl Iterator<Item = (Mask, Scope)> {
    MASKS.into_iter().flat_map(|mask| Scope::ALL.map(|scope| (mask, scope)))
}

/// No miss; misses with each scope, whole or partial, fresh or stale.
fn misses() -> [Option<Pending>; 6] {
    let miss = |mask, scope, stale| Some(Pending { mask, scope, stale: if stale { mask } else { Mask::NONE } });
    [
        None,
        miss(WHOLE_LINE, Scope::Cta, false),
        miss(WHOLE_LINE, Scope::Gpu, true),
        miss(WHOLE_LINE, Scope::Sys, false),
        miss(Mask(1), Scope::Cta, true),
        miss(Mask(2), Scope::Sys, false),
    ]
}

/// True if a fill installs no byte in sectors that an acquire, a store or an atomic has affected during the miss. Such
/// a fill is equivalent to an arrival before the event, followed by an eviction of the line.
pub(super) fn fills_are_plain(protocol: &impl Protocol) -> bool {
    masks_and_scopes().all(|(mask, scope)| {
        let fresh = L1Pending::of(mask, scope);
        let mut stale = fresh;
        stale.miss.invalidate();
        let acquired = PassedMiss { line: None, pending: stale, bytes: mask };
        let updated = MASKS.into_iter().filter(|update| !(*update & mask).is_empty());
        let updated = updated.flat_map(|update| passed_by_updates(protocol, fresh, update));
        updated.chain([acquired]).all(|passed| takes_nothing(protocol, passed))
    })
}

/// An L1 slot after an acquire, a store or an atomic during the miss. `bytes`: the miss's bytes in affected sectors.
struct PassedMiss {
    line: Option<L1Line<Values>>,
    pending: L1Pending,
    bytes: Mask,
}

/// L1 slots after a store to `update` during the miss, and after an atomic, for each possible copy before the event.
fn passed_by_updates(protocol: &impl Protocol, miss: L1Pending, update: Mask) -> Vec<PassedMiss> {
    let bytes = protocol.options().sectors.widen(update) & miss.miss.mask;
    let mut passed = Vec::new();
    for valid in [Mask::NONE, Mask(1), Mask(2)] {
        for stores in [true, false] {
            let copy = L1Line { valid, data: Cells([1, 2]) };
            let (mut line, mut pending) = ((!valid.is_empty()).then_some(copy), Some(miss));
            if stores {
                l1::store(protocol, &mut line, &mut pending, update, Cells([3, 4]));
            } else {
                l1::atomic(protocol, &mut line, &mut pending, update);
            }
            passed.push(PassedMiss { line, pending: pending.unwrap_or(miss), bytes });
        }
    }
    passed
}

/// True if the fill leaves `bytes` unchanged in the L1, and no further load waits for the fill of these bytes.
fn takes_nothing(protocol: &impl Protocol, PassedMiss { line, pending, bytes }: PassedMiss) -> bool {
    let mut after = line;
    l1::fill(protocol, &mut after, pending, pending.miss.mask, Cells([5, 6]));
    let there = |line: Option<L1Line<Values>>| {
        let line = line.unwrap_or_default();
        cells(line.valid & bytes).map(|cell| (cell, line.data.0[cell])).collect::<Vec<_>>()
    };
    let waits = |(mask, scope)| match l1::load(protocol, &mut line.clone(), || Some(pending), mask, scope) {
        Load::Wait { here, asked, .. } => !(mask & bytes & !here & !asked).is_empty(),
        Load::Hit(_) | Load::Stall => false,
    };
    there(after) == there(line) && !masks_and_scopes().any(waits)
}

#[cfg(test)]
mod tests {
    use super::super::altered_hmg::{AlteredHmg, Meeting, machine};
    use super::*;
    use tombolo_protocol::catalogue::{Visitor, choose};
    use tombolo_protocol::client_home::Nodes;
    use tombolo_protocol::vi::{ProtocolOptions, Tracks, WritePolicy};
    use tombolo_protocol::{BrokenRule, PROTOCOLS};

    fn is_plain(at: fn(&Meeting) -> bool) -> bool {
        misses_are_plain(&AlteredHmg::at(at), &machine(), 1)
    }

    #[test]
    fn a_protocol_that_is_not_plain_in_one_case_alone_is_found() {
        assert!(is_plain(|_| false));
        let cases: [fn(&Meeting) -> bool; 5] = [
            |meeting| meeting.is_local && !meeting.is_read,
            |meeting| !meeting.is_read && meeting.scope == Scope::Sys && !meeting.is_local,
            |meeting| !meeting.is_read && meeting.mask == Mask(2),
            |meeting| !meeting.is_read && meeting.valid == Mask(1) && meeting.dirty.is_empty(),
            |meeting| !meeting.is_read && !meeting.dirty.is_empty(),
        ];
        for (index, case) in cases.into_iter().enumerate() {
            assert!(!is_plain(case), "stores and atomics, case {index}");
        }
        let reads: [fn(&Meeting) -> bool; 3] = [
            |meeting| meeting.is_read && meeting.scope == Scope::Gpu,
            |meeting| meeting.is_read && meeting.mask == Mask(1) && meeting.is_local,
            |meeting| meeting.is_read && meeting.dirty == Mask(2) && meeting.mask == Mask(1),
        ];
        for (index, case) in reads.into_iter().enumerate() {
            assert!(!is_plain(case), "reads, case {index}");
        }
    }

    /// Results of `misses_are_plain` and `fills_are_plain` for a protocol.
    struct PlainQuery;

    impl Visitor for PlainQuery {
        type Output = (bool, bool);

        fn visit<P: Coherence>(self, protocol: P) -> (bool, bool) {
            (misses_are_plain(&protocol, &machine(), 1), fills_are_plain(&protocol))
        }

        fn visit_nodes<P: Nodes>(self, protocol: P) -> Self::Output {
            (true, fills_are_plain(&protocol))
        }
    }

    fn plain(protocol: &str, write: WritePolicy, broken_rule: Option<BrokenRule>) -> (bool, bool) {
        choose(protocol, ProtocolOptions { write, broken_rule, ..ProtocolOptions::default() }, PlainQuery).unwrap()
    }

    #[test]
    fn every_protocol_is_plain_while_it_is_whole() {
        for protocol in PROTOCOLS {
            for write in [WritePolicy::Through, WritePolicy::Back] {
                assert_eq!(plain(protocol, write, None), (true, true), "{protocol} {write:?}");
                let all = ProtocolOptions { write, tracks: Tracks::All, ..ProtocolOptions::default() };
                assert_eq!(choose(protocol, all, PlainQuery).unwrap(), (true, true), "{protocol} {write:?}");
            }
        }
    }

    #[test]
    fn broken_rules_of_misses_and_of_fills_are_found() {
        let broken = |rule| plain("hmg", WritePolicy::Through, Some(rule));
        assert!(!broken(BrokenRule::StorePassesMiss).0 && !broken(BrokenRule::SharerRecordedAtRequest).0);
        use BrokenRule::{AtomicKeepsFill, FillSurvivesAcquire, LoadMergesAcrossAcquire, StoreKeepsFill};
        for rule in [AtomicKeepsFill, FillSurvivesAcquire, LoadMergesAcrossAcquire, StoreKeepsFill] {
            assert_eq!(broken(rule), (true, false), "{rule:?}");
        }
    }
}
