//! Mechanisms: directed programs with a closed-form prediction for bytes, invalidations or evictions.
//!
//! CTA `i` among sixteen runs on module `i` of HMG's machine, with one SM per module. The first kernel places pages by
//! touching them. Boundaries, host-memory blocks and sharing policies use machines of their own. A claim names a
//! mechanism; this crate's tests check every mechanism against its prediction.

mod blocks;
mod boundaries;
mod cache_partition;
mod interleaving;
mod lane_reversal;
mod publication;
mod sharing;

use std::sync::Arc;
use tombolo_machine::{Description, MachineConfig};
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_system::{RunRecord, RunSpec, run};
use tombolo_types::{Mask, Order, Scope};

/// Measured and predicted value of a directed program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// Closed-form prediction; `None` if the claim itself states the expected value.
    pub predicted: Option<f64>,
    /// Value from the simulation.
    pub measured: f64,
    /// Unit for both values; empty for a count or a ratio.
    pub unit: &'static str,
}

impl Measurement {
    fn count(predicted: u64, measured: u64) -> Measurement {
        Measurement { predicted: Some(predicted as f64), measured: measured as f64, unit: "" }
    }

    fn bytes(predicted: u64, measured: u64) -> Measurement {
        Measurement { unit: "B", ..Measurement::count(predicted, measured) }
    }
}

/// A directed program with its prediction.
pub struct Mechanism {
    /// Name used by claims.
    pub name: &'static str,
    measure: fn() -> Result<Measurement, String>,
}

impl Mechanism {
    /// Runs the program.
    ///
    /// # Errors
    /// Returns an error if the run gives no result, due to a broken simulator.
    pub fn measure(&self) -> Result<Measurement, String> {
        (self.measure)()
    }
}

/// Builds a directed program's run under a design with settings, on a machine with one SM per module.
fn one_sm(machine: &str, design: &str, settings: &[&str], program: Arc<DirectedProgram>) -> Result<RunSpec, String> {
    let mut machine = tombolo_machine::machine(machine).map_err(|error| error.to_string())?;
    let mut designs = [tombolo_design::design(design).map_err(|error| error.to_string())?];
    let settings = [&["topology.sms_per_module=1"], settings].concat();
    tombolo_design::apply(&settings, &mut machine, &mut designs).map_err(|error| error.to_string())?;
    let machine: Arc<MachineConfig> = machine.check().map(Arc::new).map_err(|error| error.to_string())?;
    let [design] = designs;
    let design = design.check().map_err(|error| error.to_string())?;
    Ok(RunSpec { machine, design, program, pages: None, threads: 1 })
}

macro_rules! mechanisms {
    ($($name:literal: $measured:expr,)+) => {
        &[$(Mechanism { name: $name, measure: || $measured }),+]
    };
}

/// Returns every mechanism.
pub fn list() -> &'static [Mechanism] {
    mechanisms! {
        "shared-array-crosses-once": shared_array("hmg", 1),
        "shared-array-crosses-once-in-software": shared_array("software-hierarchical", 1),
        "shared-array-crosses-once-a-module": shared_array("nhcc", 4),
        "shared-array-crosses-once-a-module-in-software": shared_array("software-flat", 4),
        "flat-store-invalidates-every-sharer": flat_store(),
        "system-home-invalidates-modules-and-gpus": system_home(),
        "gpu-homes-forward-to-their-modules": gpu_homes(),
        "false-sharing-invalidates-once-a-write": false_sharing("hmg", WRITES - 1),
        "false-sharing-invalidates-once-a-write-flat": false_sharing("nhcc", WRITES - 1),
        "software-never-invalidates-for-a-store": false_sharing("software-hierarchical", 0),
        "false-sharing-time": false_sharing_time(),
        "gpu-release-stays-on-its-gpu": release("hmg", Scope::Gpu, 0),
        "gpu-release-stays-on-its-gpu-in-software": release("software-hierarchical", Scope::Gpu, 0),
        "sys-release-asks-every-module-once": release("hmg", Scope::Sys, 1),
        "flat-release-asks-every-module-once": release("nhcc", Scope::Gpu, 1),
        "directory-holds-four-lines-an-entry": directory(64, 0),
        "directory-overflows-by-one": directory(68, 1),
        "directory-overflows-beyond": directory(80, 4),
        "directory-keeps-data-between-kernels": kernels("hmg", 1),
        "flat-directory-keeps-data-between-kernels": kernels("nhcc", 1),
        "ideal-keeps-data-between-kernels": kernels("ideal", 1),
        "software-fetches-again-each-kernel": kernels("software-hierarchical", 3),
        "flat-software-fetches-again-each-kernel": kernels("software-flat", 3),
        "baseline-fetches-again-each-kernel": kernels("no-remote-caching", 3),
        "own-ranges-are-released-once": boundaries::own_ranges(),
        "a-producer-is-flushed-once": boundaries::producer(),
        "halos-invalidate-every-second-step": boundaries::halos("cpelide"),
        "halos-invalidate-nothing-where-homes-are-known": boundaries::halos("cpelide-home-aware"),
        "wrong-labels-are-seen": boundaries::wrong_labels(),
        "a-block-crosses-once": blocks::one_line_of_each("umh", 4096),
        "zero-copy-moves-lines": blocks::one_line_of_each("zero-copy", 2 * 64),
        "a-clean-block-crosses-for-all-but-one": blocks::clean_block(true),
        "a-clean-block-crosses-for-all-without-peers": blocks::clean_block(false),
        "a-dirty-block-comes-from-its-owner": blocks::dirty_block(),
        "a-lone-writer-sends-nothing-home": blocks::lone_writer("merge-shared", 0),
        "a-lone-writer-sends-all-home-where-all-is-flushed": blocks::lone_writer("flush-all", 3),
        "blocks-are-fetched-to-be-written": blocks::write_allocate(),
        "words-of-one-line-are-merged": blocks::words_of_one_line(),
        "groups-in-turn-share-blocks": blocks::groups_in_turn(1),
        "neighbours-of-a-turn-do-not": blocks::groups_in_turn(4),
        "one-value-brings-one-block": blocks::one_value(),
        "one-value-takes-as-long-whatever-was-written": blocks::time_of_one_value(),
        "one-value-brings-the-bytes-of-every-writer": blocks::one_value_of_all(),
        "a-store-of-the-host-takes-the-block-from-all": blocks::line_stored_by_the_host(),
        "a-stream-of-blocks-costs-a-request-each": blocks::requests_of_a_stream(),
        "even-ranges-leave-groups-in-turn-remote": blocks::even_ranges(),
        "unified-memory-moves-what-no-kernel-touches": blocks::untouched_array("unified-memory-cuda6", 2),
        "memcpy-moves-nothing-that-no-kernel-touches": blocks::untouched_array("memcpy-host", 0),
        "copies-go-to-all-others": sharing::copies(),
        "needed-copies-are-halos": sharing::halos(),
        "a-page-moves-at-every-turn": sharing::turns(),
        "advised-pages-are-read-from-afar": sharing::from_afar(),
        "loads-find-the-latest-writer": sharing::latest_writer(),
        "the-bound-sends-nothing": sharing::bound(),
        "published-lines-cross-once": publication::lines_cross_once(),
        "parts-of-a-line-join": publication::parts_join(),
        "the-watermark-drains-the-oldest": publication::watermark(),
        "a-release-inside-drains-nothing": publication::release_inside(),
        "published-atomics-never-join": publication::atomics(),
        "who-accesses-subscribes": publication::subscribers(),
        "copies-that-nobody-reads": publication::useless(),
        "a-page-of-one-gpu-is-conventional": publication::conventional(),
        "loads-without-a-replica-cross": publication::without_replica(),
        "a-store-of-the-system-collapses": publication::collapse(),
        "interleaved-lines-are-remote": interleaving::remote_share(),
        "one-receiver-fifteen-lanes": lane_reversal::lanes_of_one_receiver(),
        "one-receiver-speed-up": lane_reversal::gain_of_one_receiver(),
        "exchange-gains-nothing": lane_reversal::gain_of_an_exchange(),
        "just-over-half-fits-when-ways-have-shifted": cache_partition::crossing_after_ways_have_shifted(),
        "just-over-half-crosses-under-static-halves": cache_partition::crossing_under_static_halves(),
        "local-program-ends-with-local-ways": cache_partition::ways_of_a_local_program(),
    }
}

/// Writes issued by the two modules with false sharing in a region.
const WRITES: u64 = 10;
/// Lines in the shared arrays: any number well below the cache capacity.
const LINES: u64 = 64;

fn machine(settings: &[&str]) -> Result<Arc<MachineConfig>, String> {
    let mut machine = tombolo_machine::machine("hmg-4x4").map_err(|error| error.to_string())?;
    // Whole-line sectors let a line cross in one message.
    let all = [&["topology.sms_per_module=1", "l1.sector_bytes=128"], settings].concat();
    let none: &mut [Description<_>] = &mut [];
    tombolo_design::apply(&all, &mut machine, none).map_err(|error| error.to_string())?;
    machine.check().map(Arc::new).map_err(|error| error.to_string())
}

fn simulate(machine: &Arc<MachineConfig>, design: &str, kernels: Vec<Vec<CtaBuilder>>) -> Result<RunRecord, String> {
    let design = tombolo_design::design(design).and_then(|design| design.check()).map_err(|error| error.to_string())?;
    let program = DirectedProgram::new(kernels);
    run(&RunSpec { machine: Arc::clone(machine), design, program, pages: None, threads: 1 })
        .map_err(|error| error.to_string())
}

/// Builds a kernel with sixteen CTAs; the CTAs in `active` run one warp each, and the rest are empty.
fn kernel(active: impl IntoIterator<Item = usize>, write: impl Fn(usize, &mut WarpBuilder<'_>)) -> Vec<CtaBuilder> {
    let mut ctas = vec![CtaBuilder::new(); 16];
    for module in active {
        ctas[module] = CtaBuilder::new().warp(|warp| write(module, warp));
    }
    ctas
}

fn reads(active: impl IntoIterator<Item = usize>, lines: std::ops::Range<u64>) -> Vec<CtaBuilder> {
    kernel(active, |_, warp| lines.clone().for_each(|line| _ = warp.read([line])))
}

/// Returns the memory bytes received by GPU 1.
fn received(record: &RunRecord) -> u64 {
    record.links.iter().find(|link| link.name == "gpu1.in").map_or(0, |link| link.data_bytes)
}

fn counter(record: &RunRecord, name: &str) -> u64 {
    record.coherence.get(name).copied().unwrap_or(0)
}

/// An array on GPU 0 is read by the four modules of GPU 1, and crosses `copies` times.
fn shared_array(design: &str, copies: u64) -> Result<Measurement, String> {
    let machine = machine(&[])?;
    let record = simulate(&machine, design, vec![reads([0], 0..LINES), reads(4..8, 0..LINES)])?;
    Ok(Measurement::bytes(copies * LINES * machine.line.bytes(), received(&record)))
}

/// A store to a line that all sixteen modules have read.
fn shared_store(design: &str) -> Result<RunRecord, String> {
    let store = kernel([0], |_, warp| _ = warp.write([0]));
    simulate(&machine(&[])?, design, vec![reads([0], 0..1), reads(0..16, 0..1), store])
}

/// The flat home invalidates every module except itself.
fn flat_store() -> Result<Measurement, String> {
    Ok(Measurement::count(15, counter(&shared_store("nhcc")?, "invalidations_by_store")))
}

/// The system home sends invalidations to M - 1 modules and N - 1 GPUs.
fn system_home() -> Result<Measurement, String> {
    Ok(Measurement::count(3 + 3, counter(&shared_store("hmg")?, "invalidations_by_store")))
}

/// Each of the N - 1 GPU homes sends invalidations to M - 1 modules.
fn gpu_homes() -> Result<Measurement, String> {
    Ok(Measurement::count(3 * 3, counter(&shared_store("hmg")?, "invalidations_forwarded")))
}

/// Two modules alternate reads and writes within a region, each to its own line: all writes except the first
/// invalidate.
fn false_sharing(design: &str, predicted: u64) -> Result<Measurement, String> {
    let mut kernels = vec![reads([0], 0..8)];
    kernels.extend((0..WRITES as usize).map(|turn| {
        kernel([1 + turn % 2], |module, warp| _ = warp.read([3 + module as u64]).write([3 + module as u64]))
    }));
    let record = simulate(&machine(&[])?, design, kernels)?;
    Ok(Measurement::count(predicted, counter(&record, "invalidations_by_store")))
}

/// Time under HMG relative to the time under hierarchical software coherence. A module repeatedly reads one line in
/// each region. The lines exceed the L1 and fit in the L2. Meanwhile, a module on a different GPU writes the adjacent
/// line.
fn false_sharing_time() -> Result<Measurement, String> {
    /// Number of regions: twice the lines in an L1 with 128 KB.
    const REGIONS: u64 = 2048;
    /// Rounds: after the first, software coherence reads from the L2.
    const ROUNDS: u64 = 4;
    let machine = machine(&[])?;
    let shared = || {
        kernel([4, 8], |module, warp| {
            for region in (0..ROUNDS).flat_map(|_| 0..REGIONS) {
                _ = if module == 4 { warp.read([4 * region]) } else { warp.write([4 * region + 1]).compute(200) };
            }
        })
    };
    let time = |design| Ok::<f64, String>(simulate(&machine, design, vec![reads([0], 0..1), shared()])?.time_s);
    let ratio = time("hmg")? / time("software-hierarchical")?;
    Ok(Measurement { predicted: None, measured: ratio, unit: "" })
}

/// A release after stores to local data sends `rounds` drain requests to each of the twelve modules on remote GPUs, and
/// each module replies. No further traffic crosses.
fn release(design: &str, scope: Scope, rounds: u64) -> Result<Measurement, String> {
    let machine = machine(&[])?;
    let release = kernel([1], |_, warp| {
        (0..LINES / 2).for_each(|line| _ = warp.write([line]));
        warp.store([LINES / 2], Mask(1), Order::release(scope));
    });
    let record = simulate(&machine, design, vec![reads([0], 0..LINES), release])?;
    let message = machine.messages.control_bytes.0.next_multiple_of(machine.messages.flit_bytes);
    Ok(Measurement::bytes(rounds * 12 * 2 * message, record.inter_gpu_bytes))
}

/// A directory with sixteen entries replaces one entry for each four lines beyond sixty-four.
fn directory(lines: u64, predicted: u64) -> Result<Measurement, String> {
    let machine = machine(&["l2.slices=1", "directory.entries=16", "directory.ways=16"])?;
    let record = simulate(&machine, "hmg", vec![reads([0], 0..lines), reads([1], 0..lines)])?;
    // Each entry has a single sharer, which invalidates four lines.
    let told = counter(&record, "invalidations_by_eviction");
    let dropped = counter(&record, "lines_invalidated_by_eviction");
    if (told, dropped) != (predicted, 4 * predicted) {
        return Err(format!("{told} sharers were told of {predicted} evictions and dropped {dropped} lines"));
    }
    Ok(Measurement::count(predicted, counter(&record, "directory_evictions")))
}

/// An array on GPU 0 is read by three kernels on GPU 1, and crosses `fetched` times.
fn kernels(design: &str, fetched: u64) -> Result<Measurement, String> {
    let machine = machine(&[])?;
    let mut kernels = vec![reads([0], 0..LINES)];
    kernels.extend((0..3).map(|_| reads([4], 0..LINES)));
    let record = simulate(&machine, design, kernels)?;
    Ok(Measurement::bytes(fetched * LINES * machine.line.bytes(), received(&record)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prediction_comes_out_exactly() {
        for mechanism in list() {
            let found = mechanism.measure().unwrap_or_else(|error| panic!("{}: {error}", mechanism.name));
            if let Some(predicted) = found.predicted {
                assert_eq!(found.measured, predicted, "{}", mechanism.name);
            }
        }
    }

    #[test]
    fn lanes_that_turn_gain_what_one_way_lacks() {
        assert!((1.7..=15.0 / 8.0).contains(&lane_reversal::gain_of_one_receiver().unwrap().measured));
        assert!((0.97..1.03).contains(&lane_reversal::gain_of_an_exchange().unwrap().measured));
    }

    #[test]
    fn just_over_half_of_an_l2_crosses_again_and_again_under_static_halves() {
        assert!(cache_partition::crossing_under_static_halves().unwrap().measured > 0.5);
    }

    #[test]
    fn a_value_that_the_host_loads_takes_no_longer_where_more_was_written() {
        assert!((0.9..1.1).contains(&blocks::time_of_one_value().unwrap().measured));
    }

    #[test]
    fn false_sharing_costs_time_under_a_directory() {
        assert!(false_sharing_time().unwrap().measured > 1.0);
    }
}
