//! Shipped programs on CPElide's machine, under every kind of label. With sound labels, no load returns an old value
//! and no table performs fewer operations than needed. Wrong labels are detected if a program reads another module's
//! writes.

use crate::common::design;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tombolo_machine::MachineConfig;
use tombolo_programs::find;
use tombolo_system::{RunRecord, RunSpec, run_checked};
use tombolo_types::stream::Program;
use tombolo_workload::bench::{self, Request, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Small program sizes, with two flags: true if equal parts without halos are detected as wrong, and true if the
/// assertion that no boundary matters is detected as wrong. For backprop and kmeans, host writes between kernels expose
/// the error. The number of parts equals the number of modules in a kernel's launch: on a single module the part is the
/// whole array.
const PROGRAMS: [(&str, &str, bool, bool); 16] = [
    ("triad", "elements=16384,iterations=3", false, false),
    ("hotspot", "columns=128,rows=128,pyramid=2,steps=6", true, true),
    ("pathfinder", "columns=4096,rows=17,pyramid=4", true, true),
    ("backprop", "inputs=4096,hidden=16", false, true),
    ("gaussian", "size=64,steps=8,tile=16", false, true),
    ("srad", "columns=128,rows=128,iterations=2", true, true),
    ("stencil2d", "columns=128,rows=64,iterations=3", true, true),
    ("bfs", "nodes=4000,degree=4", false, true),
    ("sssp", "nodes=2000,launches=6", false, true),
    ("lulesh", "side=6,steps=1", false, true),
    ("lulesh-hip", "side=10,steps=1", false, true),
    ("lulesh-unstructured", "side=6,steps=1", false, true),
    ("nw", "length=512,tile=64", true, true),
    ("lstm-layer2", "hidden=64,batch=4,steps=3", false, true),
    ("floydwarshall", "nodes=64", true, true),
    ("kmeans", "points=4096,features=4,program=rodinia,iterations=2", false, true),
];

fn recorded(name: &str, parameters: &str, machine: &MachineConfig) -> Arc<dyn Program> {
    let pair = |text: &str| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    let given: Vec<_> = parameters.split(',').filter_map(pair).collect();
    let workload = find(name).unwrap_or_else(|_| panic!("{name} ships"));
    let request = Request::new(workload, Scale::FULL, &given, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
    let warp_width = machine.sm.warp_width;
    let options = RecordOptions { line: machine.line, warp_width, ..RecordOptions::default() };
    Arc::new(record(workload, &request, &options, bench::Mode::Auto).unwrap_or_else(|error| panic!("{name}: {error}")))
}

struct Outcome {
    name: &'static str,
    how: String,
    record: RunRecord,
}

impl Outcome {
    fn violations(&self) -> u64 {
        self.record.check.as_ref().expect("it is checked").violations
    }
}

/// Runs each program under a design with settings, in parallel on all host threads.
fn outcomes(design_name: &str, settings: &[String]) -> Vec<Outcome> {
    let mut machine = tombolo_machine::machine("chiplet-4").expect("a preset");
    tombolo_design::apply(&["topology.sms_per_module=4"], &mut machine, &mut []).expect("a setting of machines");
    let machine = Arc::new(machine.check().expect("a machine that fits"));
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let design = design(design_name, &settings);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(&(name, parameters, ..)) = PROGRAMS.get(next.fetch_add(1, Ordering::Relaxed)) {
            let program = recorded(name, parameters, &machine);
            let (machine, design) = (Arc::clone(&machine), design.clone());
            let spec = RunSpec { machine, design, program, pages: None, threads: 1 };
            let record = run_checked(&spec, None).unwrap_or_else(|error| panic!("{name}: {error}"));
            done.push(Outcome { name, how: format!("{design_name} {settings:?}"), record });
        }
        done
    };
    std::thread::scope(|scope| {
        let workers = [(); 2].map(|()| scope.spawn(work));
        workers.into_iter().flat_map(|worker| worker.join().expect("no run panics")).collect()
    })
}

fn labelled(labels: &str) -> Vec<String> {
    vec![format!("elision.labels={labels}")]
}

fn assert_sound(design: &str, settings: &[String]) {
    for outcome in outcomes(design, settings) {
        let Outcome { name, how, record } = &outcome;
        let elision = record.elision.as_ref().expect("it elides");
        assert_eq!(outcome.violations(), 0, "{name}, {how}: {:?}", record.check.as_ref().expect("checked").places);
        let at_most = |needed: Option<u64>, done: u64| needed.is_none_or(|needed| needed <= done);
        assert!(at_most(elision.needed_flushes, elision.flushes), "{name}, {how}: {elision:?}");
        assert!(at_most(elision.needed_invalidations, elision.invalidations), "{name}, {how}: {elision:?}");
    }
}

#[test]
fn sound_labels_are_clean_under_cpelides_table() {
    for labels in ["modes", "ranges", "exact"] {
        assert_sound("cpelide", &labelled(labels));
    }
}

#[test]
fn sound_labels_are_clean_under_the_home_aware_table_and_by_ranges() {
    assert_sound("cpelide-home-aware", &[]);
    assert_sound("cpelide", &["elision.operations=range".to_owned()]);
    assert_sound("cpelide-home-aware", &[labelled("exact"), vec!["elision.operations=range".to_owned()]].concat());
}

#[test]
fn sound_labels_are_clean_where_l2s_hold_lines_of_others_or_a_directory_invalidates() {
    assert_sound("viper-cached", &["elision=cpelide".to_owned()]);
    assert_sound("nhcc", &["elision=cpelide".to_owned()]);
    assert_sound("software-flat", &["elision=cpelide".to_owned(), "l2_write=back".to_owned()]);
}

#[test]
fn wrong_labels_are_seen() {
    for labels in ["split", "asserted"] {
        let seen: Vec<(&str, u64)> =
            outcomes("cpelide", &labelled(labels)).iter().map(|outcome| (outcome.name, outcome.violations())).collect();
        println!("{labels}: {seen:?}");
        for &(name, violations) in &seen {
            let row = PROGRAMS.iter().find(|program| program.0 == name).expect("one of the table");
            let expected = if labels == "split" { row.2 } else { row.3 };
            assert_eq!(violations > 0, expected, "{name} under {labels}: {violations} violations");
        }
    }
}
