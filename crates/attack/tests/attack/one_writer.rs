//! Published pages under programs with a single writer: no store is lost, even with concurrent releases.

use tombolo_attack::{Attack, Target, attack, catch};
use tombolo_check::verify::Case;
use tombolo_design::{DesignConfig, design, list_designs};
use tombolo_protocol::publication::BrokenPublication;

/// Runs per design: enough to detect a store that overtakes an atomic, if this rule is broken.
const RUNS: u64 = 400;
/// Runs in the deep series.
const DEEP: u64 = 10_000;

/// Every shipped design that publishes pages, and a design whose publications allocate in the L2.
fn publishing() -> Vec<Target> {
    let shipped = list_designs()
        .into_iter()
        .map(|listed| design(listed.name).and_then(|tree| tree.check()).expect("a design that ships"));
    let publishes = |design: &DesignConfig| design.placement.sharing().publishes.is_some();
    let mut targets: Vec<Target> = shipped.filter(publishes).map(|design| Target::new(&design)).collect();
    let mut allocating = design("gps-on-read").expect("a design that ships");
    allocating.set("placement.allocates", "true").expect("a key of designs");
    targets.push(Target::new(&allocating.check().expect("a design that makes sense")));
    targets
}

/// Runs each program once, on a separate machine. Returns the result of `work` for the attack.
fn each<T>(targets: &[Target], programs: u64, work: impl Fn(&Attack<'_>) -> T) -> T {
    let cases: Vec<Case> = (0..programs).map(|index| Case::one_writer(1, index, 1)).collect();
    work(&Attack { targets, cases: &cases, random: false, seed: 0, runs: programs, threads: 2 })
}

fn assert_kept(programs: u64) {
    for report in each(&publishing(), programs, |run| attack(run, &())) {
        let first = report.first.as_ref().map(|first| format!("{}\n{}\n{}", first.small, first.program, first.setup));
        assert!(report.verdict.holds(), "{}: {:?} {}", report.design, report.verdict, first.unwrap_or_default());
        assert_eq!((report.runs, report.not_run.len()), (programs, 0), "{}: {:?}", report.design, report.not_run);
    }
}

#[test]
fn what_one_writer_stores_is_kept_while_its_neighbour_releases() {
    assert_kept(RUNS);
}

#[test]
#[ignore = "deep: the race is narrow, and a few hundred programs do not meet it"]
fn the_programs_show_a_store_that_passes_an_atomic() {
    let on_read = design("gps-on-read").and_then(|tree| tree.check()).expect("a design that ships");
    let seen = each(&[Target::new(&on_read)], DEEP, |run| catch(run, BrokenPublication::StorePassesAtomic));
    assert!(seen.is_some(), "within {DEEP} runs");
}

#[test]
#[ignore = "deep: ten thousand programs under each design that publishes"]
fn what_one_writer_stores_is_kept_in_ten_thousand_programs() {
    assert_kept(DEEP);
}
