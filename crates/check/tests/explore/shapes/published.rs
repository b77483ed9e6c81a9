//! Shipped tests, laid out on GPUs that publish pages.

use super::{STARTS, Test, explore, spread};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use tombolo_check::explore::{
    Config, ExplorationVerdict, PlacementParameters, ProgramLayout, Report, Sharing, gpus_of, layouts,
};
use tombolo_check::litmus::Program;
use tombolo_check::verify::Case;
use tombolo_protocol::ModuleSet;
use tombolo_protocol::publication::{Publication, Subscribers};
use tombolo_protocol::vi::WritePolicy;
use tombolo_types::ModuleId;

/// Number of GPUs: a publisher, a subscriber, and a third with either role or neither.
const GPUS: u8 = 3;
/// Maximum number of candidate executions in the axiomatic model for a test.
const CANDIDATES: u64 = 1 << 20;
/// A location on its own page, two locations on a line, two locations on a page.
const SHARINGS: [Sharing; 3] = [Sharing::Apart, Sharing::Line, Sharing::Page];

/// Small shipped tests, by name.
pub(crate) fn tests() -> &'static BTreeMap<String, Test> {
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

/// Layouts with every allowed subscriber set for each page (a region).
pub(crate) fn published(
    program: &Program,
    sharing: Sharing,
    may_have: impl Fn(&ProgramLayout, usize, Subscribers) -> bool,
) -> Vec<ProgramLayout> {
    let shape = PlacementParameters {
        gpus: GPUS,
        modules_per_gpu: 1,
        sharing,
        gpu_homes: false,
        shared_sms: true,
        host_memory: false,
    };
    let mut all = Vec::new();
    // Homes follow from the subscribers.
    let is_first = |layout: &ProgramLayout| layout.regions.iter().all(|homes| homes.system == ModuleId(0));
    for layout in layouts(program, shape).into_iter().filter(is_first) {
        let mut sets: Vec<Vec<Subscribers>> = vec![Vec::new()];
        for region in 0..layout.regions.len() {
            let options = (1..1 << GPUS).filter_map(|set| Subscribers::new(ModuleSet::from_bits(set)));
            let options: Vec<Subscribers> = options.filter(|set| may_have(&layout, region, *set)).collect();
            sets = sets.iter().flat_map(|set| options.iter().map(|one| [&set[..], &[*one]].concat())).collect();
        }
        all.extend(sets.into_iter().map(|subscribers| ProgramLayout { subscribers, ..layout.clone() }));
    }
    all
}

/// Configuration for pages published under `peer`, with lines written back.
pub(crate) fn config(rules: Publication, max_states: usize) -> Config {
    let mut config = Config { publication: Some(rules), max_states, walks: 3, ..Config::new("peer") };
    config.options.write = WritePolicy::Back;
    config
}

/// Explores up to `count` layouts per sharing variant; returns the first violation, and the state count.
pub(crate) fn explored(
    test: &Test,
    places: impl Fn(Sharing) -> Vec<ProgramLayout>,
    count: usize,
    config: &Config,
) -> (Option<(ProgramLayout, Report)>, usize) {
    let mut states = 0;
    for sharing in SHARINGS {
        for (layout, start) in spread(places(sharing), count).iter().flat_map(|at| STARTS.map(|start| (at, start))) {
            let report = explore(test, layout, &Config { start, ..*config });
            states += report.states;
            if matches!(report.verdict, ExplorationVerdict::Violated(_)) {
                return (Some((layout.clone(), report)), states);
            }
        }
    }
    (None, states)
}

/// Sums the states over all tests, and asserts success for each test.
pub(crate) fn states_of_all(explored: impl Fn(&Test) -> (Option<(ProgramLayout, Report)>, usize)) -> usize {
    let mut all = 0;
    for test in tests().values() {
        let (wrong, states) = explored(test);
        if let Some((layout, Report { trace, .. })) = wrong {
            panic!("{} at {layout}\n{}", test.name, trace.unwrap_or_default());
        }
        all += states;
    }
    all
}
