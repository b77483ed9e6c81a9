//! Litmus test threads in straight-line form; operands name their producing instructions.
//!
//! A stream has no registers. Therefore each register operand is traced to the instruction that wrote the register, and
//! values are computed from the results of loads and atomics.

use tombolo_check::litmus::{Instruction, Operand, Program, Register, Thread, ThreadPlacement, Update, Value};

/// Source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueSource {
    /// A constant, or a register's initial value.
    Value(Value),
    /// The result of the thread's instruction at this index.
    Result(usize),
}

/// A register was read before the load or atomic at this index in its thread had returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissingResult(pub(crate) usize);

/// Results of a thread's loads and atomics, by instruction.
pub(crate) type Results = Vec<Option<Value>>;

/// A single thread.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// Instructions of the thread.
    pub(crate) code: Vec<Instruction>,
    /// By instruction, then register: source of the value for a read at this instruction. An additional entry marks the
    /// end.
    registers: Vec<Vec<ValueSource>>,
}

/// Converts the threads of a program.
///
/// # Errors
/// Names the construct that a stream cannot express: host threads concurrent with a kernel, branches, several
/// barrier ids, and barriers with a count.
pub(crate) fn scripts(program: &Program) -> Result<Vec<Script>, &'static str> {
    if program.has_host() {
        host_works_between_kernels(program)?;
    }
    let all = || program.threads.iter().flat_map(|thread| &thread.code);
    let counts = |instruction: &Instruction| matches!(instruction, Instruction::Barrier { count: Some(_), .. });
    if all().any(counts) {
        return Err("a barrier with a count: a stream's barriers wait for the whole CTA");
    }
    let mut barriers = all().filter_map(|instruction| match instruction {
        Instruction::Barrier { id, .. } => Some(*id),
        _ => None,
    });
    if barriers.next().is_some_and(|first| barriers.any(|id| id != first)) {
        return Err("barriers of several ids: a stream has one barrier a CTA");
    }
    (0..program.threads.len()).map(|thread| Script::new(program, thread)).collect()
}

/// Checks that host threads load and store only between kernels, like the host's core.
fn host_works_between_kernels(program: &Program) -> Result<(), &'static str> {
    let is_host = |thread: &Thread| thread.placement == ThreadPlacement::Host;
    if program.threads.iter().all(is_host) {
        return Err("host threads alone: streams are of kernels");
    }
    let hosts = || program.threads.iter().filter(|thread| is_host(thread));
    let code = || hosts().flat_map(|thread| &thread.code);
    if code().any(|instruction| matches!(instruction, Instruction::Atomic { .. })) {
        return Err("atomics of host threads: the core of the host loads and stores");
    }
    let beside = |host: &Thread| {
        let others = program.threads.iter().filter(|other| !std::ptr::eq(*other, host));
        let busy: Vec<usize> = others.flat_map(works_in).collect();
        works_in(host).iter().any(|kernel| busy.contains(kernel))
    };
    if hosts().any(beside) {
        return Err("host threads beside kernels: they are explored, not timed");
    }
    Ok(())
}

/// The kernels in which a thread executes any instruction.
fn works_in(thread: &Thread) -> Vec<usize> {
    let kernels = kernels_of(&thread.code);
    let does = |(at, _): &(usize, usize)| !matches!(thread.code[*at], Instruction::KernelBoundary);
    kernels.into_iter().enumerate().filter(does).map(|(_, kernel)| kernel).collect()
}

/// The kernel of each instruction, counted from 0.
fn kernels_of(code: &[Instruction]) -> Vec<usize> {
    let mut kernel = 0;
    let of = |instruction: &Instruction| {
        kernel += usize::from(matches!(instruction, Instruction::KernelBoundary));
        kernel
    };
    code.iter().map(of).collect()
}

impl Script {
    fn new(program: &Program, thread: usize) -> Result<Script, &'static str> {
        let code = program.threads[thread].code.clone();
        let mut registers: Vec<ValueSource> =
            program.threads[thread].registers.iter().map(|register| ValueSource::Value(register.initial)).collect();
        let mut all = vec![registers.clone()];
        for (at, instruction) in code.iter().enumerate() {
            match *instruction {
                Instruction::Load { into, .. }
                | Instruction::Atomic { into: Some(into), .. }
                | Instruction::Move { into, .. }
                | Instruction::Compute { into, .. } => registers[usize::from(into.0)] = ValueSource::Result(at),
                Instruction::Branch { .. } | Instruction::Jump { .. } => {
                    return Err("branches: a stream is straight-line code");
                }
                Instruction::Store { .. }
                | Instruction::Atomic { into: None, .. }
                | Instruction::Fence { .. }
                | Instruction::Barrier { .. }
                | Instruction::KernelBoundary => {}
            }
            all.push(registers.clone());
        }
        Ok(Script { code, registers: all })
    }

    fn source(&self, at: usize, operand: Operand) -> ValueSource {
        match operand {
            Operand::Register(Register(register)) => self.registers[at][usize::from(register)],
            Operand::Value(value) => ValueSource::Value(value),
        }
    }

    /// The value that the instruction at `at` reads for `operand`.
    ///
    /// # Errors
    /// If the value has not arrived yet.
    pub(crate) fn value(&self, at: usize, operand: Operand, results: &Results) -> Result<Value, MissingResult> {
        self.of(self.source(at, operand), results)
    }

    fn of(&self, source: ValueSource, results: &Results) -> Result<Value, MissingResult> {
        let at = match source {
            ValueSource::Value(value) => return Ok(value),
            ValueSource::Result(at) => at,
        };
        match self.code[at] {
            Instruction::Move { value, .. } => self.value(at, value, results),
            Instruction::Compute { operation, left, right, .. } => {
                Ok(operation.apply(self.value(at, left, results)?, self.value(at, right, results)?))
            }
            _ => results[at].ok_or(MissingResult(at)),
        }
    }

    /// The update by the atomic at `at`, with constants for its operands.
    ///
    /// # Errors
    /// If an operand has not arrived yet.
    pub(crate) fn update(&self, at: usize, update: Update, results: &Results) -> Result<Update, MissingResult> {
        let constant = |operand| self.value(at, operand, results).map(Operand::Value);
        Ok(match update {
            Update::Apply(operation, operand) => Update::Apply(operation, constant(operand)?),
            Update::Exchange(operand) => Update::Exchange(constant(operand)?),
            Update::CompareAndSwap { compare, new } => {
                Update::CompareAndSwap { compare: constant(compare)?, new: constant(new)? }
            }
        })
    }

    /// The registers' contents at the end.
    ///
    /// # Errors
    /// If a result never arrived.
    pub(crate) fn ending(&self, results: &Results) -> Result<Vec<Value>, MissingResult> {
        let last = self.registers.last().expect("there is one more than instructions");
        last.iter().map(|source| self.of(*source, results)).collect()
    }

    /// The loads and atomics whose results the instruction at `at` needs.
    pub(crate) fn needs(&self, at: usize) -> Vec<usize> {
        let operands: Vec<Operand> = match self.code[at] {
            Instruction::Store { value, .. } => vec![value],
            Instruction::Atomic { update: Update::Apply(_, operand) | Update::Exchange(operand), .. } => vec![operand],
            Instruction::Atomic { update: Update::CompareAndSwap { compare, new }, .. } => vec![compare, new],
            _ => Vec::new(),
        };
        let mut needs = Vec::new();
        operands.into_iter().for_each(|operand| self.collect(self.source(at, operand), &mut needs));
        needs
    }

    fn collect(&self, source: ValueSource, needs: &mut Vec<usize>) {
        let ValueSource::Result(at) = source else { return };
        match self.code[at] {
            Instruction::Move { value, .. } => self.collect(self.source(at, value), needs),
            Instruction::Compute { left, right, .. } => {
                self.collect(self.source(at, left), needs);
                self.collect(self.source(at, right), needs);
            }
            _ => needs.push(at),
        }
    }

    /// The kernel of each instruction, counted from 0.
    pub(crate) fn kernels(&self) -> Vec<usize> {
        kernels_of(&self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_check::litmus::parse;

    fn script(code: &str) -> Script {
        let text = format!("PTX any\n{{ x=0; P0:r1=5; }}\nP0@cta 0,gpu 0 ;\n{code}\nexists (x == 0)");
        let program = parse("any", &text).unwrap().program;
        Script::new(&program, 0).unwrap()
    }

    #[test]
    fn a_value_follows_the_register_that_was_last_written_before_it() {
        let script = script("ld.weak r0, x ;\nadd r2, r0, r1 ;\nld.weak r0, x ;\nst.weak x, r2 ;");
        let results = vec![Some(1), None, Some(100), None];
        let Instruction::Store { value, .. } = script.code[3] else { panic!("the last is a store") };
        assert_eq!(script.value(3, value, &results), Ok(6));
        assert_eq!(script.needs(3), [0]);
    }

    #[test]
    fn a_result_that_has_not_come_is_said() {
        let script = script("ld.weak r0, x ;\nst.weak x, r0 ;");
        assert_eq!(script.ending(&vec![None, None]), Err(MissingResult(0)));
        assert_eq!(script.ending(&vec![Some(3), None]), Ok(vec![5, 3]));
    }

    #[test]
    fn boundaries_part_kernels() {
        let script = script("st.weak x, 1 ;\nkernel.boundary ;\nld.weak r0, x ;");
        assert_eq!(script.kernels(), [0, 1, 1]);
    }
}
