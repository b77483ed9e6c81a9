//! Labels for the command processor: a label for each array that a kernel uses. They are derived from the recorded
//! streams ([`crate::uses`]) and from host accesses and copies, without help from any workload.
//!
//! | labels | lines in a use | mode of a use | sound |
//! | --- | --- | --- | --- |
//! | `modes` | the whole array (CPElide, Listing 1) | per kernel: R if no module writes the array | yes |
//! | `ranges` | from the module's first to its last touched line (Listing 2) | per module | yes |
//! | `exact` | the module's touched lines | per module | yes |
//! | `split` | the module's part, without halos: parts are equal, one per module that runs the kernel | per kernel | no |
//! | `asserted` | like `modes`, with the assertion that no boundary matters for any array | per kernel | no |
//!
//! In `ranges` and `exact`, modes are specific to the module: parts with different modes have their own vectors
//! (III-B). `split` corresponds to a programmer who labels only by the output's division: an array with fewer elements
//! than parts is whole for each module. The boolean in `asserted` comes from the authors' public simulator.
//!
//! A kernel that touches lines outside every array has no labels, and may access anything. The same holds for every
//! kernel in a trace, because traces name no arrays. Host accesses are labelled exactly, regardless of the kind: the
//! driver knows them.

use crate::uses::{ArrayUse, KernelUse, KernelUses, LineAccesses};
use rustc_hash::FxHashMap;
use std::ops::Range;
pub use tombolo_design::elision::Labelling;
use tombolo_model::front_end::PageTable;
use tombolo_protocol::elision::{AccessMode, Label, LineRange, LineSet, ModuleSet, StructureUse, User};
use tombolo_types::array::lines_of;
use tombolo_types::stream::{Command, Program};
use tombolo_types::{ArrayInfo, LaunchDevices, Line, LineSize, ModuleId};

/// Error while deriving labels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// The program has no array with the name that labels should omit.
    #[error("no array {array:?} to drop from the labels; the program has {known}")]
    Array {
        /// The requested array.
        array: String,
        /// The program's arrays.
        known: String,
    },
}

/// Kind of kernel labels, and the omitted array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelConfig {
    /// The kind of labels.
    pub labelling: Labelling,
    /// An array missing from the kernels' labels, so that tests can see a wrong label detected.
    pub drop: Option<&'static str>,
}

impl Default for LabelConfig {
    fn default() -> LabelConfig {
        LabelConfig { labelling: Labelling::Ranges, drop: None }
    }
}

/// The label for one array, including the data that a [`Label`] borrows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayLabel {
    /// Index of the array.
    pub array: u32,
    /// True if the label asserts that no boundary matters for the array.
    pub asserted: bool,
    /// A use for each user.
    pub uses: Vec<StructureUse>,
}

/// Labels for one command: a launch or host activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLabels {
    /// The modules that run the kernel; none for the host.
    pub on: ModuleSet,
    /// A label for each accessed array, in address order; `None` if the command may access anything.
    pub arrays: Option<Vec<ArrayLabel>>,
}

/// An array and its line set, for use in labels.
#[derive(Clone, Debug)]
struct LabelledArray {
    /// The array's lines; `None` if it is empty.
    lines: Option<LineRange>,
    bytes: u64,
    element: u64,
    base: u64,
    /// The array's lines, indexed by home module.
    homes: Vec<LineSet>,
}

/// The labels for a program.
#[derive(Clone, Debug)]
pub struct Labels {
    structures: Vec<LabelledArray>,
    /// Labels by kernel and target modules.
    kernels: FxHashMap<(u32, LaunchDevices), KernelLabels>,
    phases: Vec<KernelLabels>,
    copies: FxHashMap<(u64, u64, bool), KernelLabels>,
}

impl Labels {
    /// Labels `program` for `modules` modules, with the kernels' accesses in `uses` and the page homes in `pages`.
    ///
    /// # Errors
    /// `config` drops an array that the program does not have.
    pub fn derive(
        program: &dyn Program,
        uses: &KernelUses,
        pages: &PageTable,
        modules: u8,
        config: &LabelConfig,
    ) -> Result<Labels, LabelError> {
        let arrays = program.arrays();
        if let Some(name) = config.drop {
            named(arrays, name)?;
        }
        let is_kept = |array: &ArrayUse| config.drop != Some(&*arrays[array.array as usize].name);
        let size = program.line_size();
        let structure = |array: &ArrayInfo| LabelledArray::of(array, size, pages, modules);
        let structures: Vec<LabelledArray> = arrays.iter().map(structure).collect();
        let kernel = |used: &KernelUse| kernel_labels(used, is_kept, &structures, size, config.labelling);
        let host = |accesses: &[(&[Range<u64>], AccessMode)]| host_labels(accesses, &structures, size);
        let copies = program.commands().iter().filter_map(|command| match *command {
            Command::Copy { address, bytes, to_device } => Some((address, bytes, to_device)),
            Command::Launch { .. } | Command::Host { .. } | Command::Barrier => None,
        });
        let copy = |(address, bytes, to_device): (u64, u64, bool)| {
            let moved = address..address.saturating_add(bytes);
            let mode = if to_device { AccessMode::ReadWrite } else { AccessMode::Read };
            ((address, bytes, to_device), host(&[(&[moved], mode)]))
        };
        Ok(Labels {
            kernels: uses.iter().map(|(launched, used)| (*launched, kernel(used))).collect(),
            phases: (program.host_phases().iter())
                .map(|phase| host(&[(&phase.reads, AccessMode::Read), (&phase.writes, AccessMode::ReadWrite)]))
                .collect(),
            copies: copies.map(copy).collect(),
            structures,
        })
    }

    /// The labels for a command in the program.
    ///
    /// # Panics
    /// If the program does not contain the command.
    pub fn of(&self, command: &Command) -> &KernelLabels {
        match *command {
            Command::Launch { kernel, on, .. } => &self.kernels[&(kernel, on)],
            Command::Host { phase } => &self.phases[phase as usize],
            Command::Copy { address, bytes, to_device } => &self.copies[&(address, bytes, to_device)],
            Command::Barrier => panic!("a barrier has no packet"),
        }
    }

    /// The labels in the format for the command processor's packets.
    pub fn packet<'a>(&'a self, said: &'a KernelLabels) -> Option<Vec<Label<'a>>> {
        let label = |label: &'a ArrayLabel| {
            let structure = &self.structures[label.array as usize];
            let lines = structure.lines?;
            Some(Label { structure: lines, homes: &structure.homes, asserted: label.asserted, uses: &label.uses })
        };
        said.arrays.as_ref().map(|arrays| arrays.iter().filter_map(label).collect())
    }
}

/// Checks that at least one array has this name.
fn named(arrays: &[ArrayInfo], name: &str) -> Result<(), LabelError> {
    let known: Vec<&str> = arrays.iter().map(|array| array.name.as_str()).collect();
    if known.contains(&name) {
        return Ok(());
    }
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(LabelError::Array { array: name.to_owned(), known })
}

impl LabelledArray {
    fn of(array: &ArrayInfo, size: LineSize, pages: &PageTable, modules: u8) -> LabelledArray {
        let range = array.lines(size);
        LabelledArray {
            lines: (!range.is_empty()).then(|| LineRange::new(range.start, range.end)),
            bytes: array.bytes,
            element: u64::from(array.element.unwrap_or(1)),
            base: array.base,
            homes: homes(&range, pages, modules),
        }
    }

    fn whole(&self) -> LineSet {
        self.lines.map(LineSet::from).unwrap_or_default()
    }

    /// Part number `part` when the array is divided into `parts` equal parts.
    fn part(&self, part: u64, parts: u64, size: LineSize) -> LineSet {
        let elements = self.bytes / self.element;
        if elements < parts {
            return self.whole();
        }
        let behind =
            |part: u64| self.base + self.element * (u128::from(elements) * u128::from(part) / u128::from(parts)) as u64;
        LineRange::covering(behind(part)..behind(part + 1), size).into()
    }
}

/// For each module, the lines in `range` homed on this module.
pub(crate) fn homes(range: &Range<Line>, pages: &PageTable, modules: u8) -> Vec<LineSet> {
    let together = pages.lines_together();
    let mut homes: Vec<Vec<LineRange>> = vec![Vec::new(); usize::from(modules)];
    let mut first = range.start;
    while first < range.end {
        let end = Line((first.0 / together + 1) * together).min(range.end);
        if let Some(home) = pages.home(ModuleId(0), first) {
            homes[usize::from(home.0)].push(LineRange::new(first, end));
        }
        first = end;
    }
    homes.into_iter().map(|lines| lines.into_iter().collect()).collect()
}

fn mode_of(touched: &LineAccesses) -> AccessMode {
    if touched.written.is_empty() { AccessMode::Read } else { AccessMode::ReadWrite }
}

fn kernel_labels(
    used: &KernelUse,
    is_kept: impl Fn(&ArrayUse) -> bool,
    structures: &[LabelledArray],
    size: LineSize,
    labelling: Labelling,
) -> KernelLabels {
    let label = |array: &ArrayUse| {
        let uses = uses(array, &structures[array.array as usize], used.on, size, labelling);
        ArrayLabel { array: array.array, asserted: labelling == Labelling::Asserted, uses }
    };
    let kept = used.arrays.iter().filter(|array| is_kept(array));
    let nobody_knows = used.elsewhere || structures.is_empty();
    KernelLabels { on: used.on, arrays: (!nobody_knows).then(|| kept.map(label).collect()) }
}

/// Uses of an array in a kernel on the modules `on`.
fn uses(
    array: &ArrayUse,
    structure: &LabelledArray,
    on: ModuleSet,
    size: LineSize,
    labelling: Labelling,
) -> Vec<StructureUse> {
    let modes = array.modules.iter().map(mode_of);
    let of_kernel = modes.max().expect("a machine has modules");
    let touched = || (0..=u8::MAX).map(ModuleId).zip(&array.modules);
    let by = |(module, lines, mode)| {
        (!LineSet::is_empty(&lines)).then_some(StructureUse { user: User::Module(module), mode, lines })
    };
    match labelling {
        Labelling::Modes | Labelling::Asserted => touched()
            .filter(|(_, touched)| !touched.lines().is_empty())
            .filter_map(|(module, _)| by((module, structure.whole(), of_kernel)))
            .collect(),
        Labelling::Ranges => touched()
            .filter_map(|(module, touched)| by((module, touched.lines().limited(1), mode_of(touched))))
            .collect(),
        Labelling::Exact => {
            touched().filter_map(|(module, touched)| by((module, touched.lines(), mode_of(touched)))).collect()
        }
        Labelling::Split => {
            let running = touched().map(|(module, _)| module).filter(|&module| on.contains(module));
            let part = |(part, module)| by((module, structure.part(part, u64::from(on.count()), size), of_kernel));
            (0..).zip(running).filter_map(part).collect()
        }
    }
}

/// Labels for host accesses; no labels if any access lies outside every array.
fn host_labels(accesses: &[(&[Range<u64>], AccessMode)], structures: &[LabelledArray], size: LineSize) -> KernelLabels {
    let mut found: FxHashMap<u32, (AccessMode, Vec<LineRange>)> = FxHashMap::default();
    let mut knows = true;
    for (addresses, mode) in accesses.iter().flat_map(|&(ranges, mode)| ranges.iter().map(move |range| (range, mode))) {
        let place = structures.partition_point(|array| array.base <= addresses.start).checked_sub(1);
        let place = place.filter(|&place| addresses.end <= structures[place].base + structures[place].bytes);
        let lines = lines_of(addresses, size);
        match place {
            _ if lines.is_empty() => {}
            Some(place) => {
                let (most, all) = found.entry(place as u32).or_insert((mode, Vec::new()));
                *most = mode.max(*most);
                all.push(LineRange::new(lines.start, lines.end));
            }
            None => knows = false,
        }
    }
    let mut arrays: Vec<ArrayLabel> = (found.into_iter())
        .map(|(array, (mode, lines))| {
            let used = StructureUse { user: User::Host, mode, lines: lines.into_iter().collect() };
            ArrayLabel { array, asserted: false, uses: vec![used] }
        })
        .collect();
    arrays.sort_unstable_by_key(|label| label.array);
    KernelLabels { on: ModuleSet::NONE, arrays: knows.then_some(arrays) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directed::{CtaBuilder, DirectedProgram};
    use crate::placement::{FirstTouch, TouchOrder};
    use crate::survey::survey;
    use crate::uses::UseFinder;
    use std::sync::Arc;
    use tombolo_design::scheduling::{CtaDistribution, MachineShape};

    const MODULES: u8 = 2;

    /// Two CTAs on two modules: each writes half of `b`, and reads half of `a` plus a halo line from the neighbour.
    fn stencil() -> Arc<DirectedProgram> {
        let cta = |own: Range<u64>, with_halo: Range<u64>| {
            CtaBuilder::new().warp(|w| _ = w.read(with_halo).write(own.map(|line| line + 64)))
        };
        let kernel = vec![cta(0..32, 0..33), cta(32..64, 31..64)];
        DirectedProgram::with_arrays(vec![kernel], &[("a", 0..64), ("b", 64..128), ("unused", 128..129)])
    }

    fn labels(program: &dyn Program, config: &LabelConfig) -> Result<Labels, LabelError> {
        let (mut first, mut uses) = (FirstTouch::new(TouchOrder::new(MODULES, 32)), UseFinder::new(program, MODULES));
        survey(program, CtaDistribution::Contiguous, MachineShape::one_gpu(MODULES), &mut [&mut first, &mut uses])
            .expect("it decodes");
        Labels::derive(program, &uses.finish(), &first.pages(), MODULES, config)
    }

    /// Array, module, mode, and half-open line ranges.
    type Row = (u32, u8, AccessMode, Vec<(u64, u64)>);

    fn of_kernel(labelling: Labelling) -> Vec<Row> {
        let labels = labels(&*stencil(), &LabelConfig { labelling, drop: None }).expect("all arrays are kept");
        let said = labels.of(&Command::launch(0, 0));
        let mut rows = Vec::new();
        for label in said.arrays.as_ref().expect("it has labels") {
            for used in &label.uses {
                let User::Module(module) = used.user else { panic!("a kernel runs on modules") };
                let lines = used.lines.ranges().iter().map(|range| (range.first.0, range.end.0)).collect();
                rows.push((label.array, module.0, used.mode, lines));
            }
        }
        rows
    }

    #[test]
    fn modes_say_the_whole_array() {
        let rows = |array, mode, lines| [0, 1].map(|module| (array, module, mode, vec![lines]));
        let expected = [rows(0, AccessMode::Read, (0, 64)), rows(1, AccessMode::ReadWrite, (64, 128))].concat();
        assert_eq!(of_kernel(Labelling::Modes), expected);
        assert_eq!(of_kernel(Labelling::Asserted), expected);
    }

    #[test]
    fn ranges_and_sets_have_the_halo_and_parts_do_not() {
        let b = [(1, 0, AccessMode::ReadWrite, vec![(64, 96)]), (1, 1, AccessMode::ReadWrite, vec![(96, 128)])];
        let with_halo = [(0, 0, AccessMode::Read, vec![(0, 33)]), (0, 1, AccessMode::Read, vec![(31, 64)])];
        let expected = [with_halo, b.clone()].concat();
        assert_eq!(of_kernel(Labelling::Ranges), expected);
        assert_eq!(of_kernel(Labelling::Exact), expected);
        let without = [(0, 0, AccessMode::Read, vec![(0, 32)]), (0, 1, AccessMode::Read, vec![(32, 64)])];
        assert_eq!(of_kernel(Labelling::Split), [without, b].concat());
    }

    #[test]
    fn a_range_spans_the_lines_between_and_a_set_does_not() {
        let cta = CtaBuilder::new().warp(|w| _ = w.read([1, 40]));
        let program = DirectedProgram::with_arrays(vec![vec![cta]], &[("a", 0..64)]);
        let lines = |labelling| {
            let labels = labels(&*program, &LabelConfig { labelling, drop: None }).expect("all arrays are kept");
            let said = labels.of(&Command::launch(0, 0));
            said.arrays.as_ref().expect("it has labels")[0].uses[0].lines.ranges().len()
        };
        assert_eq!((lines(Labelling::Ranges), lines(Labelling::Exact)), (1, 2));
    }

    #[test]
    fn homes_are_those_of_the_pages() {
        let program = stencil();
        let labels = labels(&*program, &LabelConfig::default()).expect("all arrays are kept");
        let said = labels.of(&program.commands()[0]);
        let packet = labels.packet(said).expect("it has labels");
        let homes: Vec<Vec<LineSet>> = packet.iter().map(|label| label.homes.to_vec()).collect();
        let lines = |first, end| LineSet::from(LineRange::new(Line(first), Line(end)));
        let expected = [[lines(0, 32), lines(32, 64)], [lines(64, 96), lines(96, 128)]];
        assert_eq!(homes, expected);
    }

    #[test]
    fn a_dropped_array_is_in_no_label_of_a_kernel() {
        let program = stencil();
        let config = |array: &'static str| LabelConfig { drop: Some(array), ..LabelConfig::default() };
        let said = labels(&*program, &config("a")).expect("it is there").of(&program.commands()[0]).clone();
        assert_eq!(said.arrays.expect("it has labels").iter().map(|label| label.array).collect::<Vec<_>>(), [1]);
        let error = labels(&*program, &config("c")).expect_err("it is not there");
        assert_eq!(error.to_string(), "no array \"c\" to drop from the labels; the program has a, b, unused");
    }

    #[test]
    fn a_program_that_names_no_arrays_has_no_labels() {
        let program = DirectedProgram::new(vec![vec![CtaBuilder::new().warp(|w| _ = w.read([1]))]]);
        let labels = labels(&*program, &LabelConfig::default()).expect("nothing is dropped");
        assert_eq!(labels.of(&program.commands()[0]).arrays, None);
    }
}
