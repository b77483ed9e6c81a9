//! Published pages: programs keep the memory model whoever subscribes to what, from whichever replica memory is read in the
//! end, and each broken rule is caught by a test that ships.
//!
//! A page that a store or an atomic at `.sys` scope accesses has one subscriber here: it would be collapsed.

mod explore_shapes;

use explore_shapes::{STARTS, Test, explore, spread};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use tombolo_check::explore::{Config, Layout, Report, Shape, Sharing, Verdict, gpus_of, layouts};
use tombolo_check::litmus::{Instruction, Location, Program};
use tombolo_check::verify::Case;
use tombolo_protocol::ModuleSet;
use tombolo_protocol::publication::{BrokenPublication, Publication, Subscribers};
use tombolo_protocol::vi::WritePolicy;
use tombolo_types::{ModuleId, Scope, Semantics};

/// GPUs: a publisher, a subscriber, and one that is either or neither.
const GPUS: u8 = 3;
/// Candidate executions of the axiomatic model for a test.
const CANDIDATES: u64 = 1 << 20;
/// A location on a page of its own, two on a line, two on a page.
const SHARINGS: [Sharing; 3] = [Sharing::Apart, Sharing::Line, Sharing::Page];

/// Small tests that ship, by name.
fn tests() -> &'static BTreeMap<String, Test> {
    static TESTS: OnceLock<BTreeMap<String, Test>> = OnceLock::new();
    TESTS.get_or_init(|| {
        let cases = [Case::shapes(), Case::kernels(), Case::core()].concat();
        let test = |case: Case| {
            let (program, allowed) = case.allowed(CANDIDATES).ok()?;
            let small = program.threads.len() <= 4 && gpus_of(&program) <= GPUS;
            let name = case.stem().to_owned();
            small.then(|| (name.clone(), Test { name, program, allowed: Some(allowed) }))
        };
        cases.into_iter().filter_map(test).collect()
    })
}

/// Whether a store or an atomic at `.sys` scope accesses a location.
fn is_collapsed(program: &Program, location: Location) -> bool {
    let mut code = program.threads.iter().flat_map(|thread| &thread.code);
    code.any(|instruction| match *instruction {
        Instruction::Store { location: at, order, .. } | Instruction::Atomic { location: at, order, .. } => {
            at == location && order.scope == Scope::Sys && order.semantics != Semantics::Weak
        }
        _ => false,
    })
}

/// Layouts with every set of two subscribers or more for each page that may be published, and every single one for the others.
fn published(program: &Program, sharing: Sharing) -> Vec<Layout> {
    let shape = Shape { gpus: GPUS, modules_per_gpu: 1, sharing, gpu_homes: false, shared_sms: true };
    let mut all = Vec::new();
    // Homes are those of the subscribers.
    let is_first = |layout: &Layout| layout.regions.iter().all(|homes| homes.system == ModuleId(0));
    for layout in layouts(program, shape).into_iter().filter(is_first) {
        let mut sets: Vec<Vec<Subscribers>> = vec![Vec::new()];
        for region in 0..layout.regions.len() {
            let mut locations = (0..program.locations.len()).map(|index| Location(index as u16));
            let is_single = locations.any(|at| layout.region_of(at) == region && is_collapsed(program, at));
            let options = (1..1 << GPUS).filter_map(|set| Subscribers::new(ModuleSet(set)));
            let options: Vec<Subscribers> = options.filter(|set| set.are_several() != is_single).collect();
            sets = sets.iter().flat_map(|set| options.iter().map(|one| [&set[..], &[*one]].concat())).collect();
        }
        all.extend(sets.into_iter().map(|subscribers| Layout { subscribers, ..layout.clone() }));
    }
    all
}

/// Whether any page has several subscribers.
fn publishes(layout: &Layout) -> bool {
    layout.subscribers.iter().any(|subscribers| subscribers.are_several())
}

/// Explores up to `count` layouts of each way of sharing: the first that is wrong, and all states.
fn explored(test: &Test, count: usize, config: &Config) -> (Option<(Layout, Report)>, usize) {
    let mut states = 0;
    for sharing in SHARINGS {
        let places = published(&test.program, sharing).into_iter().filter(publishes).collect();
        for (layout, start) in spread(places, count).iter().flat_map(|at| STARTS.map(|start| (at, start))) {
            let report = explore(test, layout, &Config { start, ..*config });
            states += report.states;
            if matches!(report.verdict, Verdict::Violated(_)) {
                return (Some((layout.clone(), report)), states);
            }
        }
    }
    (None, states)
}

fn config(broken: Option<BrokenPublication>, max_states: usize) -> Config {
    let publication = Some(Publication { broken });
    let mut config = Config { publication, max_states, walks: 3, ..Config::new("peer") };
    config.options.write = WritePolicy::Back;
    config
}

#[test]
fn published_pages_keep_the_model() {
    let mut all = 0;
    for test in tests().values() {
        let (wrong, states) = explored(test, 6, &config(None, 3_000));
        if let Some((layout, Report { trace, .. })) = wrong {
            panic!("{} at {layout}\n{}", test.name, trace.unwrap_or_default());
        }
        all += states;
    }
    // A change of either is a change of the rules, of the explorer or of the tests that ship.
    assert_eq!((tests().len(), all), (108, 4_081_802));
}

/// A test that shows each broken rule.
fn own(rule: BrokenPublication) -> &'static str {
    match rule {
        BrokenPublication::QueueNotEmptied
        | BrokenPublication::DeliveryNotAwaited
        | BrokenPublication::SubscriberForgotten => "MP.sys",
        BrokenPublication::ReplicaNotWritten
        | BrokenPublication::LoadIgnoresQueue
        | BrokenPublication::LoadPassesEntry => "CoWR.gpu",
        BrokenPublication::PartTaken => "MP.gpu",
        BrokenPublication::EntryKept
        | BrokenPublication::WholeLine
        | BrokenPublication::AddedBeforeOrder
        | BrokenPublication::AtomicPassesEntry
        | BrokenPublication::AtomicPassesPublication => "Atom-SB-ld",
        BrokenPublication::EntryPassesAtomic | BrokenPublication::AnsweredEarly => "CoRWR+atom.gpu",
    }
}

#[test]
fn every_broken_rule_is_caught_by_a_test_that_ships() {
    for rule in BrokenPublication::ALL {
        let test = &tests()[own(rule)];
        let (wrong, states) = explored(test, usize::MAX, &config(Some(rule), 20_000));
        let (_, Report { verdict, .. }) = wrong.unwrap_or_else(|| panic!("{} does not show {rule:?}", test.name));
        println!("{rule:?}: {}, {verdict:?}, {states} states", test.name);
    }
}
