//! Cuts a program with forward branches into straight-line paths.

use super::ModelError;
use crate::litmus::{Instruction, Program, Thread};

/// Maximum number of path combinations per program. Source: assumed; a litmus test has a handful.
pub(super) const LIMIT: usize = 4096;

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

/// Calls `visit` with every combination that picks a path for each thread.
pub(super) fn for_each(
    program: &Program,
    mut visit: impl FnMut(&[&[PathStep]]) -> Result<(), ModelError>,
) -> Result<(), ModelError> {
    let mut paths = Vec::new();
    let mut combinations = 1_usize;
    for thread in &program.threads {
        let found = paths_of(thread)?;
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

/// Enumerates all paths through a thread.
fn paths_of(thread: &Thread) -> Result<Vec<Path>, ModelError> {
    let mut open = vec![(0, Path::new())];
    let mut ended = Vec::new();
    while let Some((at, mut path)) = open.pop() {
        let Some(instruction) = thread.code.get(at) else {
            ended.push(path);
            if ended.len() + open.len() > LIMIT {
                return Err(ModelError::Paths { limit: LIMIT });
            }
            continue;
        };
        if instruction.target().is_some_and(|target| target <= at) {
            return Err(ModelError::Loop { thread: thread.number });
        }
        match *instruction {
            Instruction::Jump { target } => open.push((target, path)),
            Instruction::Branch { target, .. } => {
                let mut taken = path.clone();
                taken.push(PathStep { at, taken: true });
                path.push(PathStep { at, taken: false });
                open.push((target, taken));
                open.push((at + 1, path));
            }
            _ => {
                path.push(PathStep { at, taken: false });
                open.push((at + 1, path));
            }
        }
    }
    Ok(ended)
}
