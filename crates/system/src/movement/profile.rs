//! The first iteration of a program: the launches before the first that does what an earlier one did.
//!
//! Two launches do the same where kernels of one name run in the same place and read and write the same arrays: a program that
//! swaps two arrays between launches has done both ways then. No program says where its iterations begin. Source: GPS, Listing
//! 1: accesses are tracked in iteration 0.

use super::Movement;
use super::copies::array_lines;
use rustc_hash::FxHashSet;
use tombolo_protocol::elision::{LineSet, Lines};
use tombolo_types::On;
use tombolo_types::stream::{Command, Program};

/// What a launch does, as far as an iteration is concerned.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Deed<'a> {
    kernel: &'a str,
    on: On,
    /// By array: whether it is read, and whether it is written.
    uses: Vec<(bool, bool)>,
}

impl Movement {
    /// The last command of the first iteration; `None` where no launch does what an earlier one did.
    pub fn first_iteration(&self, program: &dyn Program) -> Option<usize> {
        let arrays = array_lines(program);
        let mut done = FxHashSet::default();
        let mut last = None;
        for (index, command) in program.commands().iter().enumerate() {
            let Command::Launch { kernel, on, .. } = *command else { continue };
            let name = &*program.kernels()[kernel as usize].name;
            let deed = Deed { kernel: name, on, uses: self.uses(self.number(kernel, on), &arrays) };
            if !done.insert(deed) {
                return last;
            }
            last = Some(index);
        }
        None
    }

    /// The last command of so many iterations, each of as many launches as the first; `None` where no more come behind.
    pub fn iterations(&self, program: &dyn Program, count: u32) -> Option<usize> {
        let is_launch = |command: &Command| matches!(command, Command::Launch { .. });
        let commands = program.commands();
        let first = self.first_iteration(program)?;
        let launches = commands[..=first].iter().filter(|command| is_launch(command)).count();
        let indices = commands.iter().enumerate().filter(|(_, command)| is_launch(command)).map(|(index, _)| index);
        let mut rest = indices.skip(launches * count as usize - 1);
        let last = rest.next()?;
        rest.next().map(|_| last)
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
