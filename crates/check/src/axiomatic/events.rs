//! Events in a straight-line program, and the event relations fixed for all candidate executions.
//!
//! Event `l` is the initial write to location `l`. The threads' events follow, in program order within each thread. An
//! atomic contributes a read and then a write.

use super::ModelError;
use super::barriers::{Arrival, Group, Grouping};
use super::paths::PathStep;
use super::relation::{CAPACITY, Relation, Set, has, members, only};
use super::symbolic::{Assumption, Expression, Expressions};
use crate::litmus::{
    BarrierRole, Instruction, LocationDeclaration, Operand, Program, Thread, ThreadPlacement, Update, Value,
};
use tombolo_types::{Order, Semantics};

/// Effect of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventKind {
    /// Reads a location (an index).
    Read(usize),
    /// Writes a location (an index).
    Write(usize),
    Fence,
    Barrier,
    KernelBoundary,
}

/// An event in a thread, or an initial write, which belongs to no thread.
#[derive(Clone, Copy, Debug)]
struct MemoryEvent {
    kind: EventKind,
    order: Order,
    /// Index of the thread.
    thread: Option<usize>,
    placement: ThreadPlacement,
}

impl MemoryEvent {
    fn location(&self) -> Option<usize> {
        match self.kind {
            EventKind::Read(location) | EventKind::Write(location) => Some(location),
            EventKind::Fence | EventKind::Barrier | EventKind::KernelBoundary => None,
        }
    }

    fn strong(&self) -> bool {
        self.order.semantics != Semantics::Weak
    }

    /// True if each event's scope includes the other event's thread.
    fn includes(&self, other: &MemoryEvent) -> bool {
        self.placement.reaches(self.order.scope, other.placement)
            && other.placement.reaches(other.order.scope, self.placement)
    }
}

/// The events of a single straight-line program with all static relations.
///
/// Arrays indexed by event have [`CAPACITY`] entries; entries for fences, barriers and kernel boundaries are unused.
#[derive(Debug)]
pub(super) struct Events {
    events: Vec<MemoryEvent>,
    /// Number of locations, equal to the number of initial writes, the first events in the list.
    pub(super) locations: usize,
    /// Program order, irreflexive.
    pub(super) program_order: Relation,
    /// Program order between accesses to equal locations.
    pub(super) program_order_location: Relation,
    /// Symmetric: ordered by program order, or both strong with mutual scope inclusion. Memory operations must also
    /// access the identical location.
    pub(super) morally_strong: Relation,
    /// Event pairs in two threads: an arrival at a barrier with each waiting arrival in its group, and equal occurrences
    /// of a kernel boundary in any two threads.
    pub(super) barrier: Relation,
    /// Per write: heads of release patterns with this write at the end.
    pub(super) release_heads: [Set; CAPACITY],
    /// Per read: heads of acquire patterns with this read at the beginning.
    pub(super) acquire_heads: [Set; CAPACITY],
    /// Per read of an atomic: the write of this atomic.
    pub(super) atomic_write: [Option<u8>; CAPACITY],
    /// Per read: the candidate source writes, reduced by the exclusions due to program order alone.
    pub(super) sources: [Set; CAPACITY],
    /// Per write: the reads with an influence on the written value or on the write's execution.
    pub(super) depends: [Set; CAPACITY],
    /// Per location: all writes, including the initial write.
    pub(super) writes: Vec<Set>,
    /// Per location: all accesses, including the initial write.
    pub(super) accesses: Vec<Set>,
    /// All reads.
    pub(super) reads: Set,
    /// Morally strong pairs of `fence.sc`, the smaller event first.
    pub(super) fence_pairs: Vec<(usize, usize)>,
    /// Per write: the written value.
    pub(super) written: Vec<Expression>,
    /// Per thread, per register: the final value.
    pub(super) registers: Vec<Vec<Expression>>,
    /// Branch conditions that must hold for the threads to follow the chosen paths.
    pub(super) assumptions: Vec<Assumption>,
    pub(super) expressions: Expressions,
    /// Locations with typed accesses.
    typed: Vec<(usize, LocationDeclaration)>,
}

impl Events {
    /// Lays out the events in `program` with each thread on a path from `paths`, and barriers that open with `groups`.
    pub(super) fn new(program: &Program, paths: &[&[PathStep]], groups: &Grouping) -> Result<Events, ModelError> {
        let size = program.locations.len() + paths_size(program, paths);
        if size > CAPACITY {
            return Err(ModelError::Size { events: size, limit: CAPACITY });
        }
        let mut events = Events::initial(program);
        for (index, (thread, path)) in program.threads.iter().zip(paths).enumerate() {
            Executor::new(&mut events, index, thread).run(path);
        }
        events.relate();
        groups.iter().for_each(|group| events.meet(group));
        Ok(events)
    }

    /// Contains only the initial writes.
    fn initial(program: &Program) -> Events {
        let mut events = Events {
            events: Vec::new(),
            locations: program.locations.len(),
            program_order: Relation::EMPTY,
            program_order_location: Relation::EMPTY,
            morally_strong: Relation::EMPTY,
            barrier: Relation::EMPTY,
            release_heads: [0; CAPACITY],
            acquire_heads: [0; CAPACITY],
            atomic_write: [None; CAPACITY],
            sources: [0; CAPACITY],
            depends: [0; CAPACITY],
            writes: vec![0; program.locations.len()],
            accesses: vec![0; program.locations.len()],
            reads: 0,
            fence_pairs: Vec::new(),
            written: Vec::new(),
            registers: Vec::new(),
            assumptions: Vec::new(),
            expressions: Expressions::default(),
            typed: Vec::new(),
        };
        let declarations = program.locations.iter().cloned().enumerate();
        events.typed.extend(declarations.filter(|(_, declaration)| declaration.value_type.is_some()));
        for (location, declaration) in program.locations.iter().enumerate() {
            let value = events.expressions.constant(declaration.initial);
            let placement = ThreadPlacement::Cta { gpu: tombolo_types::GpuId(0), cta: 0 };
            let event = MemoryEvent { kind: EventKind::Write(location), order: Order::WEAK, thread: None, placement };
            events.push(event, value);
        }
        events
    }

    /// Adds an event; `value` is the written value for a write and is ignored otherwise.
    fn push(&mut self, event: MemoryEvent, value: Expression) -> usize {
        let index = self.events.len();
        if let Some(location) = event.location() {
            self.accesses[location] |= only(index);
        }
        match event.kind {
            EventKind::Write(location) => self.writes[location] |= only(index),
            EventKind::Read(_) => self.reads |= only(index),
            EventKind::Fence | EventKind::Barrier | EventKind::KernelBoundary => {}
        }
        self.events.push(event);
        self.written.push(value);
        index
    }

    /// The location accessed by `event`. Panics on fences, barriers and kernel boundaries.
    pub(super) fn location(&self, event: usize) -> usize {
        self.events[event].location().expect("only reads and writes are asked for their location")
    }

    fn relate(&mut self) {
        for first in self.locations..self.events.len() {
            for second in self.locations..self.events.len() {
                self.relate_pair(first, second);
            }
        }
        for event in self.locations..self.events.len() {
            match self.events[event].kind {
                EventKind::Write(location) => self.release_heads[event] = self.heads_of_release(event, location),
                EventKind::Read(location) => {
                    self.acquire_heads[event] = self.heads_of_acquire(event, location);
                    self.sources[event] = self.sources_of(event, location);
                }
                EventKind::Fence | EventKind::Barrier | EventKind::KernelBoundary => {}
            }
        }
    }

    fn relate_pair(&mut self, first: usize, second: usize) {
        let (a, b) = (&self.events[first], &self.events[second]);
        let ordered = first != second && a.thread == b.thread;
        let overlap = match (a.location(), b.location()) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        let both_strong = first != second && a.strong() && b.strong() && a.includes(b);
        let both_sc = [a, b].iter().all(|event| event.order.semantics == Semantics::SequentiallyConsistent);
        let same_boundary = first != second && self.same_boundary(first, second);
        if ordered && first < second {
            self.program_order.add(first, second);
            if a.location().is_some() && a.location() == b.location() {
                self.program_order_location.add(first, second);
            }
        }
        if overlap && (ordered || both_strong) {
            self.morally_strong.add(first, second);
            if both_sc && first < second {
                self.fence_pairs.push((first, second));
            }
        }
        if same_boundary {
            self.barrier.add(first, second);
        }
    }

    /// True if both events are one kernel boundary, of two threads.
    fn same_boundary(&self, first: usize, second: usize) -> bool {
        let (a, b) = (&self.events[first], &self.events[second]);
        let are_boundaries = [a, b].iter().all(|event| event.kind == EventKind::KernelBoundary);
        are_boundaries && a.thread != b.thread && self.rank(first) == self.rank(second)
    }

    /// Number of earlier events in the thread with an equal kind.
    fn rank(&self, event: usize) -> usize {
        let this = &self.events[event];
        let alike = |other: &&MemoryEvent| other.thread == this.thread && other.kind == this.kind;
        self.events[..event].iter().filter(alike).count()
    }

    /// Relates each arrival in `group` with the arrivals of further threads that wait.
    fn meet(&mut self, group: &Group) {
        for from in group {
            for to in group.iter().filter(|to| to.thread != from.thread && to.role == BarrierRole::Sync) {
                self.barrier.add(self.arrival(*from), self.arrival(*to));
            }
        }
    }

    /// Event of an arrival at a barrier.
    fn arrival(&self, arrival: Arrival) -> usize {
        let of_thread = |event: &usize| {
            let event = &self.events[*event];
            event.thread == Some(arrival.thread) && event.kind == EventKind::Barrier
        };
        let event = (self.locations..self.events.len()).filter(of_thread).nth(arrival.rank);
        event.expect("groups have arrivals of these paths alone")
    }

    /// Heads of release patterns ending at `write`: a release write, alone or with a later strong write to its
    /// location; a release fence with a later strong write.
    fn heads_of_release(&self, write: usize, location: usize) -> Set {
        let releases = |event: usize| self.events[event].order.semantics.releases();
        let mut heads = if releases(write) { only(write) } else { 0 };
        if self.events[write].strong() {
            for earlier in (self.locations..write).filter(|earlier| self.program_order.holds(*earlier, write)) {
                let head = matches!(self.events[earlier].kind, EventKind::Fence)
                    || self.events[earlier].kind == EventKind::Write(location);
                if head && releases(earlier) {
                    heads |= only(earlier);
                }
            }
        }
        heads
    }

    /// Heads of acquire patterns starting at `read`: an acquire read, alone or with an earlier strong read from its
    /// location; an acquire fence with an earlier strong read.
    fn heads_of_acquire(&self, read: usize, location: usize) -> Set {
        let acquires = |event: usize| self.events[event].order.semantics.acquires();
        let mut heads = if acquires(read) { only(read) } else { 0 };
        if self.events[read].strong() {
            for later in members(self.program_order.rows[read]) {
                let head = matches!(self.events[later].kind, EventKind::Fence)
                    || self.events[later].kind == EventKind::Read(location);
                if head && acquires(later) {
                    heads |= only(later);
                }
            }
        }
        heads
    }

    /// Candidate source writes for `read`. A thread never reads a later write by itself, and never bypasses the last
    /// earlier write by itself.
    fn sources_of(&self, read: usize, location: usize) -> Set {
        let own = |event: &usize| self.events[*event].thread == self.events[read].thread;
        let last_own = members(self.writes[location]).filter(own).filter(|write| *write < read).last();
        let others = members(self.writes[location]).filter(|write| !own(write));
        let others = others.filter(|write| last_own.is_none() || *write >= self.locations);
        others.chain(last_own).fold(0, |set, write| set | only(write))
    }

    /// Returns an error if an event writes a value outside the range for its location's type. `written` is indexed by
    /// event.
    pub(super) fn check_values(&self, written: &[Value]) -> Result<(), ModelError> {
        for (location, declaration) in &self.typed {
            let fits = |value: Value| declaration.value_type.is_none_or(|known| known.holds(value));
            if let Some(write) = members(self.writes[*location]).find(|write| !fits(written[*write])) {
                return Err(ModelError::Value { location: declaration.name.clone(), value: written[write] });
            }
        }
        Ok(())
    }

    /// Number of events.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// True if `first` and `second` are morally strong.
    pub(super) fn strong_pair(&self, first: usize, second: usize) -> bool {
        has(self.morally_strong.rows[first], second)
    }
}

/// Total event count along `paths`.
fn paths_size(program: &Program, paths: &[&[PathStep]]) -> usize {
    let of_step = |thread: &Thread, step: &PathStep| match thread.code[step.at] {
        Instruction::Load { .. }
        | Instruction::Store { .. }
        | Instruction::Fence { .. }
        | Instruction::Barrier { .. }
        | Instruction::KernelBoundary => 1,
        Instruction::Atomic { .. } => 2,
        Instruction::Move { .. }
        | Instruction::Compute { .. }
        | Instruction::Branch { .. }
        | Instruction::Jump { .. } => 0,
    };
    let threads = program.threads.iter().zip(paths);
    threads.map(|(thread, path)| path.iter().map(|step| of_step(thread, step)).sum::<usize>()).sum()
}

/// Executes a single thread symbolically.
struct Executor<'a> {
    events: &'a mut Events,
    index: usize,
    thread: &'a Thread,
    registers: Vec<Expression>,
    /// The reads on which the branches executed up to this point depend.
    control: Set,
}

impl<'a> Executor<'a> {
    fn new(events: &'a mut Events, index: usize, thread: &'a Thread) -> Executor<'a> {
        let registers = thread.registers.iter().map(|register| events.expressions.constant(register.initial)).collect();
        Executor { events, index, thread, registers, control: 0 }
    }

    fn run(mut self, path: &[PathStep]) {
        for step in path {
            self.step(self.thread.code[step.at], step.taken);
        }
        self.events.registers.push(self.registers);
    }

    fn step(&mut self, instruction: Instruction, taken: bool) {
        match instruction {
            Instruction::Load { order, into, location } => {
                let (_, value) = self.read(usize::from(location.0), order);
                self.registers[usize::from(into.0)] = value;
            }
            Instruction::Store { order, location, value } => {
                let value = self.operand(value);
                self.write(usize::from(location.0), order, value);
            }
            Instruction::Atomic { order, into, location, update } => {
                let (read, old) = self.read(usize::from(location.0), order);
                let new = self.update(old, update);
                let write = self.write(usize::from(location.0), order, new);
                self.events.atomic_write[read] = Some(write as u8);
                if let Some(into) = into {
                    self.registers[usize::from(into.0)] = old;
                }
            }
            Instruction::Fence { order } => self.mark(EventKind::Fence, order),
            Instruction::Barrier { .. } => self.mark(EventKind::Barrier, Order::WEAK),
            Instruction::KernelBoundary => self.mark(EventKind::KernelBoundary, Order::WEAK),
            Instruction::Move { into, value } => self.registers[usize::from(into.0)] = self.operand(value),
            Instruction::Compute { operation, into, left, right } => {
                let (left, right) = (self.operand(left), self.operand(right));
                self.registers[usize::from(into.0)] = self.events.expressions.compute(operation, left, right);
            }
            Instruction::Branch { comparison, left, right, .. } => {
                let (left, right) = (self.operand(left), self.operand(right));
                self.control |= self.events.expressions.reads(left) | self.events.expressions.reads(right);
                self.events.assumptions.push(Assumption { comparison, left, right, holds: taken });
            }
            Instruction::Jump { .. } => {}
        }
    }

    fn operand(&mut self, operand: Operand) -> Expression {
        match operand {
            Operand::Register(register) => self.registers[usize::from(register.0)],
            Operand::Value(value) => self.events.expressions.constant(value),
        }
    }

    fn update(&mut self, old: Expression, update: Update) -> Expression {
        match update {
            Update::Apply(operation, operand) => {
                let operand = self.operand(operand);
                self.events.expressions.compute(operation, old, operand)
            }
            Update::Exchange(operand) => self.operand(operand),
            Update::CompareAndSwap { compare, new } => {
                let (compare, new) = (self.operand(compare), self.operand(new));
                self.events.expressions.swap(old, compare, new)
            }
        }
    }

    fn event(&self, kind: EventKind, order: Order) -> MemoryEvent {
        MemoryEvent { kind, order, thread: Some(self.index), placement: self.thread.placement }
    }

    fn read(&mut self, location: usize, order: Order) -> (usize, Expression) {
        let event = self.event(EventKind::Read(location), order);
        let value = self.events.expressions.read(self.events.len());
        (self.events.push(event, value), value)
    }

    fn write(&mut self, location: usize, order: Order, value: Expression) -> usize {
        let event = self.event(EventKind::Write(location), order);
        let write = self.events.push(event, value);
        self.events.depends[write] = self.events.expressions.reads(value) | self.control;
        write
    }

    fn mark(&mut self, kind: EventKind, order: Order) {
        let none = self.events.expressions.constant(0);
        let event = self.event(kind, order);
        self.events.push(event, none);
    }
}
