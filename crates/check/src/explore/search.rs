//! Breadth-first search over the states of a world.
//!
//! States are kept in the form of 128-bit fingerprints (collision probability among 10^8 states: below 10^-21),
//! therefore a search holds complete states only at its frontier. Random walks follow a search with an exhausted
//! budget.

use super::state::Violation;
use crate::litmus::FinalState;
use crate::random::Dice;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};
use tombolo_types::StopFlag;

/// Maximum steps in a walk: more than any program without loops needs.
const WALK_STEPS: usize = 10_000;

/// States kept for reuse of their memory: with few exceptions at least the number of successors per state.
const SPARE: usize = 64;

/// A searchable transition system: states and the steps between them.
pub(super) trait World {
    /// A state; equal states have equal hashes.
    type State: Clone + Default + Hash;
    /// A step.
    type Step: Copy;

    /// Initial state.
    fn initial(&self) -> Self::State;

    /// Replaces the contents of `steps` by every step enabled in `state`, in a fixed order. Empty when no further step
    /// is required.
    fn list_steps(&self, state: &Self::State, steps: &mut Vec<Self::Step>);

    /// Executes `step` and all forced successors. Returns false if the step must wait: then `state` is unusable.
    fn take(&self, step: Self::Step, state: &mut Self::State) -> bool;

    /// Violation in `state`; `is_final` is set if the state has no successor.
    fn violation(&self, state: &Self::State, is_final: bool) -> Option<Violation>;

    /// Final states visible in a state without successors, for each possible observer of memory.
    fn final_states(&self, state: &Self::State) -> Vec<FinalState>;

    /// State count after which a search gives up.
    fn max_states(&self) -> usize;

    /// Number of random executions drawn after the search gives up.
    fn walks(&self) -> usize;
}

/// Findings of a search.
pub(super) struct SearchResult<S> {
    pub(super) outcomes: BTreeSet<FinalState>,
    pub(super) states: usize,
    /// The first violation in step order, with the shortest path to it.
    pub(super) violation: Option<(Violation, Vec<S>)>,
    /// Set if the budget ended the search.
    pub(super) bounded: bool,
}

/// Predecessor of a state.
#[derive(Clone, Copy)]
struct Predecessor<S> {
    parent: u32,
    step: Option<S>,
}

/// Visits every state reachable by `machine`, until a violation is found, the budget is exhausted, or the calling
/// thread's [`StopFlag`] is set; the search is then bounded, without random executions.
pub(super) fn search<W: World>(machine: &W, forbidden: &dyn Fn(&FinalState) -> bool) -> SearchResult<W::Step> {
    let mut found = SearchResult { outcomes: BTreeSet::new(), states: 0, violation: None, bounded: false };
    let initial = machine.initial();
    let mut seen = FxHashMap::default();
    seen.insert(fingerprint(&initial), ());
    let mut origins = vec![Predecessor { parent: 0, step: None }];
    let mut frontier = VecDeque::from([(0_u32, initial)]);
    // Retired states, kept for reuse of their memory.
    let mut spare: Vec<W::State> = Vec::new();
    let (mut steps, stop) = (Vec::new(), StopFlag::current());
    while let Some((index, state)) = frontier.pop_front() {
        found.states += 1;
        if stop.is_set() {
            found.bounded = true;
            return found;
        }
        let mut is_final = true;
        machine.list_steps(&state, &mut steps);
        for &step in &steps {
            let mut next = spare.pop().unwrap_or_default();
            next.clone_from(&state);
            let is_taken = machine.take(step, &mut next);
            is_final &= !is_taken;
            if is_taken && seen.insert(fingerprint(&next), ()).is_none() {
                origins.push(Predecessor { parent: index, step: Some(step) });
                frontier.push_back((origins.len() as u32 - 1, next));
            } else {
                spare.push(next);
            }
        }
        if let Some(violation) = judge(machine, &state, is_final, forbidden, &mut found.outcomes) {
            found.violation = Some((violation, path_to(&origins, index)));
            return found;
        }
        if found.states + frontier.len() > machine.max_states() {
            found.bounded = true;
            walk(machine, forbidden, &mut found);
            return found;
        }
        if spare.len() < SPARE {
            spare.push(state);
        }
    }
    if found.outcomes.is_empty() {
        found.violation = Some((Violation::Endless, Vec::new()));
    }
    found
}

/// Draws random executions from the start to the end, to sample further final states after a search has given up. The
/// result is identical on every run.
fn walk<W: World>(machine: &W, forbidden: &dyn Fn(&FinalState) -> bool, found: &mut SearchResult<W::Step>) {
    for walk in 0..machine.walks() {
        let mut dice = Dice::new(machine.walks() as u64, walk as u64);
        let (mut state, mut taken) = (machine.initial(), Vec::new());
        while taken.len() < WALK_STEPS {
            found.states += 1;
            let next = step_at_random(machine, &state, &mut dice);
            if let Some(violation) = judge(machine, &state, next.is_none(), forbidden, &mut found.outcomes) {
                found.violation = Some((violation, taken));
                return;
            }
            let Some((step, next)) = next else { break };
            taken.push(step);
            state = next;
        }
    }
}

/// Picks a random step among the steps that need not wait.
fn step_at_random<W: World>(machine: &W, state: &W::State, dice: &mut Dice) -> Option<(W::Step, W::State)> {
    let mut steps = Vec::new();
    machine.list_steps(state, &mut steps);
    while !steps.is_empty() {
        let step = steps.swap_remove(dice.below(steps.len()));
        let mut next = state.clone();
        if machine.take(step, &mut next) {
            return Some((step, next));
        }
    }
    None
}

fn judge<W: World>(
    machine: &W,
    state: &W::State,
    is_final: bool,
    forbidden: &dyn Fn(&FinalState) -> bool,
    outcomes: &mut BTreeSet<FinalState>,
) -> Option<Violation> {
    if let Some(violation) = machine.violation(state, is_final) {
        return Some(violation);
    }
    if !is_final {
        return None;
    }
    let mut violation = None;
    for outcome in machine.final_states(state) {
        violation = violation.or_else(|| forbidden(&outcome).then_some(Violation::Forbidden));
        outcomes.insert(outcome);
    }
    violation
}

fn path_to<S: Copy>(origins: &[Predecessor<S>], mut index: u32) -> Vec<S> {
    let mut steps = Vec::new();
    while let Predecessor { parent, step: Some(step) } = origins[index as usize] {
        steps.push(step);
        index = parent;
    }
    steps.reverse();
    steps
}

/// A 128-bit fingerprint: two 64-bit lanes, each folding the input's product with a separate odd constant.
fn fingerprint(state: &impl Hash) -> u128 {
    let mut hasher = FingerprintHasher { low: 0x243f_6a88_85a3_08d3, high: 0x1319_8a2e_0370_7344 };
    state.hash(&mut hasher);
    u128::from(hasher.high) << 64 | u128::from(hasher.low)
}

/// Constants: binary digits of pi.
struct FingerprintHasher {
    low: u64,
    high: u64,
}

fn fold(lane: u64, input: u64, odd: u64) -> u64 {
    let product = u128::from(lane ^ input).wrapping_mul(u128::from(odd));
    (product as u64) ^ ((product >> 64) as u64)
}

impl Hasher for FingerprintHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        // Adding 1 prevents a run of zeros from leaving a lane unchanged.
        self.low = fold(self.low.wrapping_add(1), value, 0xa409_3822_299f_31d1);
        self.high = fold(self.high.wrapping_add(1), value.rotate_left(32), 0x082e_fa98_ec4e_6c89);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.low ^ self.high
    }
}
