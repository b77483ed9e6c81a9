//! Data movement between four GPUs in shipped programs: copies, pages and homes, derived from their streams.

use std::sync::Arc;
use tombolo_design::placement::CopyContents;
use tombolo_design::scheduling::CtaDistribution;
use tombolo_model::front_end::Schedule;
use tombolo_programs::find;
use tombolo_system::movement::{Movement, PageKind};
use tombolo_system::placement::TouchOrder;
use tombolo_types::LineSize;
use tombolo_types::stream::Program;
use tombolo_workload::bench::{self, Request, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

const GPUS: u8 = 4;
/// Lines in a 4 KB page.
const PAGE: u64 = 32;

fn recorded(name: &str, parameters: &str) -> Arc<dyn Program> {
    let pair = |text: &str| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    let given: Vec<_> = parameters.split(',').filter_map(pair).collect();
    let workload = find(name).unwrap_or_else(|_| panic!("{name} ships"));
    let request = Request::new(workload, Scale::FULL, &given, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
    let options = RecordOptions { line: LineSize::B128, warp_width: 32, ..RecordOptions::default() };
    Arc::new(record(workload, &request, &options, bench::Mode::Auto).unwrap_or_else(|error| panic!("{name}: {error}")))
}

/// Calls and lines over all copies.
fn copied(schedule: &Schedule) -> (usize, u64) {
    let calls = || schedule.tasks.iter().flat_map(|around| &around.copies);
    let lines = calls().map(|&call| schedule.copies[call as usize].lines);
    (calls().count(), lines.map(|lines| lines.end.0 - lines.first.0).sum())
}

struct MovementSummary {
    hull: (usize, u64),
    needed: (usize, u64),
    moves: usize,
    remaps: usize,
    /// By array: name, and the prevalent kind among the array's pages.
    kinds: Vec<(String, Option<PageKind>)>,
}

fn found(name: &str, parameters: &str) -> MovementSummary {
    let program = recorded(name, parameters);
    let movement =
        Movement::find(&*program, CtaDistribution::Contiguous, TouchOrder::new(GPUS, PAGE)).expect("it decodes");
    let copies = |which| copied(&movement.copies(&*program, which).0);
    let (hints, latest) = (movement.hints(&*program).0, movement.latest_writers(&*program).0);
    let kinds = movement.sharing(&*program).into_iter().map(|row| {
        let array = row.array.expect("these programs name their arrays");
        (program.arrays()[array as usize].name.clone(), row.pages.most())
    });
    let found = MovementSummary {
        hull: copies(CopyContents::Hull),
        needed: copies(CopyContents::Needed),
        moves: hints.tasks.iter().map(|around| around.moves.len()).sum(),
        remaps: latest.tasks.iter().map(|around| around.remaps.len()).sum(),
        kinds: kinds.collect(),
    };
    println!(
        "{name}: {} launches, hull {:?}, needed {:?}, {} moves, {} remaps, {:?}",
        program.commands().len(),
        found.hull,
        found.needed,
        found.moves,
        found.remaps,
        found.kinds
    );
    found
}

#[test]
fn a_stencil_needs_halos_alone() {
    let found = found("stencil2d", "columns=256,rows=128,iterations=4");
    // After every step except the last: a row with 256 floats across each of three borders, in both directions.
    assert_eq!(found.needed, (3 * 6, 3 * 6 * 256 * 4 / 128));
    assert!(found.needed.1 * 8 < found.hull.1, "{:?} of {:?}", found.needed, found.hull);
    assert!(found.kinds.iter().all(|(_, kind)| *kind == Some(PageKind::Private)), "but for the borders");
}

#[test]
fn a_gather_reads_what_all_have_written() {
    let found = found("pagerank", "");
    let kind = |name| found.kinds.iter().find(|(array, _)| array == name).and_then(|(_, kind)| *kind);
    assert_eq!((kind("x"), kind("columns")), (Some(PageKind::ManyWriters), Some(PageKind::Private)));
    assert!(found.remaps > found.moves, "a page that several write stays");
    assert!(found.needed.1 <= found.hull.1);
}

#[test]
fn shortest_paths_need_one_row_a_step_from_who_has_it() {
    let found = found("floydwarshall", "nodes=64");
    assert!(found.needed.1 <= found.hull.1);
}
