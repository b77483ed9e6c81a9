//! Host-memory blocks in GPU memories, and copies between host and GPUs, on UMH's machine with four GPUs and one CU
//! each. CTA `i` among four runs on GPU `i`; a block has 64 lines.

use super::{Measurement, one_sm};
use std::ops::Range;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, HostLines, WarpBuilder};
use tombolo_system::host::BlocksRecord;
use tombolo_system::{RunRecord, run_checked};
use tombolo_types::{HostPhase, Mask, Order};

const GPUS: u64 = 4;
/// Bytes in a line.
const LINE: u64 = 64;
/// Lines in a block.
const BLOCK: u64 = 64;
const BLOCK_BYTES: u64 = BLOCK * LINE;
/// Blocks used by a program: any number.
const BLOCKS: u64 = 8;

/// Host accesses: the lines accessed before the kernel with the given number.
type HostAccesses<'a> = &'a [(u32, HostLines)];

/// Builds a kernel with four CTAs; the CTAs in `active` run one warp each, and the rest are empty.
fn kernel(active: Range<u64>, write: impl Fn(u64, &mut WarpBuilder<'_>)) -> Vec<CtaBuilder> {
    let cta =
        |gpu| if active.contains(&gpu) { CtaBuilder::new().warp(|warp| write(gpu, warp)) } else { CtaBuilder::new() };
    (0..GPUS).map(cta).collect()
}

fn reads(gpu: u64, lines: Range<u64>) -> Vec<CtaBuilder> {
    kernel(gpu..gpu + 1, |_, warp| lines.clone().for_each(|line| _ = warp.read([line])))
}

fn writes(gpu: u64, lines: Range<u64>) -> Vec<CtaBuilder> {
    kernel(gpu..gpu + 1, |_, warp| lines.clone().for_each(|line| _ = warp.write([line])))
}

/// Builds a kernel per GPU: each GPU in turn reads the given lines.
fn shared(lines: Range<u64>) -> Vec<Vec<CtaBuilder>> {
    (0..GPUS).map(|gpu| reads(gpu, lines.clone())).collect()
}

/// Runs a checked simulation and returns an error if any load returned a forbidden value.
fn simulate(
    design: &str,
    settings: &[&str],
    program: Arc<DirectedProgram>,
) -> Result<(RunRecord, Arc<MachineConfig>), String> {
    let spec = one_sm("umh-4-nvlink", design, settings, program)?;
    let record = run_checked(&spec, None).map_err(|error| error.to_string())?;
    match record.check.as_ref().map_or(0, |check| check.violations) {
        0 => Ok((record, Arc::clone(&spec.machine))),
        wrong => Err(format!("{wrong} loads returned what they must not")),
    }
}

/// Runs kernels on a single array with sixteen times [`BLOCKS`] blocks.
fn ran(
    design: &str,
    settings: &[&str],
    kernels: Vec<Vec<CtaBuilder>>,
    host: HostAccesses<'_>,
) -> Result<RunRecord, String> {
    let arrays = [("data", 0..16 * BLOCKS * BLOCK)];
    let program = DirectedProgram::of_arrays(line_size()?, kernels, &arrays, host);
    simulate(design, settings, program).map(|(record, _)| record)
}

fn line_size() -> Result<tombolo_types::LineSize, String> {
    tombolo_types::LineSize::new(LINE).ok_or_else(|| "no line has so many bytes".to_owned())
}

fn blocks(record: &RunRecord) -> Result<&BlocksRecord, String> {
    record.blocks.as_ref().ok_or_else(|| "its slices answer for lines".to_owned())
}

/// Returns the memory bytes that crossed a link.
fn data(record: &RunRecord, link: &str) -> u64 {
    record.links.iter().find(|one| one.name == link).map_or(0, |one| one.data_bytes)
}

/// Bytes from the host if a GPU reads one line in each block, in two kernels: `of_each` bytes per block.
pub(super) fn one_line_of_each(design: &str, of_each: u64) -> Result<Measurement, String> {
    let pass = || kernel(0..1, |_, warp| (0..BLOCKS).for_each(|block| _ = warp.read([block * BLOCK])));
    let record = ran(design, &[], vec![pass(), pass()], &[])?;
    Ok(Measurement::bytes(BLOCKS * of_each, data(&record, "host.out")))
}

/// Bytes from the host if all GPUs read a block in turn. Only an owner forwards the block, and gives up ownership by
/// forwarding.
pub(super) fn clean_block(peers: bool) -> Result<Measurement, String> {
    let peer_transfer = format!("coherence.peer_transfer={peers}");
    let record = ran("umh", &[&peer_transfer], shared(0..BLOCK), &[])?;
    Ok(Measurement::bytes((GPUS - u64::from(peers)) * BLOCK_BYTES, data(&record, "host.out")))
}

/// Bytes from the host if a GPU writes a block and the remaining GPUs read the block in one kernel: the block crosses
/// once, for its writer.
pub(super) fn dirty_block() -> Result<Measurement, String> {
    let others = kernel(1..GPUS, |_, warp| (0..BLOCK).for_each(|line| _ = warp.read([line])));
    let record = ran("umh", &[], vec![writes(0, 0..BLOCK), others], &[])?;
    Ok(Measurement::bytes(BLOCK_BYTES, data(&record, "host.out")))
}

/// Bytes written back to the home if a single GPU writes blocks in three kernels.
pub(super) fn lone_writer(kernel_end: &str, times: u64) -> Result<Measurement, String> {
    let kernels = (0..3).map(|_| writes(1, 0..BLOCKS * BLOCK)).collect();
    let record = ran("umh", &[&format!("coherence.kernel_end={kernel_end}")], kernels, &[])?;
    Ok(Measurement::bytes(times * BLOCKS * BLOCK_BYTES, blocks(&record)?.written_back_bytes))
}

/// Blocks fetched by kernels with writes only.
pub(super) fn write_allocate() -> Result<Measurement, String> {
    let record = ran("umh", &[], vec![writes(2, 0..BLOCKS * BLOCK)], &[])?;
    Ok(Measurement::count(BLOCKS, blocks(&record)?.fetched))
}

/// Bytes written back to the home if every GPU writes its own word in a line shared by all, and all GPUs then read the
/// line. Each word is written back once. All words but the first are written back once more, since all GPUs merge at
/// once.
pub(super) fn words_of_one_line() -> Result<Measurement, String> {
    const WORD: u64 = 4;
    let grains = LINE / u64::from(Mask::ALL.grains());
    let word = |gpu: u64| Mask(((1 << (WORD / grains)) - 1) << (gpu * WORD / grains));
    let write = kernel(0..GPUS, |gpu, warp| _ = warp.store([3], word(gpu), Order::WEAK));
    let read = kernel(0..GPUS, |_, warp| _ = warp.read([3]));
    let record = ran("umh", &[], shared(0..BLOCK).into_iter().chain([write, read]).collect(), &[])?;
    Ok(Measurement::bytes((2 * GPUS - 1) * WORD, blocks(&record)?.written_back_bytes))
}

/// Blocks fetched if groups read an array once, 1 KB each and scheduled in turn: groups adjacent in a turn share
/// blocks.
pub(super) fn groups_in_turn(chunk: u64) -> Result<Measurement, String> {
    const SHARE: u64 = BLOCK / 4;
    let group = |cta: u64| CtaBuilder::sharing(SHARE * cta..SHARE * (cta + 1), 1, |warp, line| _ = warp.read([line]));
    let kernel = (0..BLOCKS * GPUS * 4).map(group).collect();
    let record = ran("umh", &[&format!("scheduling.cta_chunk={chunk}")], vec![kernel], &[])?;
    Ok(Measurement::count(BLOCKS * GPUS * (4 / chunk), blocks(&record)?.fetched))
}

/// The host reads a line after a GPU wrote whole blocks.
fn synchronised(written: u64) -> Result<RunRecord, String> {
    ran("umh", &[], vec![writes(0, 0..written * BLOCK)], &[(1, HostLines::Read(3..4))])
}

/// Bytes written back to the home for a line read by the host, after one GPU wrote eight blocks: the bytes of the
/// line's block.
pub(super) fn one_value() -> Result<Measurement, String> {
    Ok(Measurement::bytes(BLOCK_BYTES, blocks(&synchronised(BLOCKS)?)?.written_back_bytes))
}

/// Host read time for a line if a GPU wrote sixteen times as many blocks, relative to the time with fewer blocks. The
/// ratio is about one, because stack writes in flight may delay the line.
pub(super) fn time_of_one_value() -> Result<Measurement, String> {
    let time = |written| {
        let record = synchronised(written)?;
        record.phases.map(|phases| phases.host_between_s).ok_or_else(|| "no host takes part".to_owned())
    };
    let ratio = time(16 * BLOCKS)? / time(BLOCKS)?;
    Ok(Measurement { predicted: None, measured: ratio, unit: "" })
}

/// Bytes written back to the home for a line read by the host, if every GPU wrote a quarter of the line's block: all
/// four quarters.
pub(super) fn one_value_of_all() -> Result<Measurement, String> {
    let part = BLOCK / GPUS;
    let write = kernel(0..GPUS, |gpu, warp| (gpu * part..(gpu + 1) * part).for_each(|line| _ = warp.write([line])));
    let kernels: Vec<_> = shared(0..BLOCK).into_iter().chain([write]).collect();
    let last = kernels.len() as u32;
    let record = ran("umh", &[], kernels, &[(last, HostLines::Read(3..4))])?;
    Ok(Measurement::bytes(BLOCK_BYTES, blocks(&record)?.written_back_bytes))
}

/// Blocks fetched if all GPUs read a block, the host stores to one line, and all GPUs read the block again.
pub(super) fn line_stored_by_the_host() -> Result<Measurement, String> {
    let kernels = [shared(0..BLOCK), shared(0..BLOCK)].concat();
    let record = ran("umh", &[], kernels, &[(GPUS as u32, HostLines::Written(7..8))])?;
    Ok(Measurement::count(2 * GPUS, blocks(&record)?.fetched))
}

/// Bytes in messages without data if one GPU reads blocks once: the requests.
pub(super) fn requests_of_a_stream() -> Result<Measurement, String> {
    let program = DirectedProgram::of_arrays(line_size()?, vec![reads(0, 0..BLOCKS * BLOCK)], &[], &[]);
    let (record, machine) = simulate("umh", &[], program)?;
    Ok(Measurement::bytes(BLOCKS * machine.messages.control_bytes.0, blocks(&record)?.control_bytes))
}

/// Runs a kernel on the given arrays; the host writes all lines at the start and reads them at the end.
fn copied(
    design: &str,
    settings: &[&str],
    kernel: Vec<CtaBuilder>,
    arrays: &[(&str, Range<u64>)],
) -> Result<RunRecord, String> {
    let end = arrays.iter().map(|(_, lines)| lines.end).max().unwrap_or_default();
    let all = || std::iter::once(0..end * LINE).collect();
    let setup = HostPhase { reads: Vec::new(), writes: all() };
    let results = HostPhase { reads: all(), writes: Vec::new() };
    let program = DirectedProgram::of_arrays(line_size()?, vec![kernel], arrays, &[]).with_host_phases(setup, results);
    simulate(design, settings, program).map(|(record, _)| record)
}

/// Lines received from remote GPUs if groups in turn read an array in even ranges: all except a GPU's own share.
pub(super) fn even_ranges() -> Result<Measurement, String> {
    const GROUPS: u64 = 128;
    let pages = GPUS * (64 << 10) / LINE;
    let share = pages / GROUPS;
    let group = |cta: u64| CtaBuilder::sharing(share * cta..share * (cta + 1), 1, |warp, line| _ = warp.read([line]));
    let record = copied("memcpy-host", &[], (0..GROUPS).map(group).collect(), &[("x", 0..pages)])?;
    let came: u64 = (0..GPUS).map(|gpu| data(&record, &format!("gpu{gpu}.in"))).sum();
    let copies = record.copies.ok_or("it copies nothing")?.bytes;
    Ok(Measurement::count(pages * (GPUS - 1) / GPUS, (came - copies) / LINE))
}

/// Bytes added to GPU 0's traffic by an array with 160 pages that no kernel touches.
pub(super) fn untouched_array(design: &str, transfers: u64) -> Result<Measurement, String> {
    const PAGES: u64 = 160;
    const PAGE_BYTES: u64 = 4096;
    let x = 0..PAGE_BYTES / LINE;
    let z = x.end..x.end + PAGES * PAGE_BYTES / LINE;
    let kernel = || reads(0, x.clone());
    let crossed = |arrays: &[(&str, Range<u64>)]| {
        let record = copied(design, &["page_bytes=4KB"], kernel(), arrays)?;
        Ok::<u64, String>(data(&record, "gpu0.in") + data(&record, "gpu0.out"))
    };
    let with = crossed(&[("x", x.clone()), ("z", z)])?;
    Ok(Measurement::bytes(transfers * PAGES * PAGE_BYTES, with - crossed(&[("x", x.clone())])?))
}
