//! Partial order: of the steps a state can take, a part that is enough.
//!
//! Regions meet only in threads: an L2 handles each by itself, and channels keep no order between them. So
//! the steps of one region may all come before everything else, if no thread can add to them, or mark what
//! they send for its release, without waiting for one of them first. The parts are closed sets of regions
//! and threads (persistent sets; Godefroid, "Partial-Order Methods for the Verification of Concurrent
//! Systems", 1996):
//!
//! - with a region, every thread that may still access it or synchronise, or one of the regions that the
//!   thread waits for;
//! - with a thread, the others of its SM; the region of a miss that its next load meets in the L1; all regions
//!   if it is about to invalidate L2s.
//!
//! A step that lets a release begin may come early though others' sends do not commute with that: what is
//! sent later is not waited for, and a thread that need not wait still may.

use super::machine::Machine;
use super::state::{Awaited, Body, Channel, Hold, State};
use super::step::Step;
use super::values::mask_of;
use crate::litmus::{Instruction, Operand, Register, Update};
use tombolo_protocol::Coherence;
use tombolo_protocol::front::Stage;
use tombolo_protocol::l1::{self, Load};

/// A set of regions and of threads: bit `i` is number `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    regions: u8,
    threads: u8,
}

/// What a thread can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is done.
    Done,
    /// It can take a step, or a request of its own plan is under way.
    Ready,
    /// It waits for steps of each of these regions.
    Waits(u8),
    /// It waits for the other threads of its CTA.
    Barrier,
}

impl<P: Coherence> Machine<'_, P> {
    /// The smallest part of `steps` found that is enough; all of them where none is.
    pub(super) fn enough(&self, state: &State, mut steps: Vec<Step>) -> Vec<Step> {
        if self.loops || steps.len() < 2 {
            return steps;
        }
        let standings: Vec<Standing> = (0..state.threads.len()).map(|thread| self.standing(state, thread)).collect();
        // A thread that must wait has no step; a part of such alone would be an end that is none.
        let waits = |step: &Step| match *step {
            Step::Thread { thread, .. } => standings[thread as usize] != Standing::Ready,
            Step::Deliver { .. } | Step::Evict { .. } | Step::Replace { .. } => false,
        };
        steps.retain(|step| !waits(step));
        let mut best: Option<(usize, Part)> = None;
        let mut seeds: Vec<Part> = Vec::new();
        for step in &steps {
            let seed = self.node(state, *step);
            let must_happen = matches!(step, Step::Thread { .. } | Step::Deliver { .. });
            if must_happen && !seeds.contains(&seed) {
                seeds.push(seed);
            }
        }
        for seed in seeds {
            let part = self.closed(state, &standings, seed);
            let size = steps.iter().filter(|step| part.holds(self.node(state, **step))).count();
            if best.is_none_or(|(least, _)| size < least) {
                best = Some((size, part));
            }
        }
        match best {
            Some((size, part)) if size < steps.len() => {
                steps.into_iter().filter(|step| part.holds(self.node(state, *step))).collect()
            }
            _ => steps,
        }
    }

    fn region_bit(&self, line: u8) -> u8 {
        1 << self.layout.region(line as usize)
    }

    /// The region or thread that a step belongs to.
    fn node(&self, state: &State, step: Step) -> Part {
        let of_thread = |thread: u8| Part { threads: 1 << thread, regions: 0 };
        let of_line = |line: u8| Part { regions: self.region_bit(line), threads: 0 };
        match step {
            Step::Thread { thread, .. } | Step::Deliver { channel: Channel::Plan { thread, .. }, .. } => {
                of_thread(thread)
            }
            Step::Deliver { channel, .. } => {
                let message = state.messages.iter().find(|message| message.channel == channel);
                of_line(message.map_or(0, |message| message.line))
            }
            Step::Evict { line, .. } | Step::Replace { line, .. } => of_line(line),
        }
    }

    /// The least closed part that holds `part`.
    fn closed(&self, state: &State, standings: &[Standing], mut part: Part) -> Part {
        loop {
            let before = part;
            for thread in 0..standings.len() {
                let adds = self.may_add(state, thread, part.regions);
                if adds || self.has_mate_in(thread, part.threads) {
                    self.include(standings, thread, &mut part);
                }
                if part.threads >> thread & 1 != 0 {
                    part.regions |= self.touched(state, thread);
                }
            }
            if part == before {
                return part;
            }
        }
    }

    /// Whether a thread may still access one of `regions`, or synchronise what is sent in them.
    fn may_add(&self, state: &State, thread: usize, regions: u8) -> bool {
        let accesses = self.accesses_left(state, thread);
        let accessed = (0..self.lines as u8).filter(|line| accesses >> line & 1 != 0);
        let accessed = accessed.fold(0, |set, line| set | self.region_bit(line));
        accessed & regions != 0 || (regions != 0 && self.synchronises(state, thread))
    }

    fn has_mate_in(&self, thread: usize, threads: u8) -> bool {
        let mates = (0..self.sm_of.len()).filter(|&other| other != thread && self.sm_of[other] == self.sm_of[thread]);
        mates.fold(0, |set, other| set | 1 << other) & threads != 0
    }

    /// Adds what must take a step before `thread` can: itself, or a region it waits for.
    fn include(&self, standings: &[Standing], thread: usize, part: &mut Part) {
        match standings[thread] {
            Standing::Done => {}
            Standing::Ready => part.threads |= 1 << thread,
            // It waits for nothing that is known here: no part is enough.
            Standing::Waits(0) => *part = Part { regions: u8::MAX, threads: u8::MAX },
            Standing::Waits(regions) if regions & part.regions != 0 => {}
            Standing::Waits(regions) => part.regions |= regions & regions.wrapping_neg(),
            Standing::Barrier => {
                let cta = self.program.threads[thread].placement;
                for mate in (0..standings.len()).filter(|&mate| self.program.threads[mate].placement == cta) {
                    match standings[mate] {
                        Standing::Waits(regions) => part.regions |= regions,
                        Standing::Ready => part.threads |= 1 << mate,
                        Standing::Done | Standing::Barrier => {}
                    }
                }
            }
        }
    }

    /// Regions that the next step of a ready thread meets.
    fn touched(&self, state: &State, thread: usize) -> u8 {
        match self.stage(state, thread) {
            Some(Stage::Issue) => {
                let location = self.instruction(state, thread).and_then(Instruction::location);
                let line = location.map(|location| self.layout.cell(location).line);
                let met = line.filter(|&line| state.l1[self.l1_index(self.sm_of[thread], line)].pending.is_some());
                met.map_or(0, |line| self.region_bit(line))
            }
            Some(Stage::Acquire(_)) if self.acquire_is_ready(state, thread) => 0,
            Some(Stage::Acquire(_) | Stage::Release(_)) => u8::MAX,
            Some(Stage::AwaitLoads | Stage::AwaitResult) | None => 0,
        }
    }

    fn standing(&self, state: &State, thread: usize) -> Standing {
        let Some(instruction) = self.instruction(state, thread) else { return Standing::Done };
        let all = || self.awaited(state, self.registers_of(thread));
        let own = || self.awaited(state, mentioned(instruction).map(|one| self.flat(thread, one) as usize));
        match self.stage(state, thread) {
            None if matches!(instruction, Instruction::Barrier { .. }) => match all() {
                0 => Standing::Barrier,
                regions => Standing::Waits(regions),
            },
            None | Some(Stage::AwaitResult) => Standing::Waits(own()),
            Some(Stage::AwaitLoads) => Standing::Waits(all()),
            Some(Stage::Issue) if !self.can_issue(state, thread) => Standing::Waits(own()),
            Some(Stage::Issue) => match self.stalled_on(state, thread, instruction) {
                None => Standing::Ready,
                Some(line) => Standing::Waits(self.region_bit(line)),
            },
            Some(Stage::Acquire(_) | Stage::Release(_)) if self.is_asking(state, thread) => Standing::Ready,
            Some(Stage::Acquire(_) | Stage::Release(_)) => match self.watched_regions(state, thread) {
                0 => Standing::Ready,
                regions => Standing::Waits(regions),
            },
        }
    }

    /// The line whose pending miss a load must wait for. Nothing else that has its operands waits.
    fn stalled_on(&self, state: &State, thread: usize, instruction: &Instruction) -> Option<u8> {
        let Instruction::Load { order, location, .. } = *instruction else { return None };
        let at = self.layout.cell(location);
        let mut slot = state.l1[self.l1_index(self.sm_of[thread], at.line)];
        let load = l1::load(&self.protocol, &mut slot.line, slot.pending, mask_of(at.cell), order.scope);
        (load == Load::Stall).then_some(at.line)
    }

    /// Whether a request of the thread's plan is on its way to an L2.
    fn is_asking(&self, state: &State, thread: usize) -> bool {
        state
            .messages
            .iter()
            .any(|message| matches!(message.channel, Channel::Plan { thread: of, .. } if of as usize == thread))
    }

    /// Regions of the results that these registers await.
    fn awaited(&self, state: &State, registers: impl Iterator<Item = usize>) -> u8 {
        registers.filter_map(|register| state.registers[register].awaits).fold(0, |regions, awaited| match awaited {
            Awaited::Load { line, .. } | Awaited::Atomic { line, .. } => regions | self.region_bit(line),
        })
    }

    /// Regions of what the thread's release waits for.
    fn watched_regions(&self, state: &State, thread: usize) -> u8 {
        let mut regions = 0;
        for message in &state.messages {
            let watched = match message.body {
                Body::Order(order) => order.watched,
                Body::Invalidate { watched } => watched,
                Body::Downgrade | Body::Fill { .. } | Body::Old(_) | Body::Act(_) => 0,
            };
            if watched >> thread & 1 != 0 {
                regions |= self.region_bit(message.line);
            }
        }
        for held in &state.held {
            let watched = match held.how {
                Hold::Park(order) => order.watched,
                Hold::Flush(threads) => threads,
                Hold::Wait(_) => 0,
            };
            if watched >> thread & 1 != 0 {
                regions |= self.region_bit(held.line);
            }
        }
        regions
    }
}

impl Part {
    fn holds(self, node: Part) -> bool {
        node.regions & !self.regions == 0 && node.threads & !self.threads == 0
    }
}

/// The registers that an instruction reads or writes: it waits for each of them.
fn mentioned(instruction: &Instruction) -> impl Iterator<Item = Register> {
    let of = |operand: Operand| match operand {
        Operand::Register(register) => Some(register),
        Operand::Value(_) => None,
    };
    let registers = match *instruction {
        Instruction::Load { into, .. } => [Some(into), None, None],
        Instruction::Store { value, .. } => [of(value), None, None],
        Instruction::Atomic { into, update, .. } => match update {
            Update::Apply(_, operand) | Update::Exchange(operand) => [into, of(operand), None],
            Update::CompareAndSwap { compare, new } => [into, of(compare), of(new)],
        },
        Instruction::Move { into, value } => [Some(into), of(value), None],
        Instruction::Compute { into, left, right, .. } => [Some(into), of(left), of(right)],
        Instruction::Branch { left, right, .. } => [of(left), of(right), None],
        Instruction::Fence { .. } | Instruction::Barrier { .. } | Instruction::Jump { .. } => [None; 3],
    };
    registers.into_iter().flatten()
}
