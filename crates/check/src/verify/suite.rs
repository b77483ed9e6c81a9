//! The shipped tests, judged once for all mutants, and the exploration limits for catching a mutant.

use super::case::{Case, JudgedTest, PLACEMENTS_OF_RANDOM};
use super::coverage::{ExploredPlacement, MachineConstraints, coverage};
use super::design::configuration;
use super::mutants::{Detection, Mutant, MutantCatch, MutantReport, TestEffort};
use crate::explore::{Config, ExplorationVerdict, Start, is_hierarchical, refuses, run};
use crate::litmus::FinalState;
use std::sync::OnceLock;
use tombolo_protocol::catalogue::facts;
use tombolo_types::StopFlag;

/// States per placement; then [`WALKS`]. Source: assumed; a mutant's errors appear early.
const STATES_OF_PLACEMENT: usize = 20_000;
/// States for a test named in a rule's row, over all placements.
const STATES_OF_OWN: usize = 3_000_000;
/// States for any other test.
const STATES_OF_OTHER: usize = 60_000;
/// States for a random program over its placements.
const STATES_OF_RANDOM: usize = 8_000;
/// Random executions drawn after the state budget for a placement is exhausted.
const WALKS: usize = 10;

/// Seed for the series of random programs.
const SEED: u64 = 7;
/// Number of programs in this series.
const PROGRAMS: u64 = 60;

/// Tests, judged by the model on first use.
pub(super) struct Suite {
    tests: Vec<SuiteTest>,
    random: Vec<SuiteTest>,
}

/// A single test.
struct SuiteTest {
    case: Case,
    judged: OnceLock<JudgedTest>,
    /// Explored places: for protocols without and with GPU homes, and for machines in which all memory belongs to the
    /// host.
    places: [OnceLock<Vec<ExploredPlacement>>; 3],
}

/// A test's detection, with the path to it.
type TestDetection = (Detection, Option<String>);

impl Suite {
    /// Shapes and kernel tests come first, because they are small.
    pub(super) fn shipped() -> Suite {
        let others = [Case::core(), Case::host(), Case::queues()].concat();
        let tests = [Case::shapes(), Case::kernels(), Case::polling(), others].concat();
        let random = (0..PROGRAMS).map(|index| Case::random(SEED, index, PLACEMENTS_OF_RANDOM));
        Suite { tests: tests.into_iter().map(SuiteTest::new).collect(), random: random.map(SuiteTest::new).collect() }
    }

    /// Searches for tests that catch `mutant`.
    pub(super) fn report(&self, mutant: &Mutant, effort: TestEffort) -> MutantReport {
        let (tests, first) = self.count(mutant, effort);
        let programs = if effort.tries_random(tests) { &self.random[..] } else { &[] };
        let drawn: Vec<TestDetection> =
            programs.iter().filter_map(|member| member.seen(mutant, STATES_OF_RANDOM)).collect();
        let random = drawn.len();
        let (first, trace) = first.or(drawn.into_iter().next()).unzip();
        let by = first.map(|first| MutantCatch { tests, random, random_tried: programs.len(), first });
        MutantReport {
            name: mutant.rule.to_string(),
            protocol: mutant.protocol,
            configuration: configuration(mutant.protocol, mutant.options()),
            caught: tests > 0,
            by,
            trace: trace.flatten(),
        }
    }

    /// Tests detecting the mutant, up to the requested limit, and the first detection.
    fn count(&self, mutant: &Mutant, effort: TestEffort) -> (usize, Option<TestDetection>) {
        let is_own = |member: &&SuiteTest| mutant.own_tests().contains(&member.case.stem());
        let own =
            mutant.own_tests().iter().filter_map(|name| self.tests.iter().find(|member| member.case.stem() == *name));
        let own = own.map(|member| (member, STATES_OF_OWN));
        let others = self.tests.iter().filter(|member| !is_own(member)).map(|member| (member, STATES_OF_OTHER));
        let (mut tests, mut first) = (0, None);
        for (member, states) in own.chain(others) {
            if tests == effort.tests() {
                break;
            }
            if let Some(seen) = member.seen(mutant, states) {
                tests += 1;
                first.get_or_insert(seen);
            }
        }
        (tests, first)
    }
}

impl SuiteTest {
    fn new(case: Case) -> SuiteTest {
        SuiteTest { case, judged: OnceLock::new(), places: [const { OnceLock::new() }; 3] }
    }

    fn judged(&self) -> &JudgedTest {
        self.judged.get_or_init(|| match self.case.judge() {
            Ok(judged) => judged,
            Err(_) => panic!("{} ships and is supported", self.case.name),
        })
    }

    /// Explores place after place until the broken rule is detected or the state budget is exhausted. Nothing is detected if
    /// the calling thread's [`StopFlag`] is set.
    fn seen(&self, mutant: &Mutant, states: usize) -> Option<TestDetection> {
        if StopFlag::current().is_set() {
            return None;
        }
        let (judged, mut left) = (self.judged(), states);
        if refuses(&judged.program, mutant.protocol).is_some() {
            return None;
        }
        let forbidden = |state: &FinalState| judged.forbids(state);
        for ExploredPlacement { layout, start } in self.places(mutant) {
            let max_states = left.min(STATES_OF_PLACEMENT);
            let config = Config { max_states, walks: WALKS, ..mutant.config(&self.case, *start) };
            let report = run(&judged.program, layout, &config, &forbidden).expect("a mutant names a protocol there is");
            if let ExplorationVerdict::Violated(violation) = report.verdict {
                let start = match start {
                    Start::Cold => "cold",
                    Start::Warm => "warm",
                };
                let (test, placement) = (self.case.name.clone(), layout.to_string());
                return Some((Detection { test, placement, start, seen_as: violation.to_string() }, report.trace));
            }
            left = left.saturating_sub(report.states);
            if left == 0 {
                return None;
            }
        }
        None
    }

    fn places(&self, mutant: &Mutant) -> &[ExploredPlacement] {
        let config = mutant.config(&self.case, Start::Cold);
        let gpu_homes = is_hierarchical(&config).expect("a mutant names a protocol there is");
        let host_memory = facts(mutant.protocol).is_some_and(|facts| facts.host);
        let machines = MachineConstraints { gpu_homes, pages_move: false, copied: false, host_memory };
        let cell = &self.places[if host_memory { 2 } else { usize::from(gpu_homes) }];
        cell.get_or_init(|| coverage(&self.judged().program, self.case.placements, machines).places)
    }
}
