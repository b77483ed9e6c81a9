//! Golden results: the outcome for every design on six short programs. A commit that changes any result names the
//! change.
//!
//! `./check --bless` rewrites `golden.toml`.

mod programs;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;
use tombolo_system::{RunSpec, run};
use tombolo_types::stream::{KernelClass, Program};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden.toml");

/// The machines, with settings that make them small, and the designs to run on each; an empty list means every preset.
const MACHINES: [(&str, &[&str], &[&str]); 4] = [
    ("hmg-4x4", SMALL, &[]),
    ("numa-4", SMALL, &[]),
    ("v100", SMALL, &["v100", "hmg"]),
    ("mi300a", SMALL, &["mi300a"]),
];

/// Few SMs, with caches and directories small enough to overflow in these programs.
const SMALL: &[&str] = &["topology.sms_per_module=4", "l2.slices=4", "l2.bytes=128KB", "directory.entries=256"];

/// Policies that no preset uses.
const VARIANTS: [(&str, &[&str]); 4] = [
    ("hmg", &["design.l2_write=back"]),
    ("hmg", &["design.downgrade=true"]),
    ("software-hierarchical", &["design.l2_write=back", "design.invalidate=remote"]),
    ("nhcc", &["design.placement=interleaved-page"]),
];

/// Pinned results, by machine and design, then by program.
type Golden = BTreeMap<String, BTreeMap<String, String>>;

fn machine(name: &str, settings: &[&str]) -> Arc<MachineConfig> {
    let mut machine = tombolo_machine::machine(name).expect("a preset");
    tombolo_design::apply(settings, &mut machine, &mut []).expect("settings a machine has");
    Arc::new(machine.check().expect("a machine that fits"))
}

fn design(name: &str, settings: &[&str]) -> DesignConfig {
    let mut machine = tombolo_machine::machine("hmg-4x4").expect("a preset");
    let mut designs = [tombolo_design::design(name).expect("a preset")];
    tombolo_design::apply(settings, &mut machine, &mut designs).expect("settings a design has");
    let [design] = designs;
    design.check().expect("a design that fits")
}

/// Name and design for each row on a machine.
fn designs(only: &[&str]) -> Vec<(String, DesignConfig)> {
    if !only.is_empty() {
        return only.iter().map(|&name| (name.to_owned(), design(name, &[]))).collect();
    }
    let presets =
        tombolo_design::list_designs().into_iter().map(|listed| (listed.name.to_owned(), design(listed.name, &[])));
    let variants = VARIANTS.map(|(name, set)| (format!("{name} {}", set.join(" ")), design(name, set)));
    presets.chain(variants).collect()
}

/// A row: a machine, a design, a program.
struct Row {
    group: String,
    program: &'static str,
    spec: RunSpec,
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, settings, only) in MACHINES {
        let machine = machine(name, settings);
        let programs: Vec<(&str, Arc<dyn Program>)> = programs::programs(&machine);
        // Designs that move pages require GPUs with a single module.
        let fits = |(_, design): &(String, DesignConfig)| design.build(&machine).is_ok();
        for (design_name, design) in designs(only).into_iter().filter(fits) {
            // CTAs cannot wait for each other if remote writes become visible only at kernel boundaries.
            let waits =
                |program: &dyn Program| program.kernels().iter().any(|kernel| kernel.class == KernelClass::Cooperative);
            let runs = |(_, program): &&(&str, Arc<dyn Program>)| {
                design.placement.sharing().is_visible_at_once() || !waits(&**program)
            };
            rows.extend(programs.iter().filter(runs).map(|(label, program)| Row {
                group: format!("{name}: {design_name}"),
                program: label,
                spec: RunSpec {
                    machine: Arc::clone(&machine),
                    design: design.clone(),
                    program: Arc::clone(program),
                    pages: None,
                    threads: 1,
                },
            }));
        }
    }
    rows
}

/// Pinned text for a row's outcome.
fn result(row: &Row) -> String {
    match run(&row.spec) {
        Ok(record) => {
            assert!(record.transactions > 200, "{} {}: the program ran", row.group, row.program);
            let events = record.host.events;
            format!("{{ digest = \"{}\", cycles = {}, events = {events} }}", record.digest, record.cycles)
        }
        Err(error) => panic!("{} {}: {error}", row.group, row.program),
    }
}

/// Runs all rows, in parallel on the host's cores. `threads` gives the thread count for a row index; `None` leaves the
/// row out.
fn measured(threads: impl Fn(usize) -> Option<usize>) -> Golden {
    let on = |(index, row): (usize, Row)| {
        threads(index).map(|threads| Row { spec: RunSpec { threads, ..row.spec.clone() }, ..row })
    };
    let (rows, next) = (rows().into_iter().enumerate().filter_map(on).collect::<Vec<Row>>(), AtomicUsize::new(0));
    let work = || {
        let mut done = Vec::new();
        while let Some(row) = rows.get(next.fetch_add(1, Relaxed)) {
            done.push((row.group.clone(), row.program.to_owned(), result(row)));
        }
        done
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let done: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        handles.into_iter().flat_map(|handle| handle.join().expect("no run panics")).collect()
    });
    let mut golden = Golden::new();
    for (group, program, result) in done {
        golden.entry(group).or_default().insert(program, result);
    }
    golden
}

/// File format: a table for each machine and design, a line for each program.
fn text(golden: &Golden) -> String {
    let mut text = String::from("# Written by `./check --bless`. A commit that changes a row names it and says why.\n");
    for (group, rows) in golden {
        writeln!(text, "\n[\"{group}\"]").expect("a string takes all");
        rows.iter().for_each(|(program, row)| writeln!(text, "{program} = {row}").expect("a string takes all"));
    }
    text
}

#[test]
fn no_number_of_threads_changes_a_row() {
    rows_on_threads(|row| row.is_multiple_of(3).then_some([2, 3, 8][row / 3 % 3]));
}

#[test]
#[ignore = "deep: every row"]
fn no_number_of_threads_changes_any_row() {
    rows_on_threads(|row| Some([2, 3, 8][row % 3]));
}

/// Panics if a row differs at the given thread count; `None` leaves a row out.
fn rows_on_threads(threads: impl Fn(usize) -> Option<usize>) {
    if std::env::var_os("TOMBOLO_BLESS").is_some() {
        return;
    }
    let now = text(&measured(threads));
    let before = std::fs::read_to_string(PATH).expect("the file is in the repository").replace('\r', "");
    let mut changed = changes(&before, &now);
    // Rows left out appear only as removed lines.
    changed.retain(|row| row.starts_with('+'));
    assert!(changed.is_empty(), "{} rows differ on several threads:\n{}", changed.len(), changed.join("\n"));
}

#[test]
fn every_design_makes_of_every_program_what_it_made_before() {
    let now = text(&measured(|_| Some(1)));
    if std::env::var_os("TOMBOLO_BLESS").is_some() {
        return std::fs::write(PATH, now).expect("the checkout can be written");
    }
    let before = std::fs::read_to_string(PATH).expect("the file is in the repository").replace('\r', "");
    let changed = changes(&before, &now);
    assert!(
        changed.is_empty(),
        "{} rows changed (`./check --bless` takes them):\n{}",
        changed.len(),
        changed.join("\n")
    );
}

/// Rows present in exactly one text, each with its table name.
fn changes(before: &str, now: &str) -> Vec<String> {
    let rows = |text: &str| {
        let mut group = String::new();
        let mut rows = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            match line.strip_prefix('[') {
                Some(name) => group = name.trim_end_matches(']').to_owned(),
                None => rows.push(format!("{group} {line}")),
            }
        }
        rows
    };
    let (before, now) = (rows(before), rows(now));
    let gone = before.iter().filter(|row| !now.contains(row)).map(|row| format!("- {row}"));
    gone.chain(now.iter().filter(|row| !before.contains(row)).map(|row| format!("+ {row}"))).collect()
}

#[test]
fn a_cycle_more_is_a_change() {
    let text = |cycles: u64| format!("[\"a: b\"]\ntriad = {{ cycles = {cycles} }}\n");
    assert_eq!(changes(&text(1), &text(1)), [""; 0]);
    assert_eq!(changes(&text(1), &text(2)), ["- \"a: b\" triad = { cycles = 1 }", "+ \"a: b\" triad = { cycles = 2 }"]);
}
