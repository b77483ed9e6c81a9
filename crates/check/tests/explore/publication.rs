//! Published pages: programs keep the memory model for any set of subscribers, and for any replica from which final
//! memory is read. A shipped test catches each broken rule.
//!
//! Subscribers are fixed in these tests: a page accessed by a `.sys` store or atomic has a single subscriber, because
//! it would be collapsed.

use crate::shapes::Test;
use crate::shapes::published::{config, explored, published, states_of_all, tests};
use tombolo_check::axiomatic::{self, Limits};
use tombolo_check::explore::{Config, ProgramLayout, Report, Sharing};
use tombolo_check::litmus::{Instruction, Location, Program};
use tombolo_check::random::one_writer;
use tombolo_protocol::publication::{BrokenPublication, Publication};
use tombolo_types::{Scope, Semantics};

/// True if a store or an atomic at `.sys` scope accesses a location.
fn is_collapsed(program: &Program, location: Location) -> bool {
    let mut code = program.threads.iter().flat_map(|thread| &thread.code);
    code.any(|instruction| match *instruction {
        Instruction::Store { location: at, order, .. } | Instruction::Atomic { location: at, order, .. } => {
            at == location && order.scope == Scope::Sys && order.semantics != Semantics::Weak
        }
        _ => false,
    })
}

/// Layouts with every set of two or more subscribers for each publishable page, every single subscriber for the
/// remaining pages, and at least one published page.
fn places(program: &Program, sharing: Sharing) -> Vec<ProgramLayout> {
    let layouts = published(program, sharing, |layout, region, subscribers| {
        let mut locations = (0..program.locations.len()).map(|index| Location(index as u16));
        let is_single = locations.any(|at| layout.region_of(at) == region && is_collapsed(program, at));
        subscribers.are_several() != is_single
    });
    let publishes = |layout: &ProgramLayout| layout.subscribers.iter().any(|subscribers| subscribers.are_several());
    layouts.into_iter().filter(publishes).collect()
}

/// Explores up to `count` layouts per sharing variant. Returns the first violation with its layout, and the number of
/// explored states.
fn explore(test: &Test, count: usize, config: &Config) -> (Option<(ProgramLayout, Report)>, usize) {
    explored(test, |sharing| places(&test.program, sharing), count, config)
}

/// States in all shipped tests, at up to `count` layouts per sharing variant and up to `max_states` each.
fn states(count: usize, max_states: usize) -> usize {
    let config = config(Publication::default(), max_states);
    states_of_all(|test| explore(test, count, &config))
}

// A changed number indicates a change in the rules, in the explorer or in the shipped tests.

#[test]
fn published_pages_keep_the_model() {
    assert_eq!((tests().len(), states(1, 1_000)), (110, 321_460));
}

#[test]
#[ignore = "deep: six layouts of each way of sharing"]
fn published_pages_keep_the_model_at_more_layouts() {
    assert_eq!(states(6, 3_000), 4_091_418);
}

/// Layouts per sharing variant, and states per layout, for a program with a single writer.
const OF_ONE_WRITER: (usize, usize) = (2, 1_000);
/// Number of single-writer programs in every test run.
const SOME: u64 = 100;

/// Finds the first violation among the first `programs` single-writer programs under `rules`, with its trace.
fn wrong_with_one_writer(programs: u64, rules: Publication) -> Option<String> {
    let (count, states) = OF_ONE_WRITER;
    let config = config(rules, states);
    (0..programs).find_map(|index| {
        let program = one_writer::program(1, index);
        let allowed = axiomatic::outcomes(&program, &Limits::default()).expect("a program of few accesses");
        let test = Test { name: program.name.clone(), program, allowed: Some(allowed) };
        let (wrong, _) = explore(&test, count, &config);
        wrong.map(|(layout, Report { trace, .. })| {
            format!("{} at {layout}\n{}\n{}", test.name, test.program, trace.unwrap_or_default())
        })
    })
}

#[test]
fn what_one_writer_stores_is_kept_while_its_neighbour_releases() {
    assert_eq!(wrong_with_one_writer(SOME, Publication::default()), None);
    let broken = Publication { broken: Some(BrokenPublication::StorePassesAtomic) };
    assert!(wrong_with_one_writer(SOME, broken).is_some(), "the programs show a store that passes an atomic");
}

#[test]
#[ignore = "deep: ten thousand programs in many of their interleavings"]
fn what_one_writer_stores_is_kept_in_ten_thousand_programs() {
    assert_eq!(wrong_with_one_writer(10_000, Publication::default()), None);
}

/// A test that exposes each broken rule.
fn own(rule: BrokenPublication) -> &'static str {
    match rule {
        BrokenPublication::QueueNotEmptied
        | BrokenPublication::DeliveryNotAwaited
        | BrokenPublication::SubscriberForgotten => "MP.sys",
        BrokenPublication::ReplicaNotWritten
        | BrokenPublication::LoadIgnoresQueue
        | BrokenPublication::LoadPassesEntry => "CoWR.gpu",
        BrokenPublication::PartTaken => "MP.gpu",
        BrokenPublication::WholeLine => "K-SB",
        BrokenPublication::AddedBeforeOrder => "MP+red.gpu",
        BrokenPublication::EntryKept
        | BrokenPublication::AtomicPassesEntry
        | BrokenPublication::AtomicPassesPublication => "Atom-SB-ld",
        BrokenPublication::StorePassesAtomic => "CoWW+release-beside.sys",
        BrokenPublication::AnsweredEarly => "CoRWR+atom.gpu",
    }
}

#[test]
fn every_broken_rule_is_caught_by_a_test_that_ships() {
    for rule in BrokenPublication::ALL {
        let test = &tests()[own(rule)];
        let (wrong, states) = explore(test, usize::MAX, &config(Publication { broken: Some(rule) }, 20_000));
        let (_, Report { verdict, .. }) = wrong.unwrap_or_else(|| panic!("{} does not show {rule:?}", test.name));
        println!("{rule:?}: {}, {verdict:?}, {states} states", test.name);
    }
}
