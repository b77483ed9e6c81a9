//! First touch on shipped programs: homes for pages read by several modules, and remote traffic only for shared data.

use crate::common::design;
use std::collections::BTreeSet;
use std::sync::Arc;
use tombolo_design::scheduling::{CtaDistribution, MachineShape};
use tombolo_machine::MachineConfig;
use tombolo_model::front_end::PageTable;
use tombolo_programs::find;
use tombolo_system::survey::{Reader, SurveyedLaunch, survey, touches};
use tombolo_system::{RunSpec, place, run};
use tombolo_types::stream::{CtaStream, Program};
use tombolo_types::{Line, ModuleId};
use tombolo_workload::bench::{self, Request, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Lines that a module touches without being their home.
struct RemoteLines<'a> {
    pages: &'a PageTable,
    lines: BTreeSet<Line>,
}

impl Reader for RemoteLines<'_> {
    fn launch(&mut self, _: SurveyedLaunch) -> bool {
        true
    }

    fn cta(&mut self, module: ModuleId, _: u32, stream: &CtaStream) {
        for (_, line) in touches(stream) {
            let home = self.pages.home(module, line).expect("a page that is touched is placed");
            if home != module {
                self.lines.insert(line);
            }
        }
    }
}

/// Machine with four sockets, with settings applied.
fn four_sockets(settings: &[&str]) -> Arc<MachineConfig> {
    let mut machine = tombolo_machine::machine("numa-4").expect("a preset");
    tombolo_design::apply(settings, &mut machine, &mut []).expect("settings a machine has");
    Arc::new(machine.check().expect("a machine that fits"))
}

fn recorded(machine: &MachineConfig, name: &str, parameters: &[(&str, &str)]) -> Arc<dyn Program> {
    let given: Vec<_> = parameters.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let workload = find(name).expect("a workload that ships");
    let request = Request::new(workload, Scale::FULL, &given, 1).unwrap_or_else(|error| panic!("{error}"));
    let options = RecordOptions { line: machine.line, ..RecordOptions::default() };
    Arc::new(record(workload, &request, &options, bench::Mode::Auto).unwrap_or_else(|error| panic!("{error}")))
}

/// Lines that modules touch without being their home.
fn crossing(machine: &MachineConfig, settings: &[&str], program: &dyn Program) -> BTreeSet<Line> {
    let pages = place(machine, &design("numa-memory-side", settings), program).expect("a whole program");
    let mut found = RemoteLines { pages: &pages, lines: BTreeSet::new() };
    survey(program, CtaDistribution::Contiguous, MachineShape::of(machine), &mut [&mut found])
        .expect("a whole program");
    found.lines
}

#[test]
fn no_byte_of_a_triad_crosses() {
    let machine = four_sockets(&[]);
    // A quarter of an array consists of whole pages, and exceeds one wave of CTAs.
    let program = recorded(&machine, "triad", &[("elements", "4194304"), ("iterations", "2")]);
    for settings in [&[][..], &["placement.ties=first-socket"]] {
        let remote = crossing(&machine, settings, &*program);
        assert_eq!(remote.len(), 0, "{settings:?}");
    }
}

#[test]
fn only_halos_of_a_stencil_cross() {
    let (columns, rows) = (1024, 512);
    let machine = four_sockets(&["page_bytes=4KB"]);
    let (columns_text, rows_text) = (columns.to_string(), rows.to_string());
    let program =
        recorded(&machine, "stencil2d", &[("columns", &columns_text), ("rows", &rows_text), ("iterations", "4")]);
    let remote = crossing(&machine, &[], &*program);
    let row_lines = columns * 4 / machine.line.bytes();
    // A row is a page, so that each of six halo rows in each plane belongs to one module and is read by another.
    assert_eq!(machine.page_bytes, columns * 4);
    let mut halos: Vec<(u64, u64)> = Vec::new();
    for line in &remote {
        let byte = machine.line.address_of(*line);
        let array = program.arrays().iter().find(|array| (array.base..array.base + array.bytes).contains(&byte));
        let row = (byte - array.expect("a line of a plane").base) / (columns * 4);
        halos.push((row % (rows / 4), row));
    }
    let at_border = |(within, _): &&(u64, u64)| *within == 0 || *within == rows / 4 - 1;
    assert_eq!(halos.iter().filter(at_border).count(), halos.len(), "rows next to a border alone");
    assert!(!halos.is_empty() && halos.len() as u64 <= 2 * 6 * row_lines, "{} lines", halos.len());
}

/// Tables that all sockets read at random are spread over all sockets.
#[test]
fn each_socket_sends_as_many_bytes_of_rsbench() {
    let machine = four_sockets(&[]);
    let program = recorded(&machine, "rsbench", &[("lookups", "20000")]);
    let design = design("numa-memory-side", &[]);
    let record = run(&RunSpec { machine, design, program, pages: None, threads: 1 });
    let record = record.unwrap_or_else(|error| panic!("{error}"));
    let sent: Vec<u64> = record.modules.iter().map(|module| module.sent_bytes).collect();
    let mean = sent.iter().sum::<u64>() / 4;
    assert!(sent.iter().all(|sent| sent.abs_diff(mean) * 10 < mean), "{sent:?}");
}
