//! The reductions lose no outcome and hide no broken rule, and any change in the state count is detected.

use crate::shapes::{
    STARTS, Test, across_kernels, atomics, cowr, cowr_after_load, explore, layouts_of, layouts_of_three, layouts_on,
    mp, mp_second_reader, sb, spread, wrc,
};
use tombolo_check::explore::{
    Config, Evictions, ExplorationVerdict, ProgramLayout, Reductions, Sharing, Violation, gpus_of,
};
use tombolo_check::litmus::{self, Program};
use tombolo_check::random;
use tombolo_protocol::BrokenRule;
use tombolo_protocol::vi::{HomeL2, Remote, StoreMiss, Tracks, WritePolicy};
use tombolo_types::ModuleId;

const PROTOCOLS: [&str; 11] = [
    "no-remote-caching",
    "memory-side",
    "peer",
    "software-flat",
    "software-flat+snooped",
    "software-hierarchical",
    "nhcc",
    "hmg",
    "viper",
    "viper+cached",
    "viper+home-l2",
];

const WRITES: [WritePolicy; 2] = [WritePolicy::Through, WritePolicy::Back];

/// A protocol name, with a keyword for a place of remote accesses, or for home L2s that are snooped and fetch the rest of
/// a sector for a store.
fn config_of(protocol: &'static str) -> Config {
    let (name, word) = protocol.split_once('+').unwrap_or((protocol, ""));
    let mut config = Config::new(name);
    match word {
        "cached" => config.options.remote = Remote::Cached,
        "home-l2" => config.options.remote = Remote::Home,
        "snooped" => {
            (config.options.home_l2, config.options.store_miss) = (HomeL2::Snooped, StoreMiss::Fetch);
        }
        other => assert_eq!(other, ""),
    }
    config
}

/// Random programs searched for small programs with several locations.
const FROM_SHARED: u64 = 250;

/// Every protocol over a few layouts for a few small tests, from both starts, with both write policies. Calls `case`
/// with each combination.
fn each_small_case(mut case: impl FnMut(&Test, &ProgramLayout, Config)) {
    for protocol in PROTOCOLS {
        for scope in ["gpu", "sys"] {
            for test in [cowr(scope), cowr_after_load(scope), atomics(scope), mp(scope), sb(scope)] {
                let two = spread(layouts_of(&test, Sharing::Apart, true), 3);
                let three = spread(layouts_of_three(&test, Sharing::Apart), 3);
                for layout in two.into_iter().chain(three) {
                    for start in STARTS {
                        for write in [WritePolicy::Through, WritePolicy::Back] {
                            let mut config = Config { start, max_states: 4_000, ..config_of(protocol) };
                            config.options.write = write;
                            case(&test, &layout, config);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn reductions_lose_no_outcome() {
    let (mut compared, mut with, mut without) = (0, 0, 0);
    each_small_case(|test, layout, config| {
        let full = explore(test, layout, &Config { reductions: Reductions::NONE, ..config });
        if full.verdict != ExplorationVerdict::Clean {
            return;
        }
        for reductions in [
            Reductions::ALL,
            Reductions { forget: true, ..Reductions::NONE },
            Reductions { postpone: true, ..Reductions::NONE },
            Reductions { eager: true, ..Reductions::NONE },
            Reductions { partial_order: true, ..Reductions::NONE },
        ] {
            let reduced = explore(test, layout, &Config { reductions, max_states: 20_000, ..config });
            assert_eq!(reduced.outcomes, full.outcomes, "{reductions:?}: {} at {layout} under {config:?}", test.name);
            with += reduced.states;
        }
        compared += 1;
        without += full.states;
    });
    println!("{compared} cases: {without} states without reductions, {} with each", with / 4);
    assert!(compared > 150, "{compared} cases are small enough");
}

/// A replaced entry drops lines at its home: the replacement may still be postponed to the next store. The test
/// compares outcomes with and without reductions.
#[test]
fn reductions_lose_no_outcome_where_directories_track_all() {
    let (mut compared, mut with, mut without) = (0, 0, 0);
    let tests = ["gpu", "sys"].map(|scope| [cowr(scope), cowr_after_load(scope), atomics(scope), mp(scope), sb(scope)]);
    for (test, protocol) in tests.iter().flatten().flat_map(|test| [(test, "nhcc"), (test, "hmg")]) {
        for (sharing, write) in Sharing::ALL.into_iter().flat_map(|one| WRITES.map(|write| (one, write))) {
            for (layout, start) in
                spread(layouts_of(test, sharing, true), 3).into_iter().zip(STARTS.into_iter().cycle())
            {
                let mut config = Config { start, max_states: 4_000, ..Config::new(protocol) };
                (config.options.write, config.options.tracks) = (write, Tracks::All);
                let reductions = Reductions::NONE;
                let full = explore(test, &layout, &Config { reductions, evictions: Evictions::Spontaneous, ..config });
                if full.verdict != ExplorationVerdict::Clean {
                    continue;
                }
                let reduced = explore(test, &layout, &Config { max_states: 20_000, ..config });
                assert_eq!(reduced.outcomes, full.outcomes, "{} at {layout} under {config:?}", test.name);
                (compared, with, without) = (compared + 1, with + reduced.states, without + full.states);
            }
        }
    }
    println!("{compared} cases: {without} states without reductions, {with} with all");
    assert!(compared > 120, "{compared} cases are small enough");
}

#[test]
fn reductions_lose_no_outcome_of_random_programs() {
    let mut compared = 0;
    let small = |program: &Program| program.memory_operations() <= 5 && gpus_of(program) <= 2;
    for program in (0..300).map(|index| random::program(5, index)).filter(small) {
        let test = Test { name: program.name.clone(), program, allowed: None };
        for (index, protocol) in PROTOCOLS.into_iter().enumerate() {
            let sharing = Sharing::ALL[(compared + index) % Sharing::ALL.len()];
            for layout in spread(layouts_of(&test, sharing, true), 2) {
                for start in STARTS {
                    let config = Config { start, max_states: 2_500, ..config_of(protocol) };
                    let full = explore(&test, &layout, &Config { reductions: Reductions::NONE, ..config });
                    if full.verdict != ExplorationVerdict::Clean {
                        continue;
                    }
                    let reduced = explore(&test, &layout, &config);
                    assert_eq!(reduced.outcomes, full.outcomes, "{}\n{layout} under {config:?}", test.program);
                    compared += 1;
                }
            }
        }
    }
    println!("{compared} explorations of random programs");
    assert!(compared > 250, "{compared} explorations are small enough");
}

/// Three threads; the third learns from the second about the first thread's actions. If an L2's steps wrongly come
/// before another L2's, this test exposes it.
#[test]
fn reductions_lose_no_outcome_of_three_threads() {
    let (mut compared, mut with, mut without) = (0, 0, 0);
    for test in ["gpu", "sys"].into_iter().flat_map(|scope| [wrc(scope), mp_second_reader(scope)]) {
        for protocol in PROTOCOLS {
            let two = spread(layouts_of(&test, Sharing::Apart, true), 8);
            let three = spread(layouts_of_three(&test, Sharing::Apart), 4);
            for layout in two.into_iter().chain(three) {
                let config = Config { max_states: 1_500, ..config_of(protocol) };
                let reduced = explore(&test, &layout, &config);
                let full = Config { reductions: Reductions::NONE, max_states: 12_000, ..config };
                let full = explore(&test, &layout, &full);
                if reduced.verdict != ExplorationVerdict::Clean || full.verdict != ExplorationVerdict::Clean {
                    continue;
                }
                assert_eq!(reduced.outcomes, full.outcomes, "{} at {layout} under {config:?}", test.name);
                (compared, with, without) = (compared + 1, with + reduced.states, without + full.states);
            }
        }
    }
    println!("{compared} cases: {without} states without reductions, {with} with all");
    assert!(compared > 20, "{compared} cases are small enough");
}

/// A load beyond `.cta` that merges with an older miss in the SM, with the fill in flight, returns data older than the
/// flag already seen by the thread: a fill that precedes every load hides this.
#[test]
fn reductions_lose_no_merged_load() {
    let text = "PTX Merge\n{}\nP0@cta 0,gpu 0 | P1@cta 1,gpu 0 | P2@cta 1,gpu 0 ;\n\
        st.relaxed.gpu x,1 | ld.relaxed.gpu r0,x | ld.relaxed.gpu r0,y ;\n\
        fence.acq_rel.gpu | | bne r0,1,LC00 ;\n\
        st.relaxed.gpu y,1 | | ld.relaxed.gpu r1,x ;\n\
        | | LC00: ;\n\
        exists (P1:r0 == 0 /\\ P2:r0 == 1 /\\ P2:r1 == 0)\n";
    let merged = litmus::parse("merge", text).expect("it is well-formed");
    let condition = merged.condition.clone();
    let test = Test::from(merged);
    for protocol in PROTOCOLS {
        let mut seen = 0;
        for layout in spread(layouts_of(&test, Sharing::Apart, true), 4) {
            let config = Config { max_states: 200_000, ..config_of(protocol) };
            let reduced = explore(&test, &layout, &config);
            let full = explore(&test, &layout, &Config { reductions: Reductions::NONE, ..config });
            assert_eq!(
                (&full.verdict, &reduced.verdict),
                (&ExplorationVerdict::Clean, &ExplorationVerdict::Clean),
                "{protocol} at {layout}"
            );
            assert_eq!(reduced.outcomes, full.outcomes, "{protocol} at {layout}");
            seen += usize::from(reduced.outcomes.iter().any(|state| condition.formula.holds(&test.program, state)));
        }
        assert!(seen > 0, "{protocol}");
    }
}

#[test]
fn reductions_lose_no_outcome_across_kernels() {
    let (mut compared, mut with, mut without) = (0, 0, 0);
    for name in ["K-MP", "K-MP+reload", "K-SB", "K-CoWW", "K-Atomics+weak"] {
        let test = across_kernels(name);
        for protocol in PROTOCOLS {
            for layout in spread(layouts_of(&test, Sharing::Apart, true), 4) {
                for (start, write) in STARTS.into_iter().zip([WritePolicy::Through, WritePolicy::Back]) {
                    let mut config = Config { start, max_states: 20_000, ..config_of(protocol) };
                    config.options.write = write;
                    let full = explore(&test, &layout, &Config { reductions: Reductions::NONE, ..config });
                    if full.verdict != ExplorationVerdict::Clean {
                        continue;
                    }
                    let reduced = explore(&test, &layout, &config);
                    assert_eq!(reduced.outcomes, full.outcomes, "{name} at {layout} under {config:?}");
                    (compared, with, without) = (compared + 1, with + reduced.states, without + full.states);
                }
            }
        }
    }
    println!("{compared} cases: {without} states without reductions, {with} with all");
    assert!(compared > 100, "{compared} cases are small enough");
}

#[test]
#[ignore = "deep: every small case"]
fn evicting_at_the_access_loses_no_outcome() {
    let mut compared = 0;
    each_small_case(|test, layout, config| {
        let config = Config { reductions: Reductions::NONE, ..config };
        let free = explore(test, layout, &Config { evictions: Evictions::Spontaneous, ..config });
        if free.verdict != ExplorationVerdict::Clean {
            return;
        }
        let at_access = explore(test, layout, &config);
        assert_eq!(at_access.outcomes, free.outcomes, "{} at {layout} under {config:?}", test.name);
        compared += 1;
    });
    assert!(compared > 50, "{compared} cases are small enough");
}

/// Programs with two locations on a line or in a region, which are evicted and replaced together.
#[test]
fn evicting_at_the_access_loses_no_outcome_of_shared_lines() {
    let mut compared = 0;
    let small =
        |program: &Program| program.memory_operations() <= 4 && program.locations.len() > 1 && gpus_of(program) <= 2;
    for program in (0..FROM_SHARED).map(|index| random::program(9, index)).filter(small) {
        let test = Test { name: program.name.clone(), program, allowed: None };
        for (index, protocol) in PROTOCOLS.into_iter().enumerate() {
            let sharing = [Sharing::Region, Sharing::Line, Sharing::Sectors][(compared + index) % 3];
            for layout in spread(layouts_of(&test, sharing, true), 2) {
                let config = Config { start: STARTS[compared % 2], max_states: 4_000, ..config_of(protocol) };
                let free = Config { evictions: Evictions::Spontaneous, reductions: Reductions::NONE, ..config };
                let free = explore(&test, &layout, &free);
                if free.verdict != ExplorationVerdict::Clean {
                    continue;
                }
                let reduced = explore(&test, &layout, &config);
                assert_eq!(reduced.outcomes, free.outcomes, "{}\n{layout} under {config:?}", test.program);
                compared += 1;
            }
        }
    }
    println!("{compared} explorations of random programs that share lines");
    assert!(compared > 50, "{compared} explorations are small enough");
}

/// Layouts omitted by [`layouts`](tombolo_check::explore::layouts): regions with homes on two modules of a GPU without
/// threads behave like regions on a shared module.
#[test]
fn modules_without_threads_have_no_company() {
    let mut compared = 0;
    for test in ["gpu", "sys"].into_iter().flat_map(|scope| [mp(scope), sb(scope)]) {
        let gpus = gpus_of(&test.program) + 1;
        let far = ModuleId(2 * gpus - 2);
        let shares = |layout: &&ProgramLayout| layout.regions.iter().all(|homes| homes.system == far);
        for shared in layouts_on(gpus, &test, Sharing::Apart, true).iter().filter(shares) {
            let mut apart = shared.clone();
            apart.regions[1].system.0 += 1;
            for protocol in PROTOCOLS {
                for start in STARTS {
                    let config = Config { start, ..config_of(protocol) };
                    let [one, other] = [shared, &apart].map(|layout| explore(&test, layout, &config));
                    assert_eq!((one.states, one.outcomes), (other.states, other.outcomes), "{} at {shared}", test.name);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 100, "{compared} layouts have both homes far from every thread");
}

#[test]
fn reductions_hide_no_broken_rule() {
    let caught = count_caught(BrokenRule::ALL.into_iter().step_by(8));
    assert!(caught > 10, "{caught} violations are near enough to the start");
}

#[test]
#[ignore = "deep: every rule"]
fn reductions_hide_none_of_all_broken_rules() {
    let caught = count_caught(BrokenRule::ALL.into_iter());
    assert!(caught > 100, "{caught} violations are near enough to the start");
}

/// Violations of `rules` near the start, in an exploration without reductions; all must also appear with reductions.
fn count_caught(rules: impl Iterator<Item = BrokenRule>) -> usize {
    let mut caught = 0;
    for rule in rules {
        each_small_case(|test, layout, config| {
            let of_dirty_bytes = matches!(rule, BrokenRule::DirtyEvictionLost | BrokenRule::DirtyInvalidationLost);
            if config.options.write == WritePolicy::Back && !of_dirty_bytes {
                return;
            }
            let config = Config { max_states: 500, ..config }.with_broken_rule(rule);
            let full = explore(test, layout, &Config { reductions: Reductions::NONE, ..config });
            // An unreachable stale copy is not a program fault, and is forgotten.
            let at_rest = |violation| matches!(violation, Violation::Stale { .. } | Violation::Untracked { .. });
            if let ExplorationVerdict::Violated(violation) = full.verdict
                && !at_rest(violation)
            {
                let reduced = explore(test, layout, &Config { max_states: 20_000, ..config });
                let seen = matches!(reduced.verdict, ExplorationVerdict::Violated(_));
                assert!(seen, "{rule:?} ({violation}) in {} at {layout} under {config:?}", test.name);
                caught += 1;
            }
        });
    }
    println!("{caught} violations without reductions, all seen with them");
    caught
}

/// States for the first layout, from cold caches: without and with reductions, by protocol. A changed number indicates
/// a changed protocol or host: ensure that the change is intended.
#[test]
fn state_counts_stay_as_they_are() {
    let counts = |test: &Test| {
        let layout = &layouts_of(test, Sharing::Apart, true)[0];
        PROTOCOLS.map(|protocol| {
            let full = Config { reductions: Reductions::NONE, ..config_of(protocol) };
            [full, config_of(protocol)].map(|config| explore(test, layout, &config).states)
        })
    };
    assert_eq!(
        counts(&cowr("sys")),
        [[40, 11], [40, 11], [40, 11], [40, 11], [40, 14], [40, 11], [45, 11], [45, 11], [40, 15], [40, 14], [40, 11]]
    );
    assert_eq!(
        counts(&mp("sys")),
        [
            [97, 16],
            [76, 16],
            [76, 16],
            [97, 16],
            [84, 16],
            [103, 16],
            [102, 16],
            [102, 16],
            [69, 16],
            [84, 16],
            [76, 16]
        ]
    );
}
