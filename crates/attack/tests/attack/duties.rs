//! A host's duties to its protocol, duty by duty, in both worlds: a program is explored to the end and run on the
//! timing model. The program is clean in both, and exposes the broken duty in both.
//!
//! The duties are listed in [`tombolo_protocol::coherence`] and [`tombolo_protocol::client_home`];
//! `crates/protocol/src/host.rs` and `drain.rs` contain the implementation shared by both worlds.

use tombolo_attack::{Attack, Target, attack, catch};
use tombolo_check::explore::{
    ClientResources, Config, ExplorationVerdict, MAX_GPUS, PlacementParameters, ProgramLayout, Sharing, Start, gpus_of,
    is_hierarchical, layouts, run,
};
use tombolo_check::litmus::{FinalState, Program};
use tombolo_check::verify::Case;
use tombolo_design::{DesignConfig, design};
use tombolo_protocol::BrokenRule;

/// A single duty.
struct Duty {
    /// Description of the host's obligation.
    duty: &'static str,
    /// The rule that breaks it.
    rule: BrokenRule,
    /// A design with a need for the duty; `+back`: with lines written back.
    design: &'static str,
    /// A shipped shape for exposing the broken duty.
    shape: &'static str,
    /// Resource limits of block clients, if the explorer exposes the duty only with few resources.
    room: Option<ClientResources>,
    /// Timed runs, from seed 1, until the broken duty shows (measured, plus half this number again, at least ten); or
    /// the reason why none shows it.
    timed: Result<u64, &'static str>,
}

const DUTIES: [Duty; 12] = [
    Duty {
        duty: "a request behind a parked one of its line parks too",
        rule: BrokenRule::RequestPassesParked,
        design: "hmg",
        shape: "CoWR+neighbour.gpu",
        room: None,
        timed: Ok(10),
    },
    Duty {
        duty: "a request behind a store of its line that waits for a credit waits too",
        rule: BrokenRule::LoadPassesStore,
        design: "hmg",
        shape: "CoWR.gpu",
        room: None,
        timed: Ok(730),
    },
    Duty {
        duty: "a request that runs again and lacks a miss register stays ahead of those of its line that came later",
        rule: BrokenRule::RequestPassesDeferred,
        design: "umh",
        shape: "CoWR+queue.gpu",
        room: Some(ClientResources { registers: 1, ways: None }),
        timed: Err("it takes more blocks than a shape has: `system/tests/runs/blocks.rs` times it"),
    },
    Duty {
        duty: "a fill serves everyone who waited for its bytes",
        rule: BrokenRule::FillForgetsOthers,
        design: "hmg",
        shape: "MP+reader.gpu",
        room: None,
        timed: Ok(5),
    },
    Duty {
        duty: "a fill that a store has poisoned installs nothing",
        rule: BrokenRule::StoreKeepsFill,
        design: "hmg",
        shape: "CoRWR.gpu",
        room: None,
        timed: Ok(5),
    },
    Duty {
        duty: "a bulk invalidation reaches the misses that are pending",
        rule: BrokenRule::FillSurvivesAcquire,
        design: "software-flat",
        shape: "MP+reader.gpu",
        room: None,
        timed: Ok(40),
    },
    Duty {
        duty: "an invalidation of a region reaches all of its lines",
        rule: BrokenRule::InvalidationReachesOneLine,
        design: "nhcc",
        shape: "MP+region.sys",
        room: None,
        timed: Ok(110),
    },
    Duty {
        duty: "a release writes back dirty lines whose miss is pending",
        rule: BrokenRule::ReleaseForgetsPending,
        design: "software-flat+back",
        shape: "MP+readers.gpu",
        room: None,
        timed: Ok(5),
    },
    Duty {
        duty: "an invalidation stays behind the fills of its region that were sent before it",
        rule: BrokenRule::InvalidationPassesFill,
        design: "hmg",
        shape: "MP.gpu",
        room: None,
        timed: Ok(60),
    },
    Duty {
        duty: "a store that a GPU home has sent on is awaited to the end of its way",
        rule: BrokenRule::StoreEndsAtGpuHome,
        design: "hmg",
        shape: "MP.sys",
        room: None,
        timed: Ok(1_220),
    },
    Duty {
        duty: "a GPU home answers an invalidation behind those that it forwards",
        rule: BrokenRule::InvalidationTakenEarly,
        design: "hmg",
        shape: "MP.sys",
        room: None,
        timed: Ok(260),
    },
    Duty {
        duty: "a GPU home answers an invalidation behind those of an entry that it has replaced",
        rule: BrokenRule::ReplacementNotAwaited,
        design: "hmg",
        shape: "MP.sys",
        room: None,
        timed: Err("its race is narrow: 6,000 runs of MP.sys did not meet it"),
    },
];

/// Number of timed runs per program without a broken rule.
const CLEAN_RUNS: u64 = 200;
/// Maximum number of runs for a broken duty in the gate; the deep test covers the rest.
const SOON: u64 = 300;
/// Maximum number of candidate executions examined by the model: more than any shape has.
const CANDIDATES: u64 = 1_000_000;

impl Duty {
    fn design(&self) -> DesignConfig {
        let mut tree = design(self.design.trim_end_matches("+back")).expect("a design that ships");
        if self.design.ends_with("+back") {
            tree.set("l2_write", "back").expect("a key of designs");
        }
        tree.check().expect("a design that makes sense")
    }

    fn case(&self) -> Case {
        let shipped = [Case::shapes(), Case::queues()].concat();
        shipped.into_iter().find(|case| case.stem() == self.shape).expect("a shape that ships")
    }

    /// The explorer's verdict over all placements: the first verdict that is not clean. `broken`: with the duty broken.
    fn explored(&self, broken: bool) -> ExplorationVerdict {
        let (program, allowed) = self.case().allowed(CANDIDATES).expect("the model answers for a shape");
        let design = self.design();
        let (options, room) = (design.options(), self.room);
        let mut config = Config { options, room, ..Config::new(design.coherence.protocol()) };
        config.options.broken_rule = broken.then_some(self.rule);
        let forbidden = |state: &FinalState| !allowed.contains(state);
        let verdicts = places(&program, &config, design.has_host()).into_iter().map(|(layout, start)| {
            let config = Config { start, ..config };
            run(&program, &layout, &config, &forbidden).expect("a design names a protocol there is").verdict
        });
        verdicts.into_iter().find(|verdict| *verdict != ExplorationVerdict::Clean).unwrap_or(ExplorationVerdict::Clean)
    }

    /// The timing model's part: `work` on the given number of runs from seed 1.
    fn timed<T>(&self, runs: u64, work: impl Fn(&Attack<'_>) -> T) -> T {
        let (targets, cases) = ([Target::new(&self.design())], [self.case()]);
        work(&Attack { targets: &targets, cases: &cases, random: false, seed: 1, runs, threads: 1 })
    }
}

/// Every placement on GPUs with two modules each, plus a GPU without threads, cold and warm. If a host takes part, all
/// memory belongs to the host, and each GPU has a single module.
fn places(program: &Program, config: &Config, has_host: bool) -> Vec<(ProgramLayout, Start)> {
    let gpu_homes = is_hierarchical(config).expect("a design names a protocol there is");
    let gpus = if has_host { gpus_of(program) } else { (gpus_of(program) + 1).min(MAX_GPUS) };
    let modules_per_gpu = if has_host { 1 } else { 2 };
    let of = |sharing| {
        layouts(
            program,
            PlacementParameters { gpus, modules_per_gpu, sharing, gpu_homes, shared_sms: true, host_memory: has_host },
        )
    };
    let all: Vec<ProgramLayout> = if has_host {
        Sharing::OF_BLOCKS.into_iter().flat_map(of).collect()
    } else {
        Sharing::ALL.into_iter().flat_map(of).collect()
    };
    all.into_iter().flat_map(|layout| [Start::Cold, Start::Warm].map(|start| (layout.clone(), start))).collect()
}

#[test]
fn the_explorer_sees_each_broken_duty_and_nothing_where_it_is_kept() {
    for duty in &DUTIES {
        if duty.room.is_none() {
            assert_eq!(duty.explored(false), ExplorationVerdict::Clean, "{}", duty.duty);
        }
        assert!(matches!(duty.explored(true), ExplorationVerdict::Violated(_)), "{}, broken", duty.duty);
    }
}

#[test]
#[ignore = "deep: explores as many states as an exploration may"]
fn the_explorer_sees_nothing_where_a_client_has_few_registers() {
    for duty in DUTIES.iter().filter(|duty| duty.room.is_some()) {
        let whole = duty.explored(false);
        // With few registers a shape has more states than an exploration visits.
        assert!(matches!(whole, ExplorationVerdict::Clean | ExplorationVerdict::Bounded), "{}: {whole:?}", duty.duty);
    }
}

#[test]
fn timed_runs_see_each_broken_duty_and_nothing_where_it_is_kept() {
    for duty in &DUTIES {
        let report = duty.timed(CLEAN_RUNS, |runs| attack(runs, &()).remove(0));
        assert!(report.verdict.holds() && report.runs == CLEAN_RUNS, "{}: {:?}", duty.duty, report.first);
    }
    seen(|runs| runs <= SOON);
}

#[test]
#[ignore = "deep: up to 1,220 runs a duty"]
fn timed_runs_see_broken_duties_that_show_late() {
    seen(|runs| runs > SOON);
}

/// Panics if a broken duty with a run count accepted by `within` stays undetected.
fn seen(within: impl Fn(u64) -> bool) {
    for duty in &DUTIES {
        if let Some(runs) = duty.timed.ok().filter(|runs| within(*runs)) {
            assert!(duty.timed(runs, |runs| catch(runs, duty.rule)).is_some(), "{}, broken", duty.duty);
        }
    }
}
