//! Finds the lines that each kernel reads and writes in each array on each module, from the recorded streams.
//!
//! No workload declares its array uses; all information comes from the streams. A kernel's uses are the sum over its
//! CTAs; a repeated launch on equal modules has equal uses.

use crate::survey::{Reader, SurveyedLaunch, Touch, touches};
use rustc_hash::FxHashMap;
use std::ops::Range;
use tombolo_protocol::elision::{LineRange, LineSet, ModuleSet};
use tombolo_types::stream::{CtaStream, Program};
use tombolo_types::{LaunchDevices, Line, ModuleId};

/// Lines that a module reads and writes in a single array during a kernel. An atomic both reads and writes its line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineAccesses {
    /// Lines read.
    pub read: LineSet,
    /// Lines written.
    pub written: LineSet,
}

impl LineAccesses {
    /// Lines read or written.
    pub fn lines(&self) -> LineSet {
        let mut lines = self.read.clone();
        lines.add(&self.written);
        lines
    }
}

/// A kernel's accesses to one array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayUse {
    /// Index of the array.
    pub array: u32,
    /// Lines touched by each module, indexed by module.
    pub modules: Vec<LineAccesses>,
}

/// Each kernel's uses, by kernel and target modules.
pub type KernelUses = FxHashMap<(u32, LaunchDevices), KernelUse>;

/// All array accesses by a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelUse {
    /// The modules that run the kernel's CTAs.
    pub on: ModuleSet,
    /// The arrays that the kernel touches, in address order.
    pub arrays: Vec<ArrayUse>,
    /// True if the kernel touches lines outside every array: such lines are not recorded.
    pub elsewhere: bool,
}

/// Finds the uses for every launched kernel: a reader of streams.
pub struct UseFinder {
    modules: u8,
    arrays: ArrayLines,
    kernels: KernelUses,
    /// The current launch, and the module with the CTAs being visited.
    at: Option<((u32, LaunchDevices), ModuleId)>,
    /// Lines read and written by this module, per array.
    marks: Vec<[Marks; 2]>,
}

impl UseFinder {
    /// Creates a reader for `program` on a machine with `modules` modules.
    pub fn new(program: &dyn Program, modules: u8) -> UseFinder {
        let arrays = ArrayLines::of(program);
        UseFinder {
            modules,
            marks: arrays.lines.iter().map(|_| [Marks::default(), Marks::default()]).collect(),
            arrays,
            kernels: KernelUses::default(),
            at: None,
        }
    }

    /// Uses for all launched kernels.
    pub fn finish(mut self) -> KernelUses {
        self.close();
        self.kernels
    }

    /// Ends the current module: all its CTAs have been visited.
    fn close(&mut self) {
        let Some((kernel, module)) = self.at.take() else { return };
        let found = self.kernels.entry(kernel).or_default();
        let marked = self.marks.iter_mut().zip(&self.arrays.lines).enumerate();
        for (array, ([read, written], lines)) in marked {
            let touched = LineAccesses { read: read.take(lines.start), written: written.take(lines.start) };
            if touched == LineAccesses::default() {
                continue;
            }
            let place = found.arrays.binary_search_by_key(&(array as u32), |used| used.array);
            let place = place.unwrap_or_else(|place| {
                let modules = vec![LineAccesses::default(); usize::from(self.modules)];
                found.arrays.insert(place, ArrayUse { array: array as u32, modules });
                place
            });
            found.arrays[place].modules[usize::from(module.0)] = touched;
        }
    }
}

impl Reader for UseFinder {
    fn launch(&mut self, launch: SurveyedLaunch) -> bool {
        self.close();
        let is_new = !self.kernels.contains_key(&launch.kind());
        self.kernels.entry(launch.kind()).or_default();
        self.at = is_new.then_some((launch.kind(), ModuleId(0)));
        is_new
    }

    fn cta(&mut self, module: ModuleId, _: u32, stream: &CtaStream) {
        let (kernel, shown) = self.at.expect("a launch begins before its CTAs");
        if shown != module {
            self.close();
            self.at = Some((kernel, module));
        }
        let found = self.kernels.entry(kernel).or_default();
        found.on.add(module);
        for (touch, line) in touches(stream) {
            let Some(array) = self.arrays.find(line) else {
                found.elsewhere = true;
                continue;
            };
            let lines = &self.arrays.lines[array];
            let place = line.0 - lines.start.0;
            let [read, written] = &mut self.marks[array];
            if matches!(touch, Touch::Load | Touch::Atomic) {
                read.add(place, lines);
            }
            if matches!(touch, Touch::Store | Touch::Atomic) {
                written.add(place, lines);
            }
        }
    }
}

/// The lines of each array in a program.
struct ArrayLines {
    /// Lines per array, in address order.
    lines: Vec<Range<Line>>,
    /// The array found last: consecutive lines mostly belong to the same array.
    latest: usize,
}

impl ArrayLines {
    fn of(program: &dyn Program) -> ArrayLines {
        let lines = program.arrays().iter().map(|array| array.lines(program.line_size())).collect();
        ArrayLines { lines, latest: 0 }
    }

    /// Index of the array around `line`.
    fn find(&mut self, line: Line) -> Option<usize> {
        if self.lines.get(self.latest).is_some_and(|lines| lines.contains(&line)) {
            return Some(self.latest);
        }
        let found = self.lines.partition_point(|lines| lines.start <= line).checked_sub(1)?;
        self.latest = found;
        self.lines[found].contains(&line).then_some(found)
    }
}

/// A bit set over the lines in one array.
#[derive(Default)]
struct Marks {
    words: Vec<u64>,
    /// The range of words with any bit set.
    used: Range<usize>,
}

impl Marks {
    /// Marks line number `place` in the array with lines `lines`.
    fn add(&mut self, place: u64, lines: &Range<Line>) {
        if self.words.is_empty() {
            self.words = vec![0; (lines.end.0 - lines.start.0).div_ceil(64) as usize];
        }
        let word = (place / 64) as usize;
        self.words[word] |= 1 << (place % 64);
        self.used =
            if self.used.is_empty() { word..word + 1 } else { self.used.start.min(word)..self.used.end.max(word + 1) };
    }

    /// Returns the marked lines in an array that begins at `first`, and clears all marks.
    fn take(&mut self, first: Line) -> LineSet {
        let used = std::mem::take(&mut self.used);
        let mut ranges: Vec<LineRange> = Vec::new();
        for (word, bits) in used.clone().zip(&mut self.words[used]) {
            let mut bits = std::mem::take(bits);
            while bits != 0 {
                let skip = bits.trailing_zeros();
                let run = (bits >> skip).trailing_ones();
                let start = Line(first.0 + word as u64 * 64 + u64::from(skip));
                let end = Line(start.0 + u64::from(run));
                match ranges.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    Some(_) | None => ranges.push(LineRange::new(start, end)),
                }
                bits &= !((u64::MAX >> (64 - run)) << skip);
            }
        }
        ranges.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directed::{CtaBuilder, DirectedProgram};
    use crate::survey::survey;
    use tombolo_design::scheduling::{CtaDistribution, MachineShape};
    use tombolo_types::Order;
    use tombolo_types::stream::AtomicResult;

    fn set(ranges: &[(u64, u64)]) -> LineSet {
        ranges.iter().map(|&(first, end)| LineRange::new(Line(first), Line(end))).collect()
    }

    fn uses(program: &DirectedProgram) -> Vec<KernelUse> {
        let mut uses = UseFinder::new(program, 2);
        survey(program, CtaDistribution::Contiguous, MachineShape::one_gpu(2), &mut [&mut uses]).expect("it decodes");
        let uses = uses.finish();
        (0..program.kernels().len() as u32).map(|kernel| uses[&(kernel, LaunchDevices::All)].clone()).collect()
    }

    #[test]
    fn lines_are_told_by_array_and_module_and_an_atomic_is_both() {
        let first = CtaBuilder::new().warp(|w| {
            w.read(0..70).write([10]).atomic([130], Order::WEAK, AtomicResult::Discarded);
        });
        let second = CtaBuilder::new().warp(|w| _ = w.read([69, 3]));
        let program = DirectedProgram::with_arrays(vec![vec![first, second]], &[("a", 0..100), ("b", 128..200)]);
        let [kernel] = &uses(&program)[..] else { panic!("one kernel") };
        let touched = |read, written| LineAccesses { read: set(read), written: set(written) };
        let a =
            ArrayUse { array: 0, modules: vec![touched(&[(0, 70)], &[(10, 11)]), touched(&[(3, 4), (69, 70)], &[])] };
        let b = ArrayUse { array: 1, modules: vec![touched(&[(130, 131)], &[(130, 131)]), LineAccesses::default()] };
        assert_eq!(*kernel, KernelUse { on: ModuleSet::from_bits(0b11), arrays: vec![a, b], elsewhere: false });
    }

    #[test]
    fn a_line_of_no_array_is_elsewhere() {
        let reading = |line| vec![CtaBuilder::new().warp(|w| _ = w.read([line]))];
        let program = DirectedProgram::with_arrays(vec![reading(5), reading(100)], &[("a", 0..100)]);
        let [inside, outside] = &uses(&program)[..] else { panic!("two kernels") };
        assert!(!inside.elsewhere && outside.elsewhere);
        assert_eq!(inside.on.count(), 1, "one CTA runs on one module");
    }

    #[test]
    fn marks_that_touch_are_one_range_across_words() {
        let mut marks = Marks::default();
        let lines = Line(1000)..Line(1256);
        [0, 63, 64, 65, 127, 128, 255].into_iter().for_each(|place| marks.add(place, &lines));
        assert_eq!(marks.take(Line(1000)), set(&[(1000, 1001), (1063, 1066), (1127, 1129), (1255, 1256)]));
        (64..192).for_each(|place| marks.add(place, &lines));
        assert_eq!(marks.take(Line(0)), set(&[(64, 192)]));
        assert!(marks.take(Line(0)).is_empty());
    }
}
