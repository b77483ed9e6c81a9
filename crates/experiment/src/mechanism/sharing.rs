//! Sharing policies evaluated in GPS, on the paper's machine with four GPUs and a single SM each.

use super::{Measurement, one_sm};
use std::ops::Range;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::{RunRecord, run};
use tombolo_types::LineSize;

pub(super) const GPUS: u64 = 4;
/// Lines in a page with 64 KB, which is also a GPU's part of the array.
pub(super) const PAGE: u64 = 512;
/// Lines in a neighbour's part read by a GPU.
const HALO: u64 = 3;

/// Builds a program for kernels on an array with a page per GPU.
pub(super) fn over(kernels: Vec<Vec<CtaBuilder>>) -> Arc<DirectedProgram> {
    DirectedProgram::of_arrays(LineSize::B128, kernels, &[("x", 0..GPUS * PAGE)], &[])
}

/// Runs a directed program under a design.
pub(super) fn ran(
    design: &str,
    settings: &[&str],
    program: Arc<DirectedProgram>,
) -> Result<(RunRecord, Arc<MachineConfig>), String> {
    let spec = one_sm("gps-4-pcie3", design, settings, program)?;
    run(&spec).map(|record| (record, Arc::clone(&spec.machine))).map_err(|error| error.to_string())
}

/// Builds a kernel with one CTA per GPU.
pub(super) fn kernel(each: impl Fn(u64) -> CtaBuilder) -> Vec<CtaBuilder> {
    (0..GPUS).map(each).collect()
}

/// Returns a GPU's part of the array.
pub(super) fn part(gpu: u64) -> Range<u64> {
    gpu * PAGE..(gpu + 1) * PAGE
}

pub(super) fn writes(lines: Range<u64>) -> CtaBuilder {
    CtaBuilder::sharing(lines, 8, |warp, line| _ = warp.write([line]))
}

pub(super) fn reads(lines: Range<u64>) -> CtaBuilder {
    CtaBuilder::sharing(lines, 8, |warp, line| _ = warp.read([line]))
}

/// Each GPU writes its part, then reads the part with a halo from its neighbours.
fn exchange() -> Vec<Vec<CtaBuilder>> {
    let own = |gpu| part(gpu).start.saturating_sub(HALO)..(part(gpu).end + HALO).min(GPUS * PAGE);
    let reads = |gpu| CtaBuilder::new().warp(|warp| own(gpu).for_each(|line| _ = warp.read([line])));
    vec![kernel(|gpu| writes(part(gpu))), kernel(reads)]
}

/// Returns the bytes sent by all GPUs, including headers.
pub(super) fn sent(record: &RunRecord) -> u64 {
    let is_out = |name: &str| name.starts_with("gpu") && name.ends_with("out");
    record.links.iter().filter(|link| is_out(&link.name)).map(|link| link.bytes).sum()
}

/// Returns the link bytes for a remote line read: the request, and the line with its header.
pub(super) fn read_from_afar(machine: &MachineConfig) -> u64 {
    let messages = &machine.messages;
    messages.request_bytes.0 + messages.header_bytes.0 + machine.line.bytes()
}

/// Data written by each GPU is copied to all remote GPUs, in packets with a full payload each.
pub(super) fn copies() -> Result<Measurement, String> {
    let (record, machine) =
        ran("memcpy", &[], over(vec![kernel(|gpu| writes(part(gpu))), kernel(|gpu| reads(part(gpu)))]))?;
    let payload = machine.copy.payload.0;
    let packets = GPUS * (GPUS - 1) * PAGE * machine.line.bytes() / payload;
    Ok(Measurement::bytes(packets * (payload + machine.messages.header_bytes.0), sent(&record)))
}

/// Copies of halos: each GPU has two neighbours, except the first and the last.
pub(super) fn halos() -> Result<Measurement, String> {
    let (record, machine) = ran("memcpy-needed", &[], over(exchange()))?;
    let copied = record.copies.ok_or("it makes no copies")?.bytes;
    Ok(Measurement::bytes(2 * (GPUS - 1) * HALO * machine.line.bytes(), copied))
}

/// Two GPUs read a page in turn: the page migrates before every turn except the first.
pub(super) fn turns() -> Result<Measurement, String> {
    const TURNS: u64 = 9;
    let turn = |turn: u64| {
        kernel(
            move |gpu| {
                if gpu == turn % 2 { CtaBuilder::new().warp(|warp| _ = warp.read([0])) } else { CtaBuilder::new() }
            },
        )
    };
    let (record, machine) = ran("unified-memory", &[], over((0..TURNS).map(turn).collect()))?;
    let moved = record.paging.ok_or("no page may move")?.migrated_bytes;
    Ok(Measurement::bytes((TURNS - 1) * machine.page_bytes, moved))
}

/// Pages with advice: data read by several GPUs stays at its writer. A remote read costs a request and a reply per
/// line, and no fault.
pub(super) fn from_afar() -> Result<Measurement, String> {
    let (record, machine) = ran("unified-memory-hints", &[], over(exchange()))?;
    match record.paging.ok_or("no page may move")?.faults {
        0 => Ok(Measurement::bytes(2 * (GPUS - 1) * HALO * read_from_afar(&machine), sent(&record))),
        faults => Err(format!("{faults} faults")),
    }
}

/// The last GPU writes the first page, which the first GPU has touched first; then all GPUs read the page. Only loads
/// from remote GPUs cross.
pub(super) fn latest_writer() -> Result<Measurement, String> {
    let on = |active: u64, work: fn(Range<u64>) -> CtaBuilder| {
        kernel(move |gpu| if gpu == active { work(part(0)) } else { CtaBuilder::new() })
    };
    let kernels = vec![on(0, reads), on(GPUS - 1, writes), kernel(|_| reads(part(0)))];
    let (record, machine) = ran("remote-demand-loads", &[], over(kernels))?;
    Ok(Measurement::bytes((GPUS - 1) * PAGE * read_from_afar(&machine), sent(&record)))
}

/// The infinite-bandwidth bound for memcpy sends no bytes.
pub(super) fn bound() -> Result<Measurement, String> {
    let all = || kernel(|_| reads(0..GPUS * PAGE));
    let (record, _) = ran("infinite-bandwidth", &[], over(vec![kernel(|gpu| writes(part(gpu))), all()]))?;
    Ok(Measurement::bytes(0, sent(&record)))
}
