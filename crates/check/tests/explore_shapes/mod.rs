//! Litmus shapes and helpers that the explorer's tests share.
#![allow(dead_code, reason = "each test file uses a part of it")]

use tombolo_check::axiomatic::{self, Limits, Outcomes};
use tombolo_check::explore::{Config, Layout, Report, Shape, Sharing, Start, layouts, run};
use tombolo_check::litmus::{self, Program};

/// A program with everything the model allows it.
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) program: Program,
    /// `None` for a program with a loop.
    pub(crate) allowed: Option<Outcomes>,
}

/// Where the threads of a shape are, by thread: CTA and GPU. `far` is the GPU of those that synchronise
/// with thread 0 from afar: 1 where the scope is `sys`, else 0.
fn columns(places: &[(u8, u8)]) -> String {
    let cells = places.iter().enumerate().map(|(i, (cta, gpu))| format!("P{i}@cta {cta},gpu {gpu}"));
    cells.collect::<Vec<_>>().join(" | ")
}

fn test(name: &str, scope: &str, places: &[(u8, u8)], rows: &[&str], condition: &str) -> Test {
    let rows: String = rows.iter().map(|row| format!("{row} ;\n")).collect();
    let text = format!("PTX {name}\n{{x=0; y=0; z=0;}}\n{} ;\n{rows}{condition}\n", columns(places));
    let text = text.replace(".S", &format!(".{scope}"));
    let mut program = litmus::parse(name, &text).expect("the shape is well-formed").program;
    let used = |index: usize| {
        let code = program.threads.iter().flat_map(|thread| &thread.code);
        code.filter_map(|instruction| instruction.location()).any(|location| location.0 as usize == index)
    };
    // Locations are declared in order: those that no thread uses are last.
    let count = (0..program.locations.len()).filter(|&index| used(index)).count();
    program.locations.truncate(count);
    let allowed = axiomatic::outcomes(&program, &Limits::default()).ok();
    Test { name: format!("{name}.{scope}"), program, allowed }
}

/// Message passing.
pub(crate) fn mp(scope: &str) -> Test {
    let rows = ["st.weak x,1 | ld.acquire.S r0,y", "st.release.S y,1 | ld.weak r1,x"];
    test("MP", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P1:r0 == 1 /\\ P1:r1 == 0)")
}

/// Message passing, with a second reader in the CTA of the first.
pub(crate) fn mp_second_reader(scope: &str) -> Test {
    let rows = ["st.weak x,1 | ld.acquire.S r0,y | ld.weak r0,x", "st.release.S y,1 | ld.weak r1,x |"];
    let places = [(0, 0), (1, far(scope)), (1, far(scope))];
    test("MP+reader", scope, &places, &rows, "~exists (P1:r0 == 1 /\\ P1:r1 == 0)")
}

/// Message passing; the reader has loaded the data before.
pub(crate) fn mp_reload(scope: &str) -> Test {
    let rows = ["st.weak x,1 | ld.weak r2,x", "st.release.S y,1 | ld.acquire.S r0,y", "| ld.weak r1,x"];
    test("MP+reload", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P1:r0 == 1 /\\ P1:r1 == 0)")
}

/// Store buffering.
pub(crate) fn sb(scope: &str) -> Test {
    let rows = ["st.weak x,1 | st.weak y,1", "fence.sc.S | fence.sc.S", "ld.weak r0,y | ld.weak r0,x"];
    test("SB", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P0:r0 == 0 /\\ P1:r0 == 0)")
}

/// Coherence: a thread reads its own write or a later one.
pub(crate) fn cowr(scope: &str) -> Test {
    let rows = ["st.relaxed.S x,1 | st.relaxed.S x,2", "ld.relaxed.S r0,x |"];
    test("CoWR", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P0:r0 == 0)")
}

/// The same after a load of its own, all weak.
pub(crate) fn cowr_after_load(scope: &str) -> Test {
    let rows = ["ld.weak r1,x | st.weak x,2", "st.weak x,1 |", "ld.weak r0,x |"];
    test("CoRWR", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P0:r0 == 0)")
}

/// Write to read causality.
pub(crate) fn wrc(scope: &str) -> Test {
    let rows = [
        "st.relaxed.S x,1 | ld.relaxed.S r0,x | ld.acquire.S r0,y",
        "                 | st.release.S y,1   | ld.weak r1,x",
    ];
    let places = [(0, 0), (1, far(scope)), (2, 0)];
    test("WRC", scope, &places, &rows, "~exists (P1:r0 == 1 /\\ P2:r0 == 1 /\\ P2:r1 == 0)")
}

/// Independent reads of independent writes.
pub(crate) fn iriw(scope: &str) -> Test {
    let rows = [
        "st.relaxed.S x,1 | st.relaxed.S y,1 | ld.relaxed.S r0,x | ld.relaxed.S r0,y",
        "                 |                  | fence.sc.S         | fence.sc.S",
        "                 |                  | ld.relaxed.S r1,y  | ld.relaxed.S r1,x",
    ];
    let places = [(0, 0), (1, far(scope)), (2, 0), (3, far(scope))];
    let condition = "~exists (P2:r0 == 1 /\\ P2:r1 == 0 /\\ P3:r0 == 1 /\\ P3:r1 == 0)";
    test("IRIW", scope, &places, &rows, condition)
}

/// Transitive message passing: a `.gpu` release, then another thread's `.sys` release.
pub(crate) fn isa2() -> Test {
    let rows = [
        "st.weak x,1        | ld.acquire.gpu r0,y | ld.acquire.sys r0,z",
        "st.release.gpu y,1 | st.release.sys z,1  | ld.weak r1,x",
    ];
    let condition = "~exists (P1:r0 == 1 /\\ P2:r0 == 1 /\\ P2:r1 == 0)";
    test("ISA2", "sys", &[(0, 0), (1, 0), (2, 1)], &rows, condition)
}

/// Write to read causality, from afar by `.sys`, then on by `.gpu`.
pub(crate) fn wrc_mixed() -> Test {
    let rows = [
        "st.relaxed.sys x,1 | ld.relaxed.sys r0,x | ld.acquire.gpu r0,y",
        "                   | st.release.gpu y,1  | ld.weak r1,x",
    ];
    let condition = "~exists (P1:r0 == 1 /\\ P2:r0 == 1 /\\ P2:r1 == 0)";
    test("WRC+gpu", "sys", &[(0, 0), (1, 1), (2, 1)], &rows, condition)
}

/// Two increments: none is lost.
pub(crate) fn atomics(scope: &str) -> Test {
    let rows = ["atom.relaxed.S.add r0,x,1 | atom.relaxed.S.add r0,x,1"];
    test("Atomics", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P0:r0 == 0 /\\ P1:r0 == 0)")
}

/// A release of one thread writes back what another has written to the same line and is about to read.
pub(crate) fn flush_under_miss(scope: &str) -> Test {
    let rows = ["st.weak x,1 | st.weak y,3", "fence.sc.S | ld.acquire.S r0,y", "st.weak x,2 | ld.weak r1,x"];
    test("Flush", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P1:r0 == 0)")
}

/// Polling a flag: the store becomes visible in the end.
pub(crate) fn polling(scope: &str) -> Test {
    let rows = ["st.relaxed.S x,1 | LC00:", "| ld.relaxed.S r0,x", "| bne r0,1,LC00"];
    test("Polling", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P1:r0 == 0)")
}

/// The six shapes at one scope.
pub(crate) fn six(scope: &str) -> Vec<Test> {
    vec![mp(scope), mp_second_reader(scope), sb(scope), cowr(scope), wrc(scope), iriw(scope)]
}

fn far(scope: &str) -> u8 {
    u8::from(scope == "sys")
}

/// All layouts of a test on two GPUs of two modules.
pub(crate) fn layouts_of(test: &Test, sharing: Sharing, gpu_homes: bool) -> Vec<Layout> {
    layouts(&test.program, Shape { gpus: 2, modules_per_gpu: 2, sharing, gpu_homes, shared_sms: true })
}

/// At most `count` of them, evenly spread.
pub(crate) fn spread(layouts: Vec<Layout>, count: usize) -> Vec<Layout> {
    let all = layouts.len();
    let wanted = |index: usize| count >= all || (index * count) / all != ((index + 1) * count) / all;
    layouts.into_iter().enumerate().filter(|(index, _)| wanted(*index)).map(|(_, layout)| layout).collect()
}

/// Explores one layout; what the model does not allow is forbidden.
pub(crate) fn explore(test: &Test, layout: &Layout, config: &Config) -> Report {
    let forbidden = |state: &litmus::FinalState| test.allowed.as_ref().is_some_and(|allowed| !allowed.contains(state));
    run(&test.program, layout, config, &forbidden).expect("the protocol has a name")
}

/// The two starts.
pub(crate) const STARTS: [Start; 2] = [Start::Cold, Start::Warm];
