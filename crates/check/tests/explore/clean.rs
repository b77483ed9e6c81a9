//! Every protocol that promises the PTX memory model keeps the promise on litmus shapes, for all thread and home
//! placements, from cold and from warm caches; `ideal` does not.

use crate::shapes::{
    STARTS, Test, atomics, cowr, explore, flush_under_miss, isa2, layouts_of, layouts_on, mp, mp_by_reduction,
    on_one_gpu, sb, six, spread, wrc_mixed,
};
use std::collections::BTreeSet;
use std::time::Instant;
use tombolo_check::explore::{Config, Evictions, ExplorationVerdict, ProgramLayout, Reductions, Sharing};
use tombolo_protocol::vi::{BulkInvalidation, HomeL2, Remote, StoreMiss, Tracks, WritePolicy};
use tombolo_types::Sectors;

const PROMISING: [&str; 8] =
    ["no-remote-caching", "memory-side", "peer", "software-flat", "software-hierarchical", "nhcc", "hmg", "viper"];
const WITH_DIRECTORY: [&str; 2] = ["nhcc", "hmg"];

/// A protocol and a test over at most `count` layouts, from both starts: every exploration is clean, and together they
/// reach all outcomes allowed by the model.
fn clean(test: &Test, sharing: Sharing, count: usize, config: Config) {
    let layouts = layouts_of(test, sharing, is_hierarchical(config.protocol));
    clean_over(test, sharing, &spread(layouts, count), config);
}

fn is_hierarchical(protocol: &str) -> bool {
    matches!(protocol, "hmg" | "software-hierarchical" | "peer")
}

/// A protocol and a test over the given layouts.
fn clean_over(test: &Test, sharing: Sharing, layouts: &[ProgramLayout], config: Config) {
    let (begun, mut states, mut largest) = (Instant::now(), 0, 0);
    let mut outcomes = BTreeSet::new();
    for layout in layouts {
        for start in STARTS {
            let report = explore(test, layout, &Config { start, ..config });
            let trace = report.trace.unwrap_or_default();
            assert_eq!(report.verdict, ExplorationVerdict::Clean, "{} under {config:?} {start:?}\n{trace}", test.name);
            states += report.states;
            largest = largest.max(report.states);
            outcomes.extend(report.outcomes);
        }
    }
    let (name, protocol, options) = (&test.name, config.protocol, config.options);
    println!(
        "{name:14} {protocol:22} {:?}{} {sharing:?}: {} layouts, {states} states, largest {largest}, {:.1?}",
        options.write,
        if options.downgrade { " with downgrades" } else { "" },
        layouts.len(),
        begun.elapsed()
    );
    let allowed = test.allowed.as_ref().expect("the model is queried").states();
    assert_eq!(outcomes.len(), allowed.len(), "{name} under {protocol} reaches all that is allowed");
}

/// Number of layouts per shape in the quick run: all if they are small, else evenly spread.
fn count(test: &Test) -> usize {
    match (test.program.threads.len(), test.program.locations.len()) {
        (4, _) | (_, 3) => 4,
        (3, _) => 16,
        _ => usize::MAX,
    }
}

fn all_shapes(protocol: &'static str) {
    let by_scope = |scope| six(scope).into_iter().chain([mp_by_reduction(scope)]);
    for test in ["gpu", "sys"].into_iter().flat_map(by_scope).chain([isa2(), wrc_mixed()]) {
        clean(&test, Sharing::Apart, count(&test), Config::new(protocol));
    }
}

#[test]
fn no_remote_caching_keeps_the_model() {
    all_shapes("no-remote-caching");
}

#[test]
fn memory_side_keeps_the_model() {
    all_shapes("memory-side");
}

#[test]
fn peer_keeps_the_model() {
    all_shapes("peer");
}

#[test]
fn software_flat_keeps_the_model() {
    all_shapes("software-flat");
}

#[test]
fn software_hierarchical_keeps_the_model() {
    all_shapes("software-hierarchical");
}

#[test]
fn nhcc_keeps_the_model() {
    all_shapes("nhcc");
}

#[test]
fn hmg_keeps_the_model() {
    all_shapes("hmg");
}

#[test]
fn viper_keeps_the_model() {
    all_shapes("viper");
}

#[test]
fn viper_keeps_the_model_where_l2s_hold_lines_of_others() {
    for write in [WritePolicy::Through, WritePolicy::Back] {
        let mut config = Config::new("viper");
        (config.options.write, config.options.remote) = (write, Remote::Cached);
        let small = |test: &Test| test.program.threads.len() < 4;
        for test in ["gpu", "sys"].into_iter().flat_map(six).filter(small).chain([isa2()]) {
            clean(&test, Sharing::Apart, count(&test).min(12), config);
        }
        for test in [mp("gpu"), sb("gpu"), flush_under_miss("gpu")] {
            for sharing in [Sharing::Line, Sharing::Sectors] {
                clean(&test, sharing, 4, config);
            }
        }
    }
}

/// Small tests over few layouts, and over lines shared by locations.
fn small_shapes(config: Config) {
    let small = |test: &Test| test.program.threads.len() < 4;
    for test in ["gpu", "sys"].into_iter().flat_map(six).filter(small).chain([isa2()]) {
        clean(&test, Sharing::Apart, count(&test).min(12), config);
    }
    for test in [mp("gpu"), sb("gpu"), atomics("sys"), flush_under_miss("gpu")] {
        for sharing in [Sharing::Line, Sharing::Sectors] {
            clean(&test, sharing, 4, config);
        }
    }
}

#[test]
fn viper_keeps_the_model_where_the_homes_l2_serves_others() {
    for write in [WritePolicy::Through, WritePolicy::Back] {
        let mut config = Config::new("viper");
        (config.options.write, config.options.remote) = (write, Remote::Home);
        small_shapes(config);
    }
}

#[test]
fn a_fetch_of_more_than_a_sector_keeps_the_model() {
    for protocol in PROMISING {
        for write in [WritePolicy::Through, WritePolicy::Back] {
            let mut config = Config::new(protocol);
            (config.options.write, config.options.fetches) = (write, Sectors::default());
            for test in [mp("gpu"), sb("gpu"), atomics("sys"), flush_under_miss("gpu")] {
                clean(&test, Sharing::Sectors, 4, config);
            }
        }
    }
}

#[test]
fn flat_software_coherence_keeps_the_model_where_home_l2s_are_snooped() {
    for store_miss in [StoreMiss::Mask, StoreMiss::Fetch] {
        for home_l2 in [HomeL2::Serves, HomeL2::Snooped] {
            let mut config = Config::new("software-flat");
            config.options.write = WritePolicy::Back;
            (config.options.home_l2, config.options.store_miss) = (home_l2, store_miss);
            small_shapes(config);
        }
    }
}

#[test]
fn on_one_gpu_nobody_passes_on() {
    for protocol in ["software-hierarchical", "hmg"] {
        for test in six("sys").into_iter().filter(|test| test.program.threads.len() < 4).map(on_one_gpu) {
            let layouts = layouts_on(1, &test, Sharing::Apart, true);
            clean_over(&test, Sharing::Apart, &layouts, Config::new(protocol));
        }
    }
}

#[test]
fn write_back_keeps_the_model() {
    for protocol in PROMISING {
        let mut config = Config::new(protocol);
        config.options.write = WritePolicy::Back;
        for test in ["gpu", "sys"].into_iter().flat_map(six).filter(|test| test.program.threads.len() < 4) {
            let count = if test.program.threads.len() == 3 { 3 } else { 12 };
            clean(&test, Sharing::Apart, count, config);
        }
    }
}

/// A GPU home keeps dirty bytes after a release to this home by another thread: a `.sys` release must write them back.
#[test]
fn what_gpu_homes_keep_dirty_is_released_too() {
    for protocol in ["software-hierarchical", "hmg"] {
        let mut config = Config::new(protocol);
        config.options.write = WritePolicy::Back;
        for test in [isa2(), wrc_mixed()] {
            clean(&test, Sharing::Apart, 4, config);
        }
    }
}

/// A directory entry replaced just before an invalidation of its region leaves none to forward, and the replacement's
/// own invalidations may still be in flight.
#[test]
fn an_entry_replaced_before_an_invalidation_hides_no_copy() {
    let test = mp("sys");
    let config = Config { evictions: Evictions::Spontaneous, ..Config::new("hmg") };
    clean_over(&test, Sharing::Apart, &spread(layouts_of(&test, Sharing::Apart, true), 24), config);
}

#[test]
fn downgrades_keep_the_model() {
    for protocol in WITH_DIRECTORY {
        let mut config = Config::new(protocol);
        config.options.downgrade = true;
        for test in ["gpu", "sys"].into_iter().flat_map(|scope| [cowr(scope), mp(scope)]) {
            for sharing in [Sharing::Apart, Sharing::Region] {
                clean(&test, sharing, 2, config);
            }
        }
        config.options.write = WritePolicy::Back;
        for test in [cowr("gpu"), cowr("sys"), mp("gpu")] {
            clean(&test, Sharing::Region, 2, config);
        }
    }
}

/// Home and explorer evict at any time, and reductions are off, to check that entries cover every present line.
#[test]
fn directories_that_track_all_have_an_entry_for_every_line_of_their_l2() {
    let mut explored = 0;
    for protocol in WITH_DIRECTORY {
        for evictions in [Evictions::AtAccess, Evictions::Spontaneous] {
            let mut config =
                Config { evictions, reductions: Reductions::NONE, max_states: 6_000, ..Config::new(protocol) };
            config.options.tracks = Tracks::All;
            for test in ["gpu", "sys"].into_iter().flat_map(|scope| [cowr(scope), mp(scope), sb(scope)]) {
                for sharing in [Sharing::Apart, Sharing::Region] {
                    for layout in spread(layouts_of(&test, sharing, protocol == "hmg"), 4) {
                        for start in STARTS {
                            let report = explore(&test, &layout, &Config { start, ..config });
                            let is_fine =
                                matches!(report.verdict, ExplorationVerdict::Clean | ExplorationVerdict::Bounded);
                            assert!(is_fine, "{} under {config:?}\n{}", test.name, report.trace.unwrap_or_default());
                            explored += report.states;
                        }
                    }
                }
            }
        }
    }
    println!("{explored} states");
}

#[test]
fn directories_that_track_all_keep_the_model() {
    for protocol in WITH_DIRECTORY {
        for write in [WritePolicy::Through, WritePolicy::Back] {
            let mut config = Config::new(protocol);
            (config.options.write, config.options.tracks) = (write, Tracks::All);
            for test in ["gpu", "sys"].into_iter().flat_map(|scope| [cowr(scope), mp(scope), sb(scope)]) {
                for sharing in [Sharing::Apart, Sharing::Region, Sharing::Line] {
                    clean(&test, sharing, 2, config);
                }
            }
            config.options.downgrade = true;
            for test in [cowr("sys"), mp("gpu")] {
                clean(&test, Sharing::Region, 2, config);
            }
        }
    }
}

#[test]
fn lines_and_regions_may_be_shared() {
    for protocol in PROMISING {
        for write in [WritePolicy::Through, WritePolicy::Back] {
            let mut config = Config::new(protocol);
            config.options.write = write;
            for test in ["gpu", "sys"].into_iter().flat_map(|scope| [mp(scope), sb(scope)]) {
                for sharing in [Sharing::Region, Sharing::Line, Sharing::Sectors] {
                    clean(&test, sharing, 3, config);
                }
            }
            for sharing in [Sharing::Line, Sharing::Sectors] {
                clean(&flush_under_miss("gpu"), sharing, 12, config);
            }
        }
    }
}

#[test]
fn sparing_home_lines_keeps_the_model() {
    for protocol in ["no-remote-caching", "software-flat", "software-hierarchical"] {
        let mut config = Config::new(protocol);
        config.options.bulk = BulkInvalidation::Remote;
        for test in ["gpu", "sys"].into_iter().flat_map(six).filter(|test| test.program.threads.len() < 4) {
            clean(&test, Sharing::Apart, 24, config);
        }
        config.options.write = WritePolicy::Back;
        for test in ["gpu", "sys"].into_iter().flat_map(|scope| [mp(scope), sb(scope), cowr(scope)]) {
            clean(&test, Sharing::Apart, 6, config);
        }
    }
}

#[test]
fn ideal_is_seen_to_violate_the_model() {
    let config = Config { start: STARTS[1], ..Config::new("ideal") };
    violates(config);
}

#[test]
fn an_l2_that_ignores_bulk_invalidations_is_seen_to_violate_the_model() {
    for protocol in ["software-flat", "software-hierarchical"] {
        let mut config = Config { start: STARTS[1], ..Config::new(protocol) };
        config.options.bulk = BulkInvalidation::None;
        config.options.write = WritePolicy::Back;
        violates(config);
    }
}

fn violates(config: Config) {
    for scope in ["gpu", "sys"] {
        let test = mp(scope);
        let reports =
            layouts_of(&test, Sharing::Apart, true).into_iter().map(|layout| explore(&test, &layout, &config));
        let violated =
            reports.filter(|report| matches!(report.verdict, ExplorationVerdict::Violated(_))).collect::<Vec<_>>();
        assert!(!violated.is_empty(), "{}", test.name);
        println!("{}", violated[0].trace.as_deref().unwrap_or_default());
    }
}
