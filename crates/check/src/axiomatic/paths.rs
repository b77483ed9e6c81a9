//! Cuts a program with branches into straight-line paths.
//!
//! A *repetition* takes a branch backwards. A path contains only the last iteration of a [polling loop](is_poll), and at
//! most a given number of repetitions of other loops.

use super::ModelError;
use crate::litmus::{Instruction, Program, Register, Thread};

/// Maximum number of path combinations per program. Source: assumed; a litmus test has a handful.
pub(super) const LIMIT: usize = 4096;

/// Maximum number of repetitions per thread and path in loops that are no polling loops. Source: assumed; with more, few
/// tests fit into the model's events.
pub(super) const REPETITIONS: usize = 3;

/// An instruction that a thread executes along a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathStep {
    /// Index into the thread's code.
    pub(super) at: usize,
    /// For a branch: true if it is taken.
    pub(super) taken: bool,
}

/// Instructions executed by a single thread, without jumps.
pub(super) type Path = Vec<PathStep>;

/// Calls `visit` with every combination that picks a path with at most `repetitions` repetitions for each thread.
pub(super) fn for_each(
    program: &Program,
    repetitions: usize,
    mut visit: impl FnMut(&[&[PathStep]]) -> Result<(), ModelError>,
) -> Result<(), ModelError> {
    let mut paths = Vec::new();
    let mut combinations = 1_usize;
    for thread in &program.threads {
        let found = paths_of(thread, repetitions)?;
        combinations = combinations.saturating_mul(found.len());
        paths.push(found);
    }
    if combinations > LIMIT {
        return Err(ModelError::Paths { limit: LIMIT });
    }
    for index in 0..combinations {
        let mut rest = index;
        let mut chosen: Vec<&[PathStep]> = Vec::with_capacity(paths.len());
        for found in &paths {
            chosen.push(&found[rest % found.len()]);
            rest /= found.len();
        }
        visit(&chosen)?;
    }
    Ok(())
}

/// True if some loop in `program` is not a polling loop, so that the number of repetitions is bounded.
pub(super) fn has_bounded_loop(program: &Program) -> bool {
    program.threads.iter().any(|thread| backward_branches(thread).any(|at| !is_poll(&thread.code, at)))
}

/// Branches backwards in a thread's code.
fn backward_branches(thread: &Thread) -> impl Iterator<Item = usize> {
    let backwards = |at: &usize| thread.code[*at].target().is_some_and(|target| target <= *at);
    (0..thread.code.len()).filter(backwards)
}

/// True if the loop closed by the branch at `at` only polls: without all iterations but the last, an execution remains
/// consistent and ends in the same state.
///
/// The body, from the target to the branch, has a load and no store, atomic, barrier or kernel boundary. It sets
/// registers only before its first branch, and sets each before it reads it: no value passes from one iteration to the
/// next. Without the events of an iteration, every relation of the model contains fewer pairs, and each axiom remains
/// satisfied.
fn is_poll(code: &[Instruction], at: usize) -> bool {
    let target = code[at].target().expect("it is a branch");
    let body = &code[target..=at];
    let straight = body.iter().position(|instruction| instruction.target().is_some()).expect("it ends with a branch");
    let (straight, rest) = body.split_at(straight);
    let entered =
        |from: usize| (target..=at).contains(&from) || code[from].target().is_none_or(|to| to <= target || to > at);
    let sets: Vec<Register> = straight.iter().filter_map(Instruction::sets).collect();
    let fresh = |(index, instruction): (usize, &Instruction)| {
        let is_set_before = |read| straight[..index].iter().any(|earlier| earlier.sets() == Some(read));
        instruction.reads().all(|read| !sets.contains(&read) || is_set_before(read))
    };
    let harmless = |instruction: &Instruction| match instruction {
        Instruction::Load { .. }
        | Instruction::Fence { .. }
        | Instruction::Move { .. }
        | Instruction::Compute { .. } => true,
        Instruction::Branch { .. } | Instruction::Jump { .. } => true,
        Instruction::Store { .. } | Instruction::Atomic { .. } => false,
        Instruction::Barrier { .. } | Instruction::KernelBoundary => false,
    };
    body.iter().any(|instruction| matches!(instruction, Instruction::Load { .. }))
        && body.iter().all(harmless)
        && rest.iter().all(|instruction| instruction.sets().is_none())
        && straight.iter().enumerate().all(fresh)
        && (0..code.len()).all(entered)
}

/// Enumerates all paths through a thread with at most `repetitions` repetitions.
fn paths_of(thread: &Thread, repetitions: usize) -> Result<Vec<Path>, ModelError> {
    let polls: Vec<usize> = backward_branches(thread).filter(|at| is_poll(&thread.code, *at)).collect();
    let mut open = vec![(0, repetitions, Path::new())];
    let mut ended = Vec::new();
    while let Some((at, repetitions, mut path)) = open.pop() {
        let Some(instruction) = thread.code.get(at) else {
            ended.push(path);
            if ended.len() + open.len() > LIMIT {
                return Err(ModelError::Paths { limit: LIMIT });
            }
            continue;
        };
        // Repetitions left after a branch to `target`; `None` if the branch is beyond the bound.
        let left_after = |target: usize| {
            if target > at {
                Some(repetitions)
            } else if polls.contains(&at) {
                None
            } else {
                repetitions.checked_sub(1)
            }
        };
        match *instruction {
            Instruction::Jump { target } => {
                if let Some(repetitions) = left_after(target) {
                    open.push((target, repetitions, path));
                }
            }
            Instruction::Branch { target, .. } => {
                let mut taken = path.clone();
                taken.push(PathStep { at, taken: true });
                path.push(PathStep { at, taken: false });
                if let Some(repetitions) = left_after(target) {
                    open.push((target, repetitions, taken));
                }
                open.push((at + 1, repetitions, path));
            }
            _ => {
                path.push(PathStep { at, taken: false });
                open.push((at + 1, repetitions, path));
            }
        }
    }
    Ok(ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::litmus::parse;

    fn thread(rows: &str) -> Thread {
        let text = format!("PTX test {{ x=0; y=0; }} P0@cta 0,gpu 0 ; {rows} exists x=0");
        parse("test", &text).unwrap_or_else(|error| panic!("{error}")).program.threads.remove(0)
    }

    /// True if the thread's last branch backwards closes a polling loop.
    fn polls(rows: &str) -> bool {
        let thread = thread(rows);
        let at = backward_branches(&thread).last().expect("a loop");
        is_poll(&thread.code, at)
    }

    #[test]
    fn a_loop_that_only_reads_polls() {
        assert!(polls("LC00: ; ld.acquire.gpu r0, x ; bne r0, 1, LC00 ;"));
        assert!(polls("LC00: ; ld.weak r0, x ; fence.acq_rel.gpu ; beq r0, 1, LC01 ; goto LC00 ; LC01: ;"));
        assert!(!polls("LC00: ; atom.relaxed.gpu.cas r0, x, 0, 1 ; bne r0, 0, LC00 ;"), "it writes");
        assert!(!polls("LC00: ; st.weak y, 1 ; ld.weak r0, x ; bne r0, 1, LC00 ;"), "it writes");
        assert!(!polls("ld.weak r0, x ; LC00: ; bne r0, 1, LC00 ;"), "it has no load");
        assert!(!polls("LC00: ; bar.cta.sync 0 ; ld.weak r0, x ; bne r0, 1, LC00 ;"), "it meets others");
    }

    #[test]
    fn a_loop_that_uses_values_of_earlier_iterations_does_not_only_poll() {
        assert!(!polls("LC00: ; add r1, r1, 1 ; ld.weak r0, x ; bne r0, 1, LC00 ;"), "r1 counts");
        assert!(!polls("LC00: ; ld.weak r0, x ; beq r0, 1, LC01 ; ld.weak r1, y ; goto LC00 ; LC01: ;"), "r1 stays");
        assert!(
            !polls("goto LC01 ; LC00: ; ld.weak r0, x ; LC01: ; bne r0, 1, LC00 ;"),
            "the first iteration has no load"
        );
    }

    #[test]
    fn paths_repeat_no_polling_loop_and_others_to_a_bound() {
        let count = |rows, repetitions| paths_of(&thread(rows), repetitions).unwrap().len();
        assert_eq!(count("LC00: ; ld.weak r0, x ; bne r0, 1, LC00 ;", 3), 1);
        assert_eq!(count("LC00: ; atom.relaxed.gpu.cas r0, x, 0, 1 ; bne r0, 0, LC00 ;", 3), 4);
        assert_eq!(count("LC00: ; goto LC00 ;", 3), 0, "no path ends");
    }
}
