//! Helpers shared by the explorer's tests.

pub(crate) mod published;

use tombolo_check::axiomatic::{self, Limits, Outcomes};
use tombolo_check::explore::{
    Config, PlacementParameters, ProgramLayout, Report, Sharing, Start, gpus_of, layouts, run,
};
use tombolo_check::litmus::{self, Litmus, Program, ThreadPlacement};
use tombolo_check::verify::shapes;
use tombolo_types::GpuId;

/// A program with all outcomes allowed by the model.
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) program: Program,
    /// `None` for a program with a loop.
    pub(crate) allowed: Option<Outcomes>,
}

impl From<Litmus> for Test {
    fn from(litmus: Litmus) -> Test {
        let program = litmus.program;
        let allowed = axiomatic::outcomes(&program, &Limits::default()).ok();
        Test { name: program.name.clone(), program, allowed }
    }
}

/// The shapes as tests.
macro_rules! by_scope {
    ($($shape:ident),+) => {
        $(pub(crate) fn $shape(scope: &str) -> Test {
            shapes::$shape(scope).into()
        })+
    };
}

by_scope!(mp, mp_by_reduction, mp_second_reader, wrc, sb, cowr, cowr_after_load, atomics, flush_under_miss);

pub(crate) fn isa2() -> Test {
    shapes::isa2().into()
}

pub(crate) fn wrc_mixed() -> Test {
    shapes::wrc_mixed().into()
}

pub(crate) fn six(scope: &str) -> Vec<Test> {
    shapes::six(scope).into_iter().map(Test::from).collect()
}

/// A shipped test for kernel boundaries, by name.
pub(crate) fn across_kernels(name: &str) -> Test {
    let file = format!("{}/tests/data/kernels/{name}.litmus", env!("CARGO_MANIFEST_DIR"));
    litmus::read(file.as_ref()).expect("it is well-formed").into()
}

/// The test with all threads moved to the first GPU, ignoring the test's scopes.
pub(crate) fn on_one_gpu(mut test: Test) -> Test {
    for thread in &mut test.program.threads {
        if let ThreadPlacement::Cta { gpu, .. } = &mut thread.placement {
            *gpu = GpuId(0);
        }
    }
    test.allowed = axiomatic::outcomes(&test.program, &Limits::default()).ok();
    test
}

/// All layouts for a test on two GPUs with two modules each.
pub(crate) fn layouts_of(test: &Test, sharing: Sharing, gpu_homes: bool) -> Vec<ProgramLayout> {
    layouts_on(2, test, sharing, gpu_homes)
}

/// All layouts for a test on the given number of GPUs with two modules each.
pub(crate) fn layouts_on(gpus: u8, test: &Test, sharing: Sharing, gpu_homes: bool) -> Vec<ProgramLayout> {
    layouts(
        &test.program,
        PlacementParameters { gpus, modules_per_gpu: 2, sharing, gpu_homes, shared_sms: true, host_memory: false },
    )
}

/// All layouts for a test on GPUs with three modules, including a GPU without threads: a writer, the GPU home and a
/// reader may occupy three modules.
pub(crate) fn layouts_of_three(test: &Test, sharing: Sharing) -> Vec<ProgramLayout> {
    let gpus = gpus_of(&test.program) + 1;
    layouts(
        &test.program,
        PlacementParameters {
            gpus,
            modules_per_gpu: 3,
            sharing,
            gpu_homes: true,
            shared_sms: true,
            host_memory: false,
        },
    )
}

/// Selects at most `count` layouts, evenly spread.
pub(crate) fn spread(layouts: Vec<ProgramLayout>, count: usize) -> Vec<ProgramLayout> {
    let all = layouts.len();
    let wanted = |index: usize| count >= all || (index * count) / all != ((index + 1) * count) / all;
    layouts.into_iter().enumerate().filter(|(index, _)| wanted(*index)).map(|(_, layout)| layout).collect()
}

/// Explores a layout; outcomes that the model does not allow are forbidden.
pub(crate) fn explore(test: &Test, layout: &ProgramLayout, config: &Config) -> Report {
    let forbidden = |state: &litmus::FinalState| test.allowed.as_ref().is_some_and(|allowed| !allowed.contains(state));
    run(&test.program, layout, config, &forbidden).expect("the protocol has a name")
}

/// The two starts.
pub(crate) const STARTS: [Start; 2] = [Start::Cold, Start::Warm];
