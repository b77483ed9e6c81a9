//! Kernel boundaries elided by CPElide, on its machine with four chiplets and one CU each.

use super::Measurement;
use std::ops::Range;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_system::elision::ElisionRecord;
use tombolo_system::{RunSpec, run_checked};

const CHIPLETS: u64 = 4;
/// Lines in a page. The first touch decides the page's home.
const PAGE: u64 = 64;

type Arrays<'a> = &'a [(&'a str, Range<u64>)];

/// Builds a kernel with four CTAs, one per chiplet.
fn kernel(each: impl Fn(u64, &mut WarpBuilder<'_>)) -> Vec<CtaBuilder> {
    (0..CHIPLETS).map(|chiplet| CtaBuilder::new().warp(|warp| each(chiplet, warp))).collect()
}

fn read(warp: &mut WarpBuilder<'_>, lines: Range<u64>) {
    lines.for_each(|line| _ = warp.read([line]));
}

fn write(warp: &mut WarpBuilder<'_>, lines: Range<u64>) {
    lines.for_each(|line| _ = warp.write([line]));
}

/// Returns a chiplet's page in the array that begins at line `array`.
fn page(array: u64, chiplet: u64) -> Range<u64> {
    array + chiplet * PAGE..array + (chiplet + 1) * PAGE
}

/// Returns the boundary actions, and the number of loads that returned a forbidden value.
fn ran(
    name: &str,
    settings: &[&str],
    kernels: Vec<Vec<CtaBuilder>>,
    arrays: Arrays<'_>,
) -> Result<(ElisionRecord, u64), String> {
    let mut machine = tombolo_machine::machine("chiplet-4").map_err(|error| error.to_string())?;
    let mut designs = [tombolo_design::design(name).map_err(|error| error.to_string())?];
    let settings = [&["topology.sms_per_module=1"], settings].concat();
    tombolo_design::apply(&settings, &mut machine, &mut designs).map_err(|error| error.to_string())?;
    let machine: Arc<MachineConfig> = machine.check().map(Arc::new).map_err(|error| error.to_string())?;
    let [design] = designs;
    let design = design.check().map_err(|error| error.to_string())?;
    let program = DirectedProgram::of_arrays(machine.line, kernels, arrays, &[]);
    let spec = RunSpec { machine, design, program, pages: None, threads: 1 };
    let record = run_checked(&spec, None).map_err(|error| error.to_string())?;
    let wrong = record.check.map_or(0, |check| check.violations);
    Ok((record.elision.unwrap_or_default(), wrong))
}

/// Chiplets read and write their own pages in every kernel: dirty lines are written to memory once, at the end.
pub(super) fn own_ranges() -> Result<Measurement, String> {
    let step = || kernel(|chiplet, warp| _ = (read(warp, page(0, chiplet)), write(warp, page(0, chiplet))));
    let (elision, _) = ran("cpelide", &[], (0..5).map(|_| step()).collect(), &[("a", 0..4 * PAGE)])?;
    Ok(Measurement::count(CHIPLETS * PAGE, elision.flushed_lines + elision.dropped_lines))
}

/// A chiplet writes data and a second chiplet reads the data: one flush, no invalidation, and none at the end.
pub(super) fn producer() -> Result<Measurement, String> {
    let on = |active: u64, work: fn(&mut WarpBuilder<'_>, Range<u64>)| {
        kernel(move |chiplet, warp| {
            if chiplet == active {
                work(warp, page(0, 0));
            }
        })
    };
    let kernels = vec![on(0, write), on(1, read), on(0, read)];
    let (elision, _) = ran("cpelide", &[], kernels, &[("a", 0..PAGE)])?;
    Ok(Measurement::count(1, elision.flushes + elision.invalidations))
}

/// Two arrays are written in turn. Each chiplet writes its own pages, and also reads a line in each neighbour's page of
/// the second array. The result is the number of invalidations in six steps. A hull range suggests that the neighbours
/// may hold the line, and every second step invalidates. Exact homes rule this out.
pub(super) fn halos(design: &str) -> Result<Measurement, String> {
    let all = 4 * PAGE;
    let step = |at: u64| {
        let (from, to) = if at.is_multiple_of(2) { (0, all) } else { (all, 0) };
        kernel(move |chiplet, warp| {
            let own = page(from, chiplet);
            read(warp, own.start.saturating_sub(1).max(from)..(own.end + 1).min(from + all));
            write(warp, page(to, chiplet));
        })
    };
    let first = kernel(|chiplet, warp| _ = (write(warp, page(0, chiplet)), write(warp, page(all, chiplet))));
    let kernels = std::iter::once(first).chain((0..6).map(step)).collect();
    let (elision, wrong) = ran(design, &[], kernels, &[("a", 0..all), ("b", all..2 * all)])?;
    if wrong > 0 {
        return Err(format!("{wrong} loads returned old values"));
    }
    let predicted = if design == "cpelide" { 2 * CHIPLETS } else { 0 };
    Ok(Measurement::count(predicted, elision.invalidations))
}

/// A kernel reads an array missing from its label: loads that return data overwritten by the previous kernel.
pub(super) fn wrong_labels() -> Result<Measurement, String> {
    let kernels = vec![
        kernel(|chiplet, warp| write(warp, page(0, chiplet))),
        kernel(|chiplet, warp| read(warp, page(0, (chiplet + 1) % CHIPLETS))),
    ];
    let (_, wrong) = ran("cpelide", &["elision.drop=a"], kernels, &[("a", 0..4 * PAGE)])?;
    Ok(Measurement::count(CHIPLETS * PAGE, wrong))
}
