//! Published pages with changing subscribers, and with collapses: programs keep the memory model for any time at which
//! modules subscribe or leave, including `.sys` stores and atomics. A shipped test catches each broken rule.
//!
//! Pages start with any set of subscribers. A page with a single subscriber is unpublished, unless readers subscribe.

use crate::shapes::published::{config, explored, published, states_of_all, tests};
use crate::shapes::{STARTS, Test, explore, spread};
use std::collections::BTreeSet;
use tombolo_check::explore::{
    Config, Evictions, ExplorationVerdict, ProgramLayout, Reductions, Report, Sharing, Start, UnrequestedChanges,
    Violation,
};
use tombolo_check::verify::shapes;
use tombolo_protocol::BrokenRule;
use tombolo_protocol::paging::{BrokenPaging, Paging, Start as Sharers};
use tombolo_protocol::publication::Publication;

/// Cause of a page change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangeCause {
    /// Only a store or an atomic at `.sys` scope, a cause that the remaining variants also permit.
    Collapse,
    /// A load by a module without a copy.
    Read,
    /// A load by a module without a copy, and a subscriber that leaves at any time.
    ReadAndLeave,
    /// A subscriber leaves, at any time.
    Leave,
    /// A module subscribes, at any time.
    Subscribe,
    /// Both, in any order.
    LeaveAndSubscribe,
}

impl ChangeCause {
    fn wishes(self) -> UnrequestedChanges {
        let (leaves, subscribes) = match self {
            ChangeCause::Collapse | ChangeCause::Read => (0, 0),
            ChangeCause::Leave | ChangeCause::ReadAndLeave => (1, 0),
            ChangeCause::Subscribe => (0, 1),
            ChangeCause::LeaveAndSubscribe => (1, 1),
        };
        UnrequestedChanges { moves: 0, leaves, subscribes }
    }

    /// Configuration for pages with this cause of change, step by step.
    fn config(self, broken: Option<BrokenPaging>, max_states: usize) -> Config {
        let subscribes = matches!(self, ChangeCause::Read | ChangeCause::ReadAndLeave);
        let start = if subscribes { Sharers::PublishedToHome } else { Sharers::OneCopy };
        let paging = Paging { everybody: true, subscribes, start, broken, ..Paging::default() };
        let config = config(Publication::default(), max_states);
        Config { paging: Some(paging), unrequested: self.wishes(), reductions: Reductions::NONE, ..config }
    }
}

/// Every set of subscribers for every page.
fn places(test: &Test, sharing: Sharing) -> Vec<ProgramLayout> {
    published(&test.program, sharing, |_, _, _| true)
}

/// States in all tests at the given number of layouts per sharing variant.
fn states(by: ChangeCause, count: usize, max_states: usize) -> usize {
    let config = by.config(None, max_states);
    states_of_all(|test| explored(test, |sharing| places(test, sharing), count, &config))
}

// A changed number indicates a change in the rules, in the explorer or in the shipped tests.

#[test]
fn a_page_that_collapses_keeps_the_model() {
    assert_eq!(states(ChangeCause::Collapse, 1, 600), 286_309);
}

#[test]
fn a_page_to_which_readers_subscribe_keeps_the_model() {
    assert_eq!(states(ChangeCause::Read, 1, 600), 286_309);
}

/// Causes for subscribers to come and go.
const COME_AND_GO: [ChangeCause; 4] =
    [ChangeCause::Leave, ChangeCause::Subscribe, ChangeCause::LeaveAndSubscribe, ChangeCause::ReadAndLeave];

#[test]
fn a_page_whose_subscribers_come_and_go_keeps_the_model() {
    assert_eq!(COME_AND_GO.map(|by| states(by, 1, 300)), [148_441, 174_054, 165_337, 152_686]);
}

#[test]
#[ignore = "deep: more layouts and states"]
fn a_page_whose_subscribers_change_keeps_the_model_at_more_layouts() {
    let changes = [states(ChangeCause::Collapse, 6, 3_000), states(ChangeCause::Read, 4, 2_000)];
    assert_eq!(changes, [5_169_934, 3_070_104]);
    assert_eq!(COME_AND_GO.map(|by| states(by, 2, 2_000)), [1_409_769, 1_324_734, 1_454_714, 1_667_494]);
}

/// Explores a test step by step and with atomic changes: no violation occurs, and both reach equal outcomes.
fn assert_same(name: &str, by: ChangeCause) -> [usize; 2] {
    let (test, mut states) = (&tests()[name], [0; 2]);
    // A single location, or two locations on a page.
    let sharing = if test.program.locations.len() == 1 { Sharing::Apart } else { Sharing::Page };
    let layouts = spread(places(test, sharing), 16);
    for (layout, start) in layouts.iter().flat_map(|at| STARTS.map(|start| (at, start))) {
        let mut outcomes = [BTreeSet::new(), BTreeSet::new()];
        for (index, pages) in [false, true].into_iter().enumerate() {
            let reductions = Reductions { pages, ..Reductions::NONE };
            let report = explore(test, layout, &Config { start, reductions, ..by.config(None, 200_000) });
            let trace = report.trace.unwrap_or_default();
            assert_eq!(report.verdict, ExplorationVerdict::Clean, "{name} at {layout} by {by:?}\n{trace}");
            states[index] += report.states;
            outcomes[index] = report.outcomes;
        }
        assert_eq!(outcomes[0], outcomes[1], "{name} at {layout} by {by:?}");
    }
    states
}

#[test]
fn a_page_that_changes_at_once_reaches_what_its_steps_reach() {
    let small = [
        ("Atomics.sys", ChangeCause::Collapse),
        ("CoWR.sys", ChangeCause::Collapse),
        ("MP.sys", ChangeCause::Collapse),
        ("CoWR.gpu", ChangeCause::Read),
        ("CoWW_", ChangeCause::LeaveAndSubscribe),
        ("K-MP", ChangeCause::Leave),
        ("K-MP", ChangeCause::Subscribe),
        ("Red-minus-location_", ChangeCause::Leave),
    ];
    for (name, by) in small {
        println!("{name} by {by:?}: {:?} states", assert_same(name, by));
    }
}

/// Broken rules, each with an exposing cause of a page change and an exposing test.
const SEEN: [(BrokenPaging, ChangeCause, &str); 29] = [
    (BrokenPaging::SystemStorePublished, ChangeCause::Collapse, "CoWR.sys"),
    (BrokenPaging::CollapsedToWriter, ChangeCause::Collapse, "Atomics.sys"),
    (BrokenPaging::HomeToldWithOthers, ChangeCause::Collapse, "Atomics.sys"),
    (BrokenPaging::ServedAsFaulted, ChangeCause::Collapse, "Atomics.sys"),
    (BrokenPaging::QueueKept, ChangeCause::Collapse, "CoRW-R"),
    (BrokenPaging::PublicationsNotAwaited, ChangeCause::Collapse, "WRC+atom.sys"),
    (BrokenPaging::StoresNotAwaited, ChangeCause::Collapse, "CoRW-R"),
    (BrokenPaging::TranslationKept, ChangeCause::Collapse, "CoRW-R"),
    (BrokenPaging::PublishersKept, ChangeCause::Collapse, "CoRW-R"),
    (BrokenPaging::QueueKept, ChangeCause::Read, "CoWR.gpu"),
    (BrokenPaging::StoresNotAwaited, ChangeCause::Read, "CoWR.gpu"),
    (BrokenPaging::CopiedEarly, ChangeCause::Read, "CoWR.gpu"),
    (BrokenPaging::MappedEarly, ChangeCause::Read, "CoWR.gpu"),
    (BrokenPaging::QueueKept, ChangeCause::Leave, "CoWW_"),
    (BrokenPaging::PublicationsNotAwaited, ChangeCause::Leave, "CoWW_"),
    (BrokenPaging::StoresNotAwaited, ChangeCause::Leave, "CoWW_"),
    (BrokenPaging::PublishersKept, ChangeCause::Leave, "CoWW_"),
    (BrokenPaging::HomeToldWithOthers, ChangeCause::Leave, "Red-minus-location_"),
    (BrokenPaging::QueueKept, ChangeCause::Subscribe, "CoWW_"),
    (BrokenPaging::PublicationsNotAwaited, ChangeCause::Subscribe, "CoWW_"),
    (BrokenPaging::StoresNotAwaited, ChangeCause::Subscribe, "CoWW_"),
    (BrokenPaging::LoadsNotAwaited, ChangeCause::Subscribe, "CoWR.gpu"),
    (BrokenPaging::NotWrittenBack, ChangeCause::Subscribe, "CoWW_"),
    (BrokenPaging::ArrivalUnknown, ChangeCause::Subscribe, "CoWW_"),
    (BrokenPaging::CopiedEarly, ChangeCause::Subscribe, "CoWW_"),
    (BrokenPaging::MappedEarly, ChangeCause::Subscribe, "CoWW_"),
    (BrokenPaging::PublicationsNotAwaited, ChangeCause::LeaveAndSubscribe, "CoWW_"),
    (BrokenPaging::LinesKept, ChangeCause::LeaveAndSubscribe, "CoWW_"),
    (BrokenPaging::MapNotAwaited, ChangeCause::LeaveAndSubscribe, "CoWW_"),
];

#[test]
fn broken_rules_of_subscribers_that_change_are_caught_by_tests_that_ship() {
    let seen = |rule: &BrokenPaging| SEEN.iter().any(|(broken, ..)| broken == rule);
    assert!(BrokenPaging::ALL.iter().filter(|rule| rule.is_of_published()).all(seen));
    for (broken, by, name) in SEEN {
        let config = Config { walks: 0, ..by.config(Some(broken), 20_000) };
        let test = &tests()[name];
        let (wrong, states) = explored(test, |sharing| places(test, sharing), usize::MAX, &config);
        let (_, Report { verdict, .. }) = wrong.unwrap_or_else(|| panic!("{name} does not show {broken:?} by {by:?}"));
        println!("{broken:?} by {by:?}: {name}, {verdict:?}, {states} states");
    }
}

/// A thread polling a published page at `.sys` scope reads below the L1: its own copy, and the remaining copy after a
/// collapse.
#[test]
fn a_load_of_the_system_finds_a_published_page_behind_the_l1() {
    let polling: Test = shapes::polling("sys").into();
    let ends = |rule: Option<BrokenRule>| {
        let config =
            Config { start: Start::Warm, evictions: Evictions::Never, ..ChangeCause::Collapse.config(None, 100_000) };
        let config = rule.map_or(config, |rule| config.with_broken_rule(rule));
        let several = published(&polling.program, Sharing::Apart, |_, _, subscribers| subscribers.are_several());
        several.iter().map(|layout| explore(&polling, layout, &config).verdict).collect::<Vec<_>>()
    };
    assert!(ends(None).iter().all(|verdict| *verdict == ExplorationVerdict::Clean));
    let hit = ends(Some(BrokenRule::LoadIgnoresScope));
    assert!(hit.contains(&ExplorationVerdict::Violated(Violation::Endless)), "{hit:?}");
}
