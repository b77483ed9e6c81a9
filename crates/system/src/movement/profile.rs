//! The iterations of a program: the shortest stretch of launches that repeats over half of the program or more.
//!
//! Two launches do the same where kernels of one name run the same grid in the same place, each module reads the same lines, and
//! the same arrays are written. So steps within an iteration that use other parts of an array are told apart, and a program
//! that swaps two arrays has an iteration of two launches. No program says where its iterations begin. Source: GPS, Listing
//! 1: accesses are tracked in iteration 0.

use super::Movement;
use super::copies::array_lines;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use tombolo_protocol::elision::{LineSet, Lines};
use tombolo_types::stream::{Command, Program};

/// Where a program repeats itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Period {
    /// Launches before the first iteration.
    before: usize,
    /// Launches of an iteration.
    length: usize,
}

impl Movement {
    /// The last command of the first iteration, with all before it; `None` where nothing repeats.
    pub fn first_iteration(&self, program: &dyn Program) -> Option<usize> {
        self.iterations(program, 1)
    }

    /// The last command of so many iterations, with all before the first; `None` where no launches come behind.
    pub fn iterations(&self, program: &dyn Program, count: u32) -> Option<usize> {
        let commands = program.commands().iter().enumerate();
        let launches: Vec<usize> =
            commands.filter(|(_, command)| matches!(command, Command::Launch { .. })).map(|(index, _)| index).collect();
        let Period { before, length } = period(&self.deeds(program))?;
        let launched = before + length * count as usize;
        (launched < launches.len()).then(|| launches[launched - 1])
    }

    /// What each launch does, as a number that is the same for launches that do the same.
    fn deeds(&self, program: &dyn Program) -> Vec<u64> {
        let arrays = array_lines(program);
        let mut known = FxHashMap::default();
        let launches = program.commands().iter().filter_map(|command| match *command {
            Command::Launch { kernel, on, .. } => Some((kernel, on)),
            Command::Copy { .. } | Command::Host { .. } | Command::Barrier => None,
        });
        let deed = |(kernel, on)| {
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
        launches.map(deed).collect()
    }

    /// By array: whether any module reads it, and whether any writes it.
    fn uses(&self, kernel: u32, arrays: &[Option<Lines>]) -> Vec<(bool, bool)> {
        let touches = |lines: &LineSet, array: &Option<Lines>| array.is_some_and(|array| lines.overlaps(&array.into()));
        let used = |array| {
            let modules = self.kernel(kernel);
            let reads = modules.iter().any(|module| touches(&module.read, array));
            (reads, modules.iter().any(|module| touches(&module.written.lines, array)))
        };
        arrays.iter().map(used).collect()
    }
}

/// The shortest stretch that repeats over at least half of `deeds`, of several the one that is over first.
fn period(deeds: &[u64]) -> Option<Period> {
    let mut best: Option<Period> = None;
    for length in 1..=deeds.len() / 2 {
        if best.is_some_and(|best| length >= best.before + best.length) {
            break;
        }
        let mut start = 0;
        for index in 0..=deeds.len() - length {
            if index + length < deeds.len() && deeds[index] == deeds[index + length] {
                continue;
            }
            let repeats = index - start;
            if repeats >= length && 2 * (repeats + length) >= deeds.len() {
                let found = Period { before: start, length };
                let ends = |period: Period| period.before + period.length;
                best = Some(best.filter(|best| ends(*best) <= ends(found)).unwrap_or(found));
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

    fn found(deeds: &str) -> Option<(usize, usize)> {
        let deeds: Vec<u64> = deeds.bytes().map(u64::from).collect();
        period(&deeds).map(|Period { before, length }| (before, length))
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
