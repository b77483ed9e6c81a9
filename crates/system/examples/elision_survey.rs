//! Surveys the kernel boundaries that a table elides, depending on the kind of kernel labels. Programs are recorded and
//! labelled, and tables are queried, without simulation. Four modules, contiguous CTAs, 4 KB pages by first touch, 64 B
//! lines.
//!
//! `cargo run --release --example elision_survey [WORKLOAD,KEY=VALUE…]…`
//!
//! Each cell shows two numbers: the percentage of boundaries between launches at which no L2 performs any operation,
//! and module operations per boundary (out of eight: four flushes and four invalidations). The first pair counts
//! launches only; the second includes host reads, writes and copies between them.

use std::error::Error;
use tombolo_design::scheduling::{CtaDistribution, MachineShape};
use tombolo_programs::find;
use tombolo_protocol::elision::{
    BoundaryOperations, ChipletTable, Elision, HomeAware, KernelId, Never, OperationGranularity, Packet, ReleaseTime,
    RetainedLines, TableConfig,
};
use tombolo_system::labels::{LabelConfig, Labelling, Labels};
use tombolo_system::placement::{FirstTouch, TouchOrder};
use tombolo_system::survey::survey;
use tombolo_system::uses::UseFinder;
use tombolo_types::LineSize;
use tombolo_types::stream::{Command, Program};
use tombolo_workload::bench::{Mode, Request, record};
use tombolo_workload::record::{RecordOptions, Recording};
use tombolo_workload::scale::Scale;

const MODULES: u8 = 4;
/// Lines per page.
const PAGE: u64 = 64;

const WORKLOADS: [&str; 6] = [
    "triad,elements=524288,iterations=4",
    "hotspot,columns=512,rows=512,pyramid=2,steps=20",
    "stencil2d,columns=1024,rows=1024,iterations=10",
    "lulesh-hip,side=10,steps=2",
    "backprop,inputs=65536,hidden=16",
    "kmeans,points=65536,iterations=4,program=rodinia",
];

/// CPElide's table.
const TABLE: TableConfig =
    TableConfig { rows: 64, structures: 8, ranges: 1, operations: OperationGranularity::Cache, sharing: 1 };
/// A table with unlimited room: the effect of labels and operations alone.
const ROOMY: TableConfig = TableConfig { rows: u16::MAX, structures: u16::MAX, ranges: u16::MAX, ..TABLE };

/// Decision policy at boundaries.
#[derive(Clone, Copy)]
enum BoundaryPolicy {
    Never,
    Chiplet(TableConfig),
    Home(TableConfig),
}

const fn ranged(config: TableConfig) -> TableConfig {
    TableConfig { operations: OperationGranularity::Range, ..config }
}

const COLUMNS: [(&str, Labelling, BoundaryPolicy); 11] = [
    ("none", Labelling::Modes, BoundaryPolicy::Never),
    ("asserted", Labelling::Asserted, BoundaryPolicy::Chiplet(TABLE)),
    ("modes", Labelling::Modes, BoundaryPolicy::Chiplet(TABLE)),
    ("ranges", Labelling::Ranges, BoundaryPolicy::Chiplet(TABLE)),
    ("ranges, roomy", Labelling::Ranges, BoundaryPolicy::Chiplet(ROOMY)),
    ("ranges, by range", Labelling::Ranges, BoundaryPolicy::Chiplet(ranged(ROOMY))),
    ("split", Labelling::Split, BoundaryPolicy::Chiplet(ROOMY)),
    ("exact, roomy", Labelling::Exact, BoundaryPolicy::Chiplet(ROOMY)),
    ("exact, by range", Labelling::Exact, BoundaryPolicy::Chiplet(ranged(ROOMY))),
    ("home-aware ranges", Labelling::Ranges, BoundaryPolicy::Home(TABLE)),
    ("home-aware exact, roomy", Labelling::Exact, BoundaryPolicy::Home(ROOMY)),
];

impl BoundaryPolicy {
    fn table(self) -> Box<dyn Elision> {
        match self {
            BoundaryPolicy::Never => Box::new(Never::new(ReleaseTime::EndThenLaunch, MODULES)),
            BoundaryPolicy::Chiplet(config) => Box::new(ChipletTable::new(config, MODULES, None)),
            BoundaryPolicy::Home(config) => Box::new(
                HomeAware::new(config, MODULES, RetainedLines::Own, None).expect("an L2 that holds its own lines"),
            ),
        }
    }
}

fn recorded(chosen: &str) -> Result<Recording, Box<dyn Error>> {
    let (name, parameters) = chosen.split_once(',').unwrap_or((chosen, ""));
    let pair = |text: &str| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    let given: Vec<_> = parameters.split(',').filter_map(pair).collect();
    let request = Request::new(find(name)?, Scale::FULL, &given, 1)?;
    let options = RecordOptions { line: LineSize::new(64).expect("a power of two"), ..RecordOptions::default() };
    Ok(record(find(name)?, &request, &options, Mode::Auto)?)
}

/// Boundaries between launches, boundaries without operations, and the number of operations.
struct BoundaryTally {
    boundaries: u64,
    quiet: u64,
    operations: u64,
}

fn boundaries(program: &dyn Program, labels: &Labels, mut table: Box<dyn Elision>, with_host: bool) -> BoundaryTally {
    let mut found = BoundaryTally { boundaries: 0, quiet: 0, operations: 0 };
    // `None` before the first launch; afterwards, the operations since the latest launch.
    let mut done: Option<u64> = None;
    for (number, command) in (0..).zip(program.commands()) {
        let launches = matches!(command, Command::Launch { .. });
        if !launches && !with_host {
            continue;
        }
        if *command == Command::Barrier {
            continue;
        }
        let said = labels.of(command);
        let labels = labels.packet(said);
        let packet = Packet { kernel: KernelId(number), modules: said.on, labels: labels.as_deref() };
        let (start, end) = asked(&mut *table, &packet);
        match &mut done {
            Some(done) if launches => {
                let all = std::mem::replace(done, end) + start;
                found.boundaries += 1;
                found.quiet += u64::from(all == 0);
                found.operations += all;
            }
            Some(done) => *done += start + end,
            None if launches => done = Some(end),
            None => {}
        }
    }
    found
}

/// Module operations at a launch, and at its end.
fn asked(table: &mut dyn Elision, packet: &Packet<'_>) -> (u64, u64) {
    let [start, end] = [table.launch(packet, &mut |_| ()), table.finish(packet.kernel, &mut |_| ())];
    let count = |boundary: &BoundaryOperations| (boundary.invalidations() + boundary.flushes()) as u64;
    (count(&start), count(&end))
}

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let chosen = if given.is_empty() { WORKLOADS.map(str::to_owned).to_vec() } else { given };
    for chosen in chosen {
        let program = recorded(&chosen)?;
        let (mut first, mut uses) =
            (FirstTouch::new(TouchOrder::new(MODULES, PAGE)), UseFinder::new(&program, MODULES));
        survey(&program, CtaDistribution::Contiguous, MachineShape::one_gpu(MODULES), &mut [&mut first, &mut uses])?;
        let (pages, uses) = (first.pages(), uses.finish());
        println!("{chosen}");
        for (column, labelling, decides) in COLUMNS {
            let config = LabelConfig { labelling, drop: None };
            let labels = Labels::derive(&program, &uses, &pages, MODULES, &config)?;
            let cells = [false, true].map(|with_host| {
                let found = boundaries(&program, &labels, decides.table(), with_host);
                let all = found.boundaries.max(1) as f64;
                format!("{:4.0} % {:5.2}", 100.0 * found.quiet as f64 / all, found.operations as f64 / all)
            });
            println!("  {column:24} {}   with host {}", cells[0], cells[1]);
        }
    }
    Ok(())
}
