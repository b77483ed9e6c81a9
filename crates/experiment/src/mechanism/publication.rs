//! Pages published by GPS to their subscribers, on its machine with four GPUs and one SM each.

use super::Measurement;
use super::sharing::{GPUS, PAGE, kernel, over, part, ran, read_from_afar, reads, sent, writes};
use std::ops::Range;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::RunRecord;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_system::publication::PublicationRecord;
use tombolo_types::stream::AtomicResult;
use tombolo_types::{Mask, Order, Scope, Semantics};

/// Memory order for plain accesses.
const RELAXED: Order = Order { semantics: Semantics::Relaxed, scope: Scope::Gpu };
/// A single slice keeps stores to the queue in order, and the posted-store limit leaves room for all stores in flight.
const IN_ORDER: [&str; 2] = ["l2.slices=1", "l2.posted_stores=16384"];
/// Lines stored by a program: below the watermark, and not a fraction of a page.
const LINES: u64 = 300;

type RunOutcome = Result<(RunRecord, Arc<MachineConfig>), String>;

/// Builds a kernel in which only GPU `gpu` has work.
fn only(gpu: u64, cta: impl Fn() -> CtaBuilder) -> Vec<CtaBuilder> {
    kernel(|other| if other == gpu { cta() } else { CtaBuilder::new() })
}

/// Builds a warp that stores lines in order.
fn stores(lines: Range<u64>) -> CtaBuilder {
    CtaBuilder::new().warp(|warp| lines.for_each(|line| _ = warp.write([line])))
}

fn to_all(settings: &[&str], cta: impl Fn() -> CtaBuilder) -> RunOutcome {
    ran("gps-all-to-all", settings, over(vec![only(0, cta)]))
}

fn published(record: &RunRecord) -> Result<&PublicationRecord, String> {
    record.publication.as_ref().ok_or_else(|| "nothing is published".to_owned())
}

/// Returns the bytes in a packet that carries a line.
fn packet(machine: &MachineConfig) -> u64 {
    machine.messages.header_bytes.0 + machine.line.bytes()
}

/// Lines stored by one GPU cross once to each remote GPU.
pub(super) fn lines_cross_once() -> Result<Measurement, String> {
    let (record, machine) = to_all(&[], || stores(0..LINES))?;
    Ok(Measurement::bytes(LINES * (GPUS - 1) * packet(&machine), sent(&record)))
}

/// Four parts from a line are coalesced in a single entry: three in four stores hit.
pub(super) fn parts_join() -> Result<Measurement, String> {
    const PARTS: u64 = 4;
    let quarters = || {
        CtaBuilder::new().warp(|warp| {
            for (line, part) in (0..LINES).flat_map(|line| (0..PARTS).map(move |part| (line, part))) {
                warp.store([line], Mask(0xff << (8 * part)), RELAXED);
            }
        })
    };
    let (record, _) = to_all(&[], quarters)?;
    Ok(Measurement::count(LINES * (PARTS - 1), published(&record)?.queue_hits))
}

/// Two sweeps over exactly the watermark's number of lines: from the last store in the first sweep on, each store
/// drains the oldest entry.
pub(super) fn watermark() -> Result<Measurement, String> {
    /// Watermark of the machine's queue: the capacity minus one.
    const WATERMARK: u64 = 511;
    let sweep = |warp: &mut WarpBuilder<'_>| (0..WATERMARK).for_each(|line| _ = warp.write([line]));
    let (record, _) = to_all(&IN_ORDER, || CtaBuilder::new().warp(|warp| (0..2).for_each(|_| sweep(warp))))?;
    let found = published(&record)?;
    match found.queue_hits {
        // The first line to drain is the next line to be stored.
        0 => Ok(Measurement::count(2 * WATERMARK - (WATERMARK - 1), found.drains.watermark)),
        hits => Err(format!("{hits} stores hit")),
    }
}

/// A release with GPU scope drains nothing: stores in the second sweep hit the entries from the first sweep.
pub(super) fn release_inside() -> Result<Measurement, String> {
    let inside = Order { semantics: Semantics::AcquireRelease, scope: Scope::Gpu };
    let sweeps = || {
        CtaBuilder::new().warp(|warp| {
            for _ in 0..2 {
                (0..LINES).for_each(|line| _ = warp.write([line]));
                warp.fence(inside);
            }
        })
    };
    let (record, _) = to_all(&[], sweeps)?;
    Ok(Measurement::count(LINES, published(&record)?.queue_hits))
}

/// Atomics on one line cross separately, and are never coalesced.
pub(super) fn atomics() -> Result<Measurement, String> {
    const ATOMICS: u64 = 20;
    let cta = || {
        CtaBuilder::new().warp(|warp| (0..ATOMICS).for_each(|_| _ = warp.atomic([7], RELAXED, AtomicResult::Discarded)))
    };
    let (record, _) = to_all(&[], cta)?;
    let found = published(&record)?;
    match (found.queue_hits, found.published_lines) {
        (0, 0) => Ok(Measurement::count(ATOMICS, found.tlb.accesses)),
        (hits, lines) => Err(format!("{hits} hits, {lines} lines")),
    }
}

/// Two iterations: each GPU writes its own page, then reads the next GPU's page.
fn ring() -> Arc<DirectedProgram> {
    let next = |gpu: u64| part((gpu + 1) % GPUS);
    over(vec![kernel(|gpu| writes(part(gpu))), kernel(|gpu| reads(next(gpu)))]).with_launch_order(&[0, 1, 0, 1])
}

/// In the profiling iteration all GPUs receive each store; in the next iteration only GPUs that read the page.
pub(super) fn subscribers() -> Result<Measurement, String> {
    let (record, _) = ran("gps", &[], ring())?;
    Ok(Measurement::count(GPUS * PAGE * (GPUS - 1) + GPUS * PAGE, published(&record)?.published_lines))
}

/// Bytes published in the profiling iteration without any reader: two copies in three.
pub(super) fn useless() -> Result<Measurement, String> {
    let (record, machine) = ran("gps", &[], ring())?;
    Ok(Measurement::bytes(GPUS * PAGE * (GPUS - 2) * machine.line.bytes(), published(&record)?.useless_bytes))
}

/// Pages accessed by a single GPU are published in the profiling iteration only.
pub(super) fn conventional() -> Result<Measurement, String> {
    let (record, _) = ran("gps", &[], over(vec![kernel(|gpu| writes(part(gpu)))]).with_launch_order(&[0, 0, 0]))?;
    Ok(Measurement::count(GPUS * PAGE * (GPUS - 1), published(&record)?.published_lines))
}

/// Loads by a GPU without a subscription cost a request and a reply per line.
pub(super) fn without_replica() -> Result<Measurement, String> {
    let first = || {
        kernel(|gpu| match gpu {
            0 => writes(part(0)),
            1 => reads(part(0)),
            _ => CtaBuilder::new(),
        })
    };
    let run = |launches: &[u32]| {
        let late = only(3, || CtaBuilder::new().warp(|warp| (0..LINES).for_each(|line| _ = warp.read([line]))));
        ran("gps", &[], over(vec![first(), late]).with_launch_order(launches))
    };
    let ((before, _), (after, machine)) = (run(&[0, 0])?, run(&[0, 0, 1])?);
    Ok(Measurement::bytes(LINES * read_from_afar(&machine), sent(&after) - sent(&before)))
}

/// A store with system scope leaves one copy: later stores from remote GPUs cross to this copy only.
pub(super) fn collapse() -> Result<Measurement, String> {
    let system = Order { semantics: Semantics::Relaxed, scope: Scope::Sys };
    let store = only(2, || CtaBuilder::new().warp(|warp| _ = warp.store([9], Mask(1), system)));
    let (record, machine) = ran("gps-all-to-all", &[], over(vec![store, only(1, || stores(0..LINES))]))?;
    match published(&record)?.published_lines {
        0 => {
            let out = record.links.iter().find(|link| link.name == "gpu1.out").map_or(0, |link| link.bytes);
            Ok(Measurement::bytes(LINES * packet(&machine), out))
        }
        lines => Err(format!("{lines} lines are published")),
    }
}
