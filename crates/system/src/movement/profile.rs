//! The iterations of a program: the shortest sequence of launches that repeats over half the program or more.
//!
//! Two launches are equal if four properties agree: equal kernel name, equal grid on equal modules, equal lines read on
//! each module, and equal arrays written. Steps within an iteration that use different parts of an array are therefore
//! distinguished. A program that swaps two arrays has an iteration with two launches. No program declares the start of
//! its iterations. Source: GPS, Listing 1: accesses are tracked in iteration 0.

use super::Movement;
use super::copies::array_lines;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use tombolo_protocol::elision::{LineRange, LineSet};
use tombolo_types::stream::{Command, Program};

/// Position and length of a program's iterations, in launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IterationLaunches {
    /// Launches before the first iteration.
    pub before: usize,
    /// Launches per iteration.
    pub each: usize,
}

impl IterationLaunches {
    /// Launches of the first iteration and before it.
    pub fn first(self) -> usize {
        self.before + self.each
    }
}

impl Movement {
    /// The iterations of `program`; `None` if nothing repeats.
    pub fn iterations(&self, program: &dyn Program) -> Option<IterationLaunches> {
        iterations(&self.launch_hashes(program))
    }

    /// The last command in the first `count` iterations, including all commands before the first iteration; `None` if
    /// no launches follow.
    pub fn end_of_iterations(&self, program: &dyn Program, count: u32) -> Option<usize> {
        let commands = program.commands().iter().enumerate();
        let launches: Vec<usize> =
            commands.filter(|(_, command)| matches!(command, Command::Launch { .. })).map(|(index, _)| index).collect();
        let IterationLaunches { before, each } = self.iterations(program)?;
        let launched = before + each * count as usize;
        (launched < launches.len()).then(|| launches[launched - 1])
    }

    /// A hash for each launch: equal launches have equal hashes.
    fn launch_hashes(&self, program: &dyn Program) -> Vec<u64> {
        let arrays = array_lines(program);
        let mut known = FxHashMap::default();
        let launches = program.commands().iter().filter_map(|command| match *command {
            Command::Launch { kernel, on, .. } => Some((kernel, on)),
            Command::Copy { .. } | Command::Host { .. } | Command::Barrier => None,
        });
        let launch_hash = |(kernel, on)| {
            *known.entry((kernel, on)).or_insert_with(|| {
                let (info, number) = (&program.kernels()[kernel as usize], self.number(kernel, on));
                let mut hasher = FxHasher::default();
                (&info.name, info.ctas, on, self.uses(number, &arrays)).hash(&mut hasher);
                for module in self.kernel(number) {
                    module.read.ranges().iter().for_each(|lines| (lines.first, lines.end).hash(&mut hasher));
                    hasher.write_u8(0);
                }
                hasher.finish()
            })
        };
        launches.map(launch_hash).collect()
    }

    /// For each array: true if any module reads it, and true if any module writes it.
    fn uses(&self, kernel: u32, arrays: &[Option<LineRange>]) -> Vec<(bool, bool)> {
        let touches =
            |lines: &LineSet, array: &Option<LineRange>| array.is_some_and(|array| lines.overlaps(&array.into()));
        let used = |array| {
            let modules = self.kernel(kernel);
            let reads = modules.iter().any(|module| touches(&module.read, array));
            (reads, modules.iter().any(|module| touches(&module.written.lines, array)))
        };
        arrays.iter().map(used).collect()
    }
}

/// The shortest sequence that repeats over at least half of `launch_hashes`; among several, the sequence with the earliest end.
fn iterations(launch_hashes: &[u64]) -> Option<IterationLaunches> {
    let mut best: Option<IterationLaunches> = None;
    for length in 1..=launch_hashes.len() / 2 {
        if best.is_some_and(|best| length >= best.first()) {
            break;
        }
        let mut start = 0;
        for index in 0..=launch_hashes.len() - length {
            if index + length < launch_hashes.len() && launch_hashes[index] == launch_hashes[index + length] {
                continue;
            }
            let repeats = index - start;
            if repeats >= length && 2 * (repeats + length) >= launch_hashes.len() {
                let found = IterationLaunches { before: start, each: length };
                best = Some(best.filter(|best| best.first() <= found.first()).unwrap_or(found));
                break;
            }
            start = index + 1;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(launch_hashes: &str) -> Option<(usize, usize)> {
        let launch_hashes: Vec<u64> = launch_hashes.bytes().map(u64::from).collect();
        iterations(&launch_hashes).map(|IterationLaunches { before, each }| (before, each))
    }

    #[test]
    fn an_iteration_is_what_most_of_the_program_repeats() {
        assert_eq!(found("ababab"), Some((0, 2)));
        assert_eq!(found("iababab"), Some((1, 2)), "what comes first is before it");
        assert_eq!(found("aaabaaabaaab"), Some((0, 4)), "steps that repeat inside are part of it");
        assert_eq!(found("abababe"), Some((0, 2)), "what comes last is behind");
        assert_eq!(found("aaa"), Some((0, 1)));
    }

    #[test]
    fn a_program_that_repeats_little_has_none() {
        assert_eq!((found(""), found("a"), found("abcd"), found("aabcdefg")), (None, None, None, None));
    }
}
