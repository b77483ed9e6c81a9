//! Comparison of the axiomatic model with a slow model written directly from the definitions: every read-from, every
//! partial coherence order and every fence order is tried, and each axiom is evaluated on matrices of booleans.

use std::collections::BTreeSet;
use tombolo_check::axiomatic::{Limits, outcomes};
use tombolo_check::litmus::{Assignments, FinalState, Instruction, Program, ThreadPlacement, Value, read};
use tombolo_check::random;
use tombolo_types::{Order, Scope, Semantics};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Read,
    Write,
    Fence,
    /// A kernel boundary with this many kernels before it.
    Boundary(usize),
}

#[derive(Clone, Copy, Debug)]
struct Event {
    kind: Kind,
    location: Option<usize>,
    order: Order,
    /// Thread and index of the instruction; `None` for an initial write.
    from: Option<(usize, usize)>,
}

#[derive(Clone, PartialEq, Eq)]
struct Matrix(Vec<Vec<bool>>);

impl Matrix {
    fn new(size: usize, holds: impl Fn(usize, usize) -> bool) -> Matrix {
        Matrix((0..size).map(|a| (0..size).map(|b| holds(a, b)).collect()).collect())
    }

    fn size(&self) -> usize {
        self.0.len()
    }

    fn at(&self, a: usize, b: usize) -> bool {
        self.0[a][b]
    }

    fn or(&self, other: &Matrix) -> Matrix {
        Matrix::new(self.size(), |a, b| self.at(a, b) || other.at(a, b))
    }

    fn and(&self, other: &Matrix) -> Matrix {
        Matrix::new(self.size(), |a, b| self.at(a, b) && other.at(a, b))
    }

    fn then(&self, other: &Matrix) -> Matrix {
        Matrix::new(self.size(), |a, b| (0..self.size()).any(|c| self.at(a, c) && other.at(c, b)))
    }

    fn inverse(&self) -> Matrix {
        Matrix::new(self.size(), |a, b| self.at(b, a))
    }

    fn or_equal(&self) -> Matrix {
        Matrix::new(self.size(), |a, b| a == b || self.at(a, b))
    }

    fn closed(&self) -> Matrix {
        let next = self.or(&self.then(self));
        if next == *self { next } else { next.closed() }
    }

    fn irreflexive(&self) -> bool {
        (0..self.size()).all(|a| !self.at(a, a))
    }

    fn within(&self, other: &Matrix) -> bool {
        self.and(other) == *self
    }

    fn is_empty(&self) -> bool {
        self.0.iter().flatten().all(|holds| !holds)
    }
}

/// The static part.
struct Model<'a> {
    program: &'a Program,
    events: Vec<Event>,
    po: Matrix,
    same: Matrix,
    strong: Matrix,
    rmw: Matrix,
}

impl Model<'_> {
    fn new(program: &Program) -> Model<'_> {
        let mut events: Vec<Event> = (0..program.locations.len())
            .map(|location| Event { kind: Kind::Write, location: Some(location), order: Order::WEAK, from: None })
            .collect();
        for (thread, code) in program.threads.iter().enumerate() {
            let mut kernel = 0;
            for (at, instruction) in code.code.iter().enumerate() {
                let location = instruction.location().map(|location| usize::from(location.0));
                let (kinds, order): (&[Kind], Order) = match *instruction {
                    Instruction::Load { order, .. } => (&[Kind::Read], order),
                    Instruction::Store { order, .. } => (&[Kind::Write], order),
                    Instruction::Atomic { order, .. } => (&[Kind::Read, Kind::Write], order),
                    Instruction::Fence { order } => (&[Kind::Fence], order),
                    Instruction::KernelBoundary => {
                        kernel += 1;
                        (&[Kind::Boundary(kernel)], Order::WEAK)
                    }
                    _ => continue,
                };
                events.extend(kinds.iter().map(|&kind| Event { kind, location, order, from: Some((thread, at)) }));
            }
        }
        let size = events.len();
        let thread = |event: usize| events[event].from.map(|(thread, _)| thread);
        let po = Matrix::new(size, |a, b| a < b && thread(a).is_some() && thread(a) == thread(b));
        let same = Matrix::new(size, |a, b| events[a].location.is_some() && events[a].location == events[b].location);
        let place = |event: usize| thread(event).map(|thread| program.threads[thread].placement);
        let includes = |a: usize, b: usize| match (place(a), place(b), events[a].order.scope) {
            (None, _, _) | (_, None, _) => false,
            (Some(_), Some(_), Scope::Sys) => true,
            (Some(ThreadPlacement::Cta { gpu, .. }), Some(ThreadPlacement::Cta { gpu: other, .. }), Scope::Gpu) => {
                gpu == other
            }
            (
                Some(ThreadPlacement::Cta { gpu, cta }),
                Some(ThreadPlacement::Cta { gpu: other, cta: mate }),
                Scope::Cta,
            ) => (gpu, cta) == (other, mate),
            (Some(ThreadPlacement::Host), _, Scope::Cta | Scope::Gpu) => panic!("a host thread has no such scope"),
            (Some(ThreadPlacement::Cta { .. }), Some(ThreadPlacement::Host), Scope::Cta | Scope::Gpu) => false,
        };
        let is_strong = |event: usize| events[event].order.semantics != Semantics::Weak;
        let strong = Matrix::new(size, |a, b| {
            let memory = events[a].location.is_some() && events[b].location.is_some();
            let both = a != b && is_strong(a) && is_strong(b) && includes(a, b) && includes(b, a);
            (po.at(a, b) || po.at(b, a) || both) && (!memory || same.at(a, b))
        });
        let rmw = Matrix::new(size, |a, b| {
            events[a].kind == Kind::Read && events[b].kind == Kind::Write && events[a].from == events[b].from
        });
        Model { program, events, po, same, strong, rmw }
    }

    fn of(&self, kind: Kind) -> Vec<usize> {
        (0..self.events.len()).filter(|event| self.events[*event].kind == kind).collect()
    }

    /// The identity on the events that satisfy `holds`.
    fn only(&self, holds: impl Fn(&Event) -> bool) -> Matrix {
        Matrix::new(self.events.len(), |a, b| a == b && holds(&self.events[a]))
    }

    /// Pairs that any coherence order may choose to order.
    fn write_pairs(&self) -> Vec<(usize, usize)> {
        let writes: Vec<usize> = self.of(Kind::Write).into_iter().filter(|w| self.events[*w].from.is_some()).collect();
        let pairs = writes.iter().flat_map(|a| writes.iter().map(move |b| (*a, *b)));
        pairs.filter(|(a, b)| a < b && self.same.at(*a, *b)).collect()
    }

    fn fence_pairs(&self) -> Vec<(usize, usize)> {
        let fences = self.of(Kind::Fence);
        let sc = |event: usize| self.events[event].order.semantics == Semantics::SequentiallyConsistent;
        let pairs = fences.iter().flat_map(|a| fences.iter().map(move |b| (*a, *b)));
        pairs.filter(|(a, b)| a < b && sc(*a) && sc(*b) && self.strong.at(*a, *b)).collect()
    }

    fn sources(&self, read: usize) -> Vec<usize> {
        self.of(Kind::Write).into_iter().filter(|write| self.same.at(read, *write)).collect()
    }

    /// Number of candidates to try.
    fn candidates(&self) -> usize {
        let sources: usize = self.of(Kind::Read).into_iter().map(|read| self.sources(read).len()).product();
        sources * 3_usize.pow(self.write_pairs().len() as u32) * 2_usize.pow(self.fence_pairs().len() as u32)
    }

    fn causality(&self, rf: &Matrix, sc: &Matrix) -> Matrix {
        let writes = self.only(|event| event.kind == Kind::Write);
        let reads = self.only(|event| event.kind == Kind::Read);
        let strong = self.only(|event| event.order.semantics != Semantics::Weak);
        let fences = self.only(|event| event.kind == Kind::Fence);
        let releases = self.only(|event| event.order.semantics.releases());
        let acquires = self.only(|event| event.order.semantics.acquires());
        let po_same = self.po.and(&self.same);
        let release = releases.then(&writes).then(&po_same.then(&writes).then(&strong).or_equal()).or(&releases
            .then(&fences)
            .then(&self.po)
            .then(&writes)
            .then(&strong));
        let acquire = (reads.then(&strong).then(&po_same).or_equal()).then(&reads).then(&acquires).or(&reads
            .then(&strong)
            .then(&self.po)
            .then(&fences)
            .then(&acquires));
        let morally = self.strong.and(rf);
        let observation = morally.then(&self.rmw.then(&morally).closed().or_equal());
        let synchronises = release.then(&observation).then(&acquire).and(&self.strong);
        let around = self.po.or_equal();
        let boundaries = Matrix::new(self.events.len(), |a, b| {
            matches!(self.events[a].kind, Kind::Boundary(_)) && self.events[a].kind == self.events[b].kind
        });
        let base = around.then(&synchronises.or(sc).or(&boundaries)).then(&around).closed();
        base.or(&observation.then(&base.or(&po_same)))
    }

    /// Checks the axioms that are independent from the coherence order; returns the causality order if they hold.
    fn consistent_reads(&self, rf: &Matrix, sc: &Matrix) -> Option<Matrix> {
        let causality = self.causality(rf, sc);
        let holds = sc.closed().irreflexive() && sc.then(&causality).irreflexive() && rf.then(&causality).irreflexive();
        holds.then_some(causality)
    }

    fn consistent(&self, rf: &Matrix, co: &Matrix, causality: &Matrix) -> bool {
        let writes = self.only(|event| event.kind == Kind::Write);
        let fr = rf.inverse().then(co);
        let causes = writes.then(causality).then(&writes).and(&self.same);
        let strong_fr = fr.and(&self.strong);
        let strong_co = co.and(&self.strong);
        let communication = rf.or(co).or(&fr).and(&self.strong);
        causes.within(co)
            && strong_fr.then(&strong_co).and(&self.rmw).is_empty()
            && communication.or(&self.po.and(&self.same)).closed().irreflexive()
            && fr.then(causality).irreflexive()
    }

    /// Values computed by every thread if the reads return the writes in `rf`. `None` if values depend on themselves.
    fn values(&self, sources: &[(usize, usize)]) -> Option<(Vec<Vec<Value>>, Vec<Value>)> {
        let mut written: Vec<Option<Value>> = vec![None; self.events.len()];
        for (location, declaration) in self.program.locations.iter().enumerate() {
            written[location] = Some(declaration.initial);
        }
        loop {
            let before = written.clone();
            let registers: Vec<_> =
                (0..self.program.threads.len()).map(|thread| self.execute(thread, sources, &mut written)).collect();
            if before == written {
                let registers: Option<Vec<Vec<Value>>> =
                    registers.into_iter().map(|of_thread| of_thread.into_iter().collect()).collect();
                let memory = (0..self.events.len())
                    .map(|event| if self.events[event].kind == Kind::Write { written[event] } else { Some(0) });
                return registers.zip(memory.collect());
            }
        }
    }

    /// Executes a single thread up to the known values, and records the written values.
    fn execute(&self, thread: usize, sources: &[(usize, usize)], written: &mut [Option<Value>]) -> Vec<Option<Value>> {
        let code = &self.program.threads[thread];
        let mut registers: Vec<Option<Value>> = code.registers.iter().map(|register| Some(register.initial)).collect();
        for (at, instruction) in code.code.iter().enumerate() {
            let event = |kind| {
                (0..self.events.len())
                    .find(|event| self.events[*event].from == Some((thread, at)) && self.events[*event].kind == kind)
                    .unwrap_or_else(|| panic!("{instruction:?} has no {kind:?}"))
            };
            let read = |written: &[Option<Value>]| {
                let source = sources.iter().find(|(read, _)| *read == event(Kind::Read));
                source.and_then(|(_, write)| written[*write])
            };
            let known: Vec<Value> = registers.iter().map(|value| value.unwrap_or(0)).collect();
            let operand_known = |operand: &tombolo_check::litmus::Operand| match operand {
                tombolo_check::litmus::Operand::Register(register) => registers[usize::from(register.0)].is_some(),
                tombolo_check::litmus::Operand::Value(_) => true,
            };
            match instruction {
                Instruction::Load { into, .. } => registers[usize::from(into.0)] = read(written),
                Instruction::Store { value, .. } => {
                    written[event(Kind::Write)] = operand_known(value).then(|| value.value(&known));
                }
                Instruction::Atomic { into, update, .. } => {
                    use tombolo_check::litmus::Update;
                    let old = read(written);
                    let inputs = match update {
                        Update::Apply(_, operand) | Update::Exchange(operand) => operand_known(operand),
                        Update::CompareAndSwap { compare, new } => operand_known(compare) && operand_known(new),
                    };
                    let needs_old = !matches!(update, Update::Exchange(_));
                    let ready = inputs && (old.is_some() || !needs_old);
                    written[event(Kind::Write)] = ready.then(|| update.apply(old.unwrap_or(0), &known));
                    if let Some(into) = into {
                        registers[usize::from(into.0)] = old;
                    }
                }
                Instruction::Move { into, value } => {
                    registers[usize::from(into.0)] = operand_known(value).then(|| value.value(&known));
                }
                Instruction::Compute { operation, into, left, right } => {
                    let ready = operand_known(left) && operand_known(right);
                    registers[usize::from(into.0)] =
                        ready.then(|| operation.apply(left.value(&known), right.value(&known)));
                }
                Instruction::Fence { .. } | Instruction::KernelBoundary => {}
                other => panic!("{other:?} is not generated"),
            }
        }
        registers
    }

    fn outcomes(&self) -> BTreeSet<FinalState> {
        let mut found = BTreeSet::new();
        let choices: Vec<Vec<(usize, usize)>> = self
            .of(Kind::Read)
            .into_iter()
            .map(|read| self.sources(read).into_iter().map(|write| (read, write)).collect())
            .collect();
        for sources in product(&choices) {
            let rf = Matrix::new(self.events.len(), |a, b| sources.contains(&(b, a)));
            let Some((registers, written)) = self.values(&sources) else { continue };
            for sc in self.orders(&self.fence_pairs(), false) {
                if let Some(causality) = self.consistent_reads(&rf, &sc) {
                    self.add_outcomes(&rf, &causality, &registers, &written, &mut found);
                }
            }
        }
        found
    }

    /// Every order over `pairs`; with `partial`, pairs may stay unordered unless they are morally strong.
    fn orders(&self, pairs: &[(usize, usize)], partial: bool) -> Vec<Matrix> {
        let choices: Vec<Vec<Option<(usize, usize)>>> = pairs
            .iter()
            .map(|&(a, b)| {
                let mut choices = vec![Some((a, b)), Some((b, a))];
                if partial && !self.strong.at(a, b) {
                    choices.push(None);
                }
                choices
            })
            .collect();
        let matrix =
            |chosen: Vec<Option<(usize, usize)>>| Matrix::new(self.events.len(), |a, b| chosen.contains(&Some((a, b))));
        product(&choices).into_iter().map(matrix).collect()
    }

    fn add_outcomes(
        &self,
        rf: &Matrix,
        causality: &Matrix,
        registers: &[Vec<Value>],
        written: &[Value],
        found: &mut BTreeSet<FinalState>,
    ) {
        let initial = Matrix::new(self.events.len(), |a, b| {
            self.events[a].from.is_none()
                && self.events[b].from.is_some()
                && self.events[b].kind == Kind::Write
                && self.same.at(a, b)
        });
        for chosen in self.orders(&self.write_pairs(), true) {
            let co = chosen.or(&initial);
            if co.closed() != co || !co.irreflexive() || !self.consistent(rf, &co, causality) {
                continue;
            }
            let last: Vec<Vec<Value>> = (0..self.program.locations.len())
                .map(|location| {
                    let writes = self.of(Kind::Write).into_iter();
                    writes
                        .filter(|write| self.events[*write].location == Some(location))
                        .filter(|write| co.0[*write].iter().all(|later| !later))
                        .map(|write| written[write])
                        .collect()
                })
                .collect();
            found.extend(product(&last).iter().map(|memory| self.program.final_state(registers, memory)));
        }
    }
}

/// Every choice of an element from each list in `from`.
fn product<T: Clone>(from: &[Vec<T>]) -> Vec<Vec<T>> {
    from.iter().fold(vec![Vec::new()], |made, choices| {
        let extend = |one: &Vec<T>| {
            choices.iter().map(|choice| [one.as_slice(), std::slice::from_ref(choice)].concat()).collect::<Vec<_>>()
        };
        made.iter().flat_map(extend).collect()
    })
}

/// Panics if the model finds outcomes that differ from the definitions.
fn compare(program: &Program, model: &Model<'_>) {
    let expected: Vec<FinalState> = model.outcomes().into_iter().collect();
    let found = outcomes(program, &Limits::default()).expect("it is small");
    if found.states() != expected {
        let show = |states: &[FinalState]| -> Vec<String> {
            states.iter().map(|state| Assignments { program, state }.to_string()).collect()
        };
        panic!("{program}\nfound {:#?}\nexpected {:#?}", show(found.states()), show(&expected));
    }
}

/// The program with its first thread on the host, and all strong accesses and fences of this thread at `.sys` scope.
fn with_host(mut program: Program) -> Program {
    let thread = &mut program.threads[0];
    thread.placement = ThreadPlacement::Host;
    for instruction in &mut thread.code {
        if let Instruction::Load { order, .. }
        | Instruction::Store { order, .. }
        | Instruction::Atomic { order, .. }
        | Instruction::Fence { order } = instruction
            && *order != Order::WEAK
        {
            order.scope = Scope::Sys;
        }
    }
    program
}

#[test]
fn small_random_programs_with_a_host_thread_have_the_outcomes_that_the_definitions_give() {
    let mut compared = 0;
    for index in 0..2000 {
        let program = with_host(random::program(13, index));
        if program.memory_operations() > 6 {
            continue;
        }
        let model = Model::new(&program);
        if model.candidates() <= 1500 {
            compared += 1;
            compare(&program, &model);
        }
    }
    assert!(compared > 500, "only {compared} programs were small enough");
}

#[test]
fn host_tests_have_the_outcomes_that_the_definitions_give() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/host");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let tests: Vec<_> = files.filter(|path| path.extension().is_some_and(|ending| ending == "litmus")).collect();
    assert_eq!(tests.len(), 60);
    for path in tests {
        let program = read(&path).unwrap_or_else(|error| panic!("{error}")).program;
        let model = Model::new(&program);
        assert!(model.candidates() <= 2000, "{}: {}", program.name, model.candidates());
        compare(&program, &model);
    }
}

#[test]
fn small_random_programs_have_the_outcomes_that_the_definitions_give() {
    let (mut compared, mut across_kernels) = (0, 0);
    for index in 0..4000 {
        let program = random::program(11, index);
        if program.memory_operations() > 6 {
            continue;
        }
        let model = Model::new(&program);
        if model.candidates() > 1500 {
            continue;
        }
        compared += 1;
        across_kernels += usize::from(program.threads[0].code.contains(&Instruction::KernelBoundary));
        compare(&program, &model);
    }
    assert!(compared > 1000, "only {compared} programs were small enough");
    assert!(across_kernels > 100, "only {across_kernels} of them have several kernels");
}
