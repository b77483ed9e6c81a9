//! Labels match program behaviour: labels by ranges and by exact lines cover every access; equal parts do not if there
//! are halos.

use std::sync::Arc;
use tombolo_design::scheduling::{CtaDistribution, MachineShape};
use tombolo_programs::find;
use tombolo_protocol::elision::{AccessMode, LineSet, User};
use tombolo_system::labels::{LabelConfig, Labelling, Labels};
use tombolo_system::placement::{FirstTouch, TouchOrder};
use tombolo_system::survey::survey;
use tombolo_system::uses::{KernelUse, UseFinder};
use tombolo_types::stream::{Command, Program};
use tombolo_types::{LineSize, ModuleId};
use tombolo_workload::bench::{self, Request, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

const MODULES: u8 = 4;
/// Lines in a 4 KB page.
const PAGE: u64 = 64;

/// Small workload sizes, with a flag: true if equal parts cover all accesses.
const WORKLOADS: [(&str, &str, bool); 11] = [
    ("triad", "elements=16384,iterations=2", true),
    ("stencil2d", "columns=128,rows=64,iterations=2", false),
    ("hotspot", "columns=128,rows=128,pyramid=2,steps=4", false),
    ("backprop", "inputs=2048,hidden=16", false),
    ("lulesh", "side=6,steps=1", false),
    ("lulesh-hip", "side=10,steps=1", false),
    ("pathfinder", "columns=4096,rows=9,pyramid=4", false),
    ("kmeans", "points=2048,features=4,program=rodinia,iterations=2", false),
    ("bfs", "nodes=2000,degree=4", false),
    ("nw", "length=256,tile=64", false),
    ("gaussian", "size=64,steps=8,tile=16", false),
];

fn recorded(name: &str, parameters: &str) -> Arc<dyn Program> {
    let pair = |text: &str| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    let given: Vec<_> = parameters.split(',').filter_map(pair).collect();
    let workload = find(name).expect("a workload that ships");
    let request = Request::new(workload, Scale::FULL, &given, 1).expect("its parameters");
    let options = RecordOptions { line: LineSize::new(64).expect("a power of two"), ..RecordOptions::default() };
    Arc::new(record(workload, &request, &options, bench::Mode::Auto).expect("it runs"))
}

/// Number of lines in `set` that are missing from `label`.
fn missing(set: &LineSet, label: &LineSet) -> u64 {
    let count = |set: &LineSet| set.ranges().iter().map(|range| range.end.0 - range.first.0).sum::<u64>();
    count(set) - count(&set.intersection(label))
}

/// Number of lines that modules read or write outside the kernel's labels.
fn uncovered(labels: &Labels, kernel: u32, used: &KernelUse) -> u64 {
    let said = labels.of(&Command::launch(kernel, 0));
    let said = said.arrays.as_ref().expect("a kernel that stays in its arrays has labels");
    let mut lines = 0;
    for array in &used.arrays {
        let label = said.iter().find(|label| label.array == array.array).expect("a label for each array");
        for (module, touched) in (0..).map(ModuleId).zip(&array.modules) {
            let of_module = label.uses.iter().find(|used| used.user == User::Module(module));
            let with = |mode| of_module.filter(|used| used.mode >= mode).map(|used| used.lines.clone());
            lines += missing(&touched.read, &with(AccessMode::Read).unwrap_or_default());
            lines += missing(&touched.written, &with(AccessMode::ReadWrite).unwrap_or_default());
        }
    }
    lines
}

#[test]
fn sound_labels_cover_every_access_and_equal_parts_leave_halos_out() {
    for (name, parameters, parts_cover) in WORKLOADS {
        let program = recorded(name, parameters);
        let (mut first, mut uses) =
            (FirstTouch::new(TouchOrder::new(MODULES, PAGE)), UseFinder::new(&*program, MODULES));
        survey(&*program, CtaDistribution::Contiguous, MachineShape::one_gpu(MODULES), &mut [&mut first, &mut uses])
            .expect("it decodes");
        let (pages, uses) = (first.pages(), uses.finish());
        assert!(uses.values().all(|used| !used.elsewhere && !used.arrays.is_empty()), "{name}");
        for &labelling in Labelling::ALL {
            let config = LabelConfig { labelling, drop: None };
            let labels = Labels::derive(&*program, &uses, &pages, MODULES, &config).expect("nothing is dropped");
            let lines: u64 = uses.iter().map(|(&(kernel, _), used)| uncovered(&labels, kernel, used)).sum();
            let covers = labelling != Labelling::Split || parts_cover;
            assert_eq!(lines == 0, covers, "{name}, {labelling:?}: {lines} lines in no label");
        }
    }
}

/// Every touched line has exactly one home.
#[test]
fn the_homes_of_an_array_are_apart_and_hold_all_that_is_touched() {
    let program = recorded("hotspot", "columns=128,rows=128,pyramid=2,steps=4");
    let (mut first, mut uses) = (FirstTouch::new(TouchOrder::new(MODULES, PAGE)), UseFinder::new(&*program, MODULES));
    survey(&*program, CtaDistribution::Contiguous, MachineShape::one_gpu(MODULES), &mut [&mut first, &mut uses])
        .expect("it decodes");
    let labels = Labels::derive(&*program, &uses.finish(), &first.pages(), MODULES, &LabelConfig::default());
    let labels = labels.expect("nothing is dropped");
    let launch = program.commands().iter().find(|command| matches!(command, Command::Launch { .. }));
    for label in labels.packet(labels.of(launch.expect("it launches"))).expect("it has labels") {
        let mut all = LineSet::default();
        for (module, homes) in label.homes.iter().enumerate() {
            assert!(!all.overlaps(homes), "module {module} is home of lines of another");
            all.add(homes);
        }
        let touched = label.uses.iter().map(|used| missing(&used.lines, &all)).sum::<u64>();
        assert_eq!(touched, 0, "lines without a home");
    }
}

/// Host reads and copies are labelled to the byte, regardless of the kind of kernel labels.
#[test]
fn the_host_is_a_user_of_what_it_touches() {
    let program = recorded("bfs", "nodes=2000,degree=4,mapping=group");
    let mut uses = UseFinder::new(&*program, MODULES);
    let mut first = FirstTouch::new(TouchOrder::new(MODULES, PAGE));
    survey(&*program, CtaDistribution::Contiguous, MachineShape::one_gpu(MODULES), &mut [&mut first, &mut uses])
        .expect("it decodes");
    let labels = Labels::derive(&*program, &uses.finish(), &first.pages(), MODULES, &LabelConfig::default());
    let labels = labels.expect("nothing is dropped");
    let changed = program.arrays().iter().position(|array| array.name == "changed").expect("its flag") as u32;
    let hosts = program.commands().iter().filter(|command| matches!(command, Command::Host { .. }));
    let mut modes = Vec::new();
    for command in hosts {
        let [label] = &labels.of(command).arrays.as_ref().expect("it is in arrays")[..] else { panic!("one array") };
        let [used] = &label.uses[..] else { panic!("one user") };
        assert_eq!((label.array, used.user, used.lines.ranges().len()), (changed, User::Host, 1));
        modes.push(used.mode);
    }
    assert_eq!(modes.first(), Some(&AccessMode::ReadWrite), "it clears the flag before the first level");
    assert_eq!(modes.last(), Some(&AccessMode::Read), "it only reads it behind the last");
}
