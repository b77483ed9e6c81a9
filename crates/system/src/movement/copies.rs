//! The memcpy paradigm: each GPU has a copy of all data, and after each launch every module sends its writes to all
//! remaining modules.
//!
//! | copied | ranges for a sender and a target, one call each |
//! | --- | --- |
//! | [`CopyContents::Hull`] | in each array, from the first to the last line that the sender wrote in the kernel |
//! | [`CopyContents::SharedPages`] | the pages that the sender wrote in the kernel, of those that several modules access in the program; one call for each run of pages in an array |
//! | [`CopyContents::SharedLines`] | the lines that the sender wrote in the kernel, in the same pages; joined as for `Needed` |
//! | [`CopyContents::Needed`] | ranges that the target reads later, before any user writes these bytes again; two ranges in one array or run are joined if carrying the gap takes less time than a call ([`Movement::with_joining_distance`]) |
//!
//! For lines outside every array, runs of pages are treated like arrays. A sender serves all targets in turn, starting
//! with the next module, so that each sender begins with a different target. Data that no remote module reads stays at
//! its writer: at the program's end, one copy suffices.

use super::needed::NeededBytes;
use super::{ModuleMovement, Movement, bytes, pages_of};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use tombolo_design::placement::CopyContents;
use tombolo_model::front_end::{CommandTasks, PeerCopy, Schedule};
use tombolo_protocol::elision::{LineRange, LineSet};
use tombolo_types::stream::{Command, Program};
use tombolo_types::{Line, ModuleId};

impl Movement {
    /// Builds the copies after each launch in `program`, with notes for the record.
    pub fn copies(&self, program: &dyn Program, copied: CopyContents) -> (Schedule, Vec<String>) {
        let arrays = array_lines(program);
        let mut made = CopyList::default();
        let around = match copied {
            CopyContents::Hull => self.copies_of_written(program, &mut made, |module| {
                self.hulls(module, &arrays).into_iter().map(|(_, lines)| lines).collect()
            }),
            CopyContents::SharedPages => {
                let shared = self.lines_of_shared_pages();
                self.copies_of_written(program, &mut made, |module| self.written_pages(module, &shared, &arrays))
            }
            CopyContents::SharedLines => {
                let shared = self.lines_of_shared_pages();
                self.copies_of_written(program, &mut made, |module| {
                    self.joined(&module.written.lines.intersection(&shared), &arrays)
                })
            }
            CopyContents::Needed => self.needed_copies(program, &arrays, &mut made),
            CopyContents::Nothing => return (Schedule::default(), Vec::new()),
        };
        let mut notes = match copied {
            CopyContents::Hull => self.hull_notes(program, &arrays),
            CopyContents::SharedPages | CopyContents::SharedLines | CopyContents::Needed | CopyContents::Nothing => {
                Vec::new()
            }
        };
        notes.extend(self.race_notes(program, &arrays));
        notes.extend(host_note(program));
        (Schedule { tasks: around, copies: made.copies, overlaps: false }, notes)
    }

    /// The calls after each launch if every target gets the same ranges: `ranges` returns them for a sender's accesses in
    /// one kernel.
    fn copies_of_written(
        &self,
        program: &dyn Program,
        made: &mut CopyList,
        ranges: impl Fn(&ModuleMovement) -> Vec<LineRange>,
    ) -> Vec<CommandTasks> {
        let mut calls: Vec<Option<Vec<u32>>> = vec![None; self.kernels.len()];
        let mut behind = |kernel: u32| {
            let calls = calls[kernel as usize].get_or_insert_with(|| {
                let modules = self.kernel(kernel);
                let ranges: Vec<_> = modules.iter().map(&ranges).collect();
                made.calls(kernel, modules, |from, _| ranges[from].clone())
            });
            CommandTasks { copies: calls.clone(), ..CommandTasks::default() }
        };
        let around = program.commands().iter().map(|command| match *command {
            Command::Launch { kernel, on, .. } => behind(self.number(kernel, on)),
            Command::Copy { .. } | Command::Host { .. } | Command::Barrier => CommandTasks::default(),
        });
        around.collect()
    }

    /// All lines of the pages that at least two modules access in the program.
    fn lines_of_shared_pages(&self) -> LineSet {
        let (read, written) = self.unions();
        let mut seen = LineSet::default();
        let mut shared = LineSet::default();
        for (read, written) in read.iter().zip(&written) {
            let accessed = read.ranges().iter().chain(written.lines.ranges()).copied().collect();
            let pages = self.whole_pages(&accessed);
            shared.add(&pages.intersection(&seen));
            seen.add(&pages);
        }
        shared
    }

    /// All lines of the pages that hold any of `lines`.
    fn whole_pages(&self, lines: &LineSet) -> LineSet {
        let first = |page: u64| Line(page * self.lines_per_page);
        let of = |pages: Range<u64>| LineRange::new(first(pages.start), first(pages.end));
        pages_of(lines, self.lines_per_page).into_iter().map(of).collect()
    }

    /// The pages among those of `shared` in which a module writes in one kernel: each array's part of them, then the
    /// pages outside every array.
    fn written_pages(&self, module: &ModuleMovement, shared: &LineSet, arrays: &[Option<LineRange>]) -> Vec<LineRange> {
        let written = module.written.lines.intersection(shared);
        let mut parts = Vec::new();
        for lines in arrays.iter().flatten() {
            let lines = (*lines).into();
            let pages = self.whole_pages(&written.intersection(&lines));
            parts.extend_from_slice(pages.intersection(&lines).ranges());
        }
        let named: LineSet = arrays.iter().flatten().copied().collect();
        let elsewhere = self.whole_pages(&written.without(&named)).without(&named);
        parts.extend_from_slice(elsewhere.ranges());
        parts
    }

    fn needed_copies(
        &self,
        program: &dyn Program,
        arrays: &[Option<LineRange>],
        made: &mut CopyList,
    ) -> Vec<CommandTasks> {
        let mut needs = NeededBytes::new(self, program);
        let mut around: Vec<CommandTasks> = Vec::new();
        for command in program.commands().iter().rev() {
            let copies = match *command {
                Command::Launch { kernel, on, .. } => {
                    let kernel = self.number(kernel, on);
                    let lines = |from, to| self.joined(&needs.of(kernel, from, to), arrays);
                    made.calls(kernel, self.kernel(kernel), lines)
                }
                Command::Copy { .. } | Command::Host { .. } | Command::Barrier => Vec::new(),
            };
            around.push(CommandTasks { copies, ..CommandTasks::default() });
            needs.before(command);
        }
        around.reverse();
        around
    }

    /// Joins neighbouring ranges within an array, or within a run of pages, if the gap in between is small.
    fn joined(&self, lines: &LineSet, arrays: &[Option<LineRange>]) -> Vec<LineRange> {
        let of_one = |one: LineRange, next: LineRange| {
            let both = one.hull(next);
            let mut touched = arrays.iter().flatten().filter(|array| array.overlaps(both));
            match touched.next() {
                Some(array) => array.first <= both.first && both.end <= array.end,
                None => one.gap(next) < self.lines_per_page,
            }
        };
        let runs = lines.ranges().chunk_by(|one, next| one.gap(*next) <= self.gap && of_one(*one, *next));
        runs.map(|run| run[0].hull(run[run.len() - 1])).collect()
    }

    /// The smallest range per array that covers a module's writes in one kernel; `None` marks lines outside every
    /// array.
    pub(super) fn hulls(&self, module: &ModuleMovement, arrays: &[Option<LineRange>]) -> Vec<(Option<u32>, LineRange)> {
        let written = &module.written.lines;
        let mut hulls = Vec::new();
        for (array, lines) in (0..).zip(arrays) {
            let inside = lines.map(|lines| written.intersection(&lines.into())).unwrap_or_default();
            if let [first, ..] = inside.ranges() {
                let last = inside.ranges().last().expect("it has a first");
                hulls.push((Some(array), first.hull(*last)));
            }
        }
        let elsewhere = written.without(&arrays.iter().flatten().copied().collect());
        let runs = elsewhere
            .ranges()
            .chunk_by(|one, next| (next.first.0 / self.lines_per_page) - ((one.end.0 - 1) / self.lines_per_page) <= 1);
        hulls.extend(runs.map(|run| (None, run[0].hull(run[run.len() - 1]))));
        hulls
    }

    /// Notes on arrays for which one module's copied range overlaps another module's.
    fn hull_notes(&self, program: &dyn Program, arrays: &[Option<LineRange>]) -> Vec<String> {
        let mut overlapping = AffectedModules::default();
        for modules in &self.kernels {
            let hulls: Vec<_> = modules.iter().map(|module| self.hulls(module, arrays)).collect();
            for (one, other) in pairs(modules.len()) {
                for (array, lines) in &hulls[one] {
                    if hulls[other].iter().any(|(theirs, other)| theirs == array && lines.overlaps(*other)) {
                        overlapping.add(*array, one, other);
                    }
                }
            }
        }
        overlapping.notes(program, "write bytes between each other's; only bytes written by the sender change")
    }

    /// Notes on arrays with bytes written by two modules in a single kernel.
    fn race_notes(&self, program: &dyn Program, arrays: &[Option<LineRange>]) -> Vec<String> {
        let mut same = AffectedModules::default();
        for modules in &self.kernels {
            for (one, other) in pairs(modules.len()) {
                let common = bytes::common(&modules[one].written, &modules[other].written);
                same.add_lines(&common, arrays, one, other);
            }
        }
        same.notes(program, "write the same bytes in one kernel; copies do not merge them, and each has what came last")
    }
}

/// Copies without duplicates.
#[derive(Default)]
struct CopyList {
    copies: Vec<PeerCopy>,
    known: FxHashMap<(u32, ModuleId, ModuleId, LineRange), u32>,
}

impl CopyList {
    /// The calls after a launch of `kernel`, by sender: `lines` returns the ranges for a sender and a target.
    fn calls(
        &mut self,
        kernel: u32,
        modules: &[ModuleMovement],
        mut lines: impl FnMut(usize, usize) -> Vec<LineRange>,
    ) -> Vec<u32> {
        let mut calls = Vec::new();
        for (from, sender) in modules.iter().enumerate() {
            for to in (1..modules.len()).map(|step| (from + step) % modules.len()) {
                for lines in lines(from, to) {
                    let [from, to] = [from, to].map(|module| ModuleId(module as u8));
                    let copies = &mut self.copies;
                    calls.push(*self.known.entry((kernel, from, to, lines)).or_insert_with(|| {
                        copies.push(PeerCopy {
                            from,
                            to,
                            lines,
                            written: Arc::clone(&sender.written),
                            continues: false,
                        });
                        (copies.len() - 1) as u32
                    }));
                }
            }
        }
        calls
    }
}

/// Lines in each array of the program; `None` if the array is empty.
pub(crate) fn array_lines(program: &dyn Program) -> Vec<Option<LineRange>> {
    let lines = program.arrays().iter().map(|array| array.lines(program.line_size()));
    lines.map(|lines| (!lines.is_empty()).then(|| LineRange::new(lines.start, lines.end))).collect()
}

fn pairs(modules: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..modules).flat_map(move |one| (one + 1..modules).map(move |other| (one, other)))
}

/// Modules affected by a note, by array.
#[derive(Default)]
struct AffectedModules(BTreeMap<Option<u32>, BTreeSet<usize>>);

impl AffectedModules {
    fn add(&mut self, array: Option<u32>, one: usize, other: usize) {
        self.0.entry(array).or_default().extend([one, other]);
    }

    fn add_lines(&mut self, lines: &LineSet, arrays: &[Option<LineRange>], one: usize, other: usize) {
        let mut inside = LineSet::default();
        for (array, range) in (0..).zip(arrays) {
            let Some(range) = range.filter(|range| lines.overlaps(&(*range).into())) else { continue };
            inside.add(&range.into());
            self.add(Some(array), one, other);
        }
        if !lines.without(&inside).is_empty() {
            self.add(None, one, other);
        }
    }

    /// A sentence for each set of modules: the arrays, the modules, and the observation.
    fn notes(self, program: &dyn Program, what: &str) -> Vec<String> {
        let mut arrays: BTreeMap<(bool, BTreeSet<usize>), Vec<&str>> = BTreeMap::new();
        for (array, modules) in self.0 {
            let name = array.map(|array| &*program.arrays()[array as usize].name);
            arrays.entry((name.is_none(), modules)).or_default().extend(name);
        }
        let note = |((is_elsewhere, modules), arrays): ((bool, BTreeSet<usize>), Vec<&str>)| {
            let named = format!("arrays {}", arrays.join(", "));
            let which = if is_elsewhere { "lines of no array" } else { &named };
            let modules: Vec<String> = modules.iter().map(ToString::to_string).collect();
            let (last, others) = modules.split_last().expect("at least two of them");
            format!("{which}: GPUs {} and {last} {what}", others.join(", "))
        };
        arrays.into_iter().map(note).collect()
    }
}

/// Note on host writes, if there are any.
fn host_note(program: &dyn Program) -> Option<String> {
    let writes = |command: &Command| match *command {
        Command::Copy { to_device, .. } => to_device,
        Command::Host { phase } => !program.host_phases()[phase as usize].writes.is_empty(),
        Command::Launch { .. } | Command::Barrier => false,
    };
    let note = "what the host writes or copies reaches every GPU's copy at once, outside the region of interest";
    program.commands().iter().any(writes).then(|| note.to_owned())
}
