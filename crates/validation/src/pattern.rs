//! Divergent accesses, contended words and lines, and dependent arithmetic, corresponding to `gather.cuh`,
//! `bandwidth.cuh` and `arithmetic.cuh` in `data/h100`: directed programs on a single GPU, with all translations
//! present before the start.

use crate::estimate::EstimateError;
use std::collections::BTreeMap;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;
use tombolo_machine::machine::TlbStart;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_system::{RunRecord, RunSpec, run};
use tombolo_types::stream::{AtomicResult, ComputeClass};
use tombolo_types::{Mask, Order, Scope};

/// Lanes per warp: both GPUs are NVIDIA's.
const LANES: u64 = 32;
/// Size in bytes of the range covered by L1 gathers. Source: `RANGE` in `gather.cuh`.
const RANGE: u64 = 32 << 10;
/// Number of loads with distinct addresses, before the sequence repeats. Source: `LOADS` in `gather.cuh`.
const LOADS: u64 = 16;
/// Warps in the CTA for gathers. Source: rows with `warps=32`.
const WARPS: u64 = 32;
/// Warps per SM that add to a shared word. Assumed, fewer than the 64 measured: fewer already keep its slice busy.
const ADDERS: u64 = 8;

/// Lines in a broadcast, and a warp's loads in flight. Source: the kernel `broadcast` in `gather.cuh`.
const SHARED_LINES: u64 = 256;
const TOGETHER: u64 = 8;

/// Accessed words or lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Loads that hit in an L1: a word on each of 32 lines, all in different banks.
    Lines,
    /// Loads that hit in an L1: a word on each of 32 lines, all in a single bank.
    OneBank,
    /// Loads that hit in an L1: 32 random words within 32 KiB.
    RandomWords,
    /// Strong loads by an SM that hit the L2: words on `lines` lines, the same for all warps; either in all banks, or in
    /// the line's first banks.
    L2Lines {
        /// Lines per load.
        lines: u64,
        /// True if the lanes' words have different banks.
        spread: bool,
    },
    /// Strong loads by an SM that hit the L2: 16 loads per warp in flight, each of a whole line, no line twice.
    L2Words,
    /// Strong loads by an SM that hit the L2: four loads per warp in flight, each of four whole lines, no line twice.
    L2Vectors,
    /// Single loads by four warps on an SM: each warp loads a different sector of a shared line, from memory.
    Sectors,
    /// Four loads by a warp: each load reads a different sector from each of 32 lines, from memory.
    Structs,
    /// Four loads by a warp, as [`Pattern::Structs`], from the L2: time beyond a load of a single sector.
    StructsFromL2,
    /// Atomics without a result from all SMs: a single shared word.
    OneWord,
    /// Loads by a warp on every SM, eight at a time: 256 shared lines, from memory.
    Broadcast,
    /// A repetition of the broadcast, served by the L2.
    BroadcastAgain,
    /// No access: arithmetic by a single warp, each instruction dependent on the previous result.
    Dependent(ComputeClass),
}

/// Runs a pattern with the given length; returns the duration in seconds, and the number of instructions or first
/// touches. For gathers, atomics and arithmetic the length counts the instructions per warp; first touches and
/// broadcasts have the fixed amount 1.
///
/// # Errors
/// Errors from the run.
pub fn measure_pattern(
    pattern: Pattern,
    length: u64,
    machine: &MachineConfig,
    design: &DesignConfig,
) -> Result<(f64, f64), EstimateError> {
    let mut machine = machine.clone();
    machine.tlb.start = TlbStart::Warm;
    let sms = machine.topology.sms() as u64;
    let (kernels, amount) = match pattern {
        Pattern::Lines | Pattern::OneBank | Pattern::RandomWords => {
            let each = |warp: &mut WarpBuilder<'_>| {
                (0..length).for_each(|load| _ = warp.load_parts(words(pattern, load % LOADS, &machine)));
                _ = warp.use_result(1);
            };
            let cta = (0..WARPS).fold(CtaBuilder::new(), |cta, _| cta.warp(each));
            (vec![vec![cta]], WARPS * length)
        }
        Pattern::L2Lines { .. } => {
            let order = Order::relaxed(Scope::Gpu);
            let each = |warp: &mut WarpBuilder<'_>| {
                for load in 0..length * LOADS {
                    _ = warp.load_parts_in(words(pattern, load % LOADS, &machine), order);
                    if (load + 1) % LOADS == 0 {
                        (1..=LOADS).rev().for_each(|distance| _ = warp.use_result(distance as u8));
                    }
                }
            };
            let cta = (0..WARPS).fold(CtaBuilder::new(), |cta, _| cta.warp(each));
            (vec![vec![cta.clone()], vec![cta]], WARPS * length * LOADS)
        }
        Pattern::L2Words | Pattern::L2Vectors => {
            let order = Order::relaxed(Scope::Gpu);
            let (loads, lines) = if pattern == Pattern::L2Words { (LOADS, 1) } else { (4, 4) };
            let warp = |number: u64| {
                move |warp: &mut WarpBuilder<'_>| {
                    for round in 0..length {
                        for load in 0..loads {
                            let first = if lines == 1 {
                                ((number * length + round) * loads + load) * 4099 % (16 << 20 >> 7)
                            } else {
                                (((round * loads + load) * WARPS) + number) * lines
                            };
                            _ = warp.load_part(first..first + lines, Mask::ALL, order);
                        }
                        (1..=loads).rev().for_each(|distance| _ = warp.use_result(distance as u8));
                    }
                }
            };
            let cta = (0..WARPS).fold(CtaBuilder::new(), |cta, number| cta.warp(warp(number)));
            (vec![vec![cta.clone()], vec![cta]], WARPS * length * loads * lines)
        }
        Pattern::Sectors => {
            let sector = |index: u64| move |warp: &mut WarpBuilder<'_>| _ = warp.read_part([0], self::sector(index));
            (vec![vec![(0..4).fold(CtaBuilder::new(), |cta, index| cta.warp(sector(index)))]], 1)
        }
        Pattern::Structs => {
            let loads = |warp: &mut WarpBuilder<'_>| {
                (0..4).for_each(|index| _ = warp.load_part(0..LANES, sector(index), Order::WEAK));
                (1..=4).for_each(|distance| _ = warp.use_result(distance));
            };
            (vec![vec![CtaBuilder::new().warp(loads)]], 1)
        }
        Pattern::StructsFromL2 => {
            let struct_loads = |warp: &mut WarpBuilder<'_>| {
                (0..4).for_each(|index| _ = warp.load_part(0..LANES, sector(index), Order::WEAK));
                (1..=4).for_each(|distance| _ = warp.use_result(distance));
            };
            (vec![vec![CtaBuilder::new().warp(struct_loads)]; 2], 1)
        }
        Pattern::OneWord => {
            let add = |warp: &mut WarpBuilder<'_>| {
                let order = Order::relaxed(Scope::Gpu);
                (0..length).for_each(|_| _ = warp.atomic([0], order, AtomicResult::Discarded));
            };
            let cta = (0..ADDERS).fold(CtaBuilder::new(), |cta, _| cta.warp(add));
            (vec![vec![cta; sms as usize]], sms * ADDERS * length)
        }
        Pattern::Broadcast => (vec![broadcast(sms)], 1),
        Pattern::BroadcastAgain => (vec![broadcast(sms); 2], 1),
        Pattern::Dependent(class) => {
            let count = u16::try_from(length).expect("lengths of chains are short");
            (
                vec![vec![
                    CtaBuilder::new().warp(|warp| _ = warp.chains(class, count, 1).chains(ComputeClass::Other, 1, 1)),
                ]],
                length,
            )
        }
    };
    let machine = Arc::new(machine);
    let timed = |kernels| {
        let (machine, program) = (Arc::clone(&machine), DirectedProgram::of_lines(machine.line, kernels));
        run(&RunSpec { machine, design: design.clone(), program, pages: None, threads: 1 })
    };
    let last_kernel = |record: &RunRecord| record.kernels.last().map_or(0.0, |last| last.end_s - last.start_s);
    let record = timed(kernels)?;
    let time_s = match pattern {
        Pattern::Broadcast
        | Pattern::BroadcastAgain
        | Pattern::L2Lines { .. }
        | Pattern::L2Words
        | Pattern::L2Vectors => last_kernel(&record),
        Pattern::StructsFromL2 => {
            let one = CtaBuilder::new().warp(|warp| _ = warp.read_part([0], sector(0)));
            last_kernel(&record) - last_kernel(&timed(vec![vec![one]; 2])?)
        }
        // Measured inside a kernel: kernel start and end are excluded.
        Pattern::Sectors | Pattern::Structs => {
            record.gpus[0].busy_s - timed(vec![vec![CtaBuilder::new().warp(|_| ())]])?.gpus[0].busy_s
        }
        _ => record.gpus[0].busy_s,
    };
    Ok((time_s, amount as f64))
}

/// A kernel with a shared set of lines loaded by every SM, with a warp per SM.
fn broadcast(sms: u64) -> Vec<CtaBuilder> {
    let round = |warp: &mut WarpBuilder<'_>, first: u64| {
        (first..first + TOGETHER).for_each(|line| _ = warp.load([line], Order::WEAK));
        (1..=TOGETHER).for_each(|distance| _ = warp.use_result(distance as u8));
    };
    let warp =
        |warp: &mut WarpBuilder<'_>| (0..SHARED_LINES).step_by(TOGETHER as usize).for_each(|line| round(warp, line));
    vec![CtaBuilder::new().warp(warp); sms as usize]
}

/// A quarter of a line.
fn sector(index: u64) -> Mask {
    Mask(0xff << (8 * index))
}

/// Lines that a load's lanes touch, with the touched words.
fn words(pattern: Pattern, load: u64, machine: &MachineConfig) -> Vec<(u64, Mask)> {
    let line = machine.line.bytes();
    let address = |lane: u64| match pattern {
        Pattern::Lines => (lane * line + load * line + lane * 4) % RANGE,
        Pattern::L2Lines { lines, spread } => {
            let word = if spread { lane } else { lane / lines };
            ((load * lines + lane % lines) * line + word * 4) % RANGE
        }
        Pattern::RandomWords => mix(load * LANES + lane + 1) % (RANGE / 4) * 4,
        _ => (lane + load) * line % RANGE,
    };
    let mut lines = BTreeMap::new();
    for address in (0..LANES).map(address) {
        *lines.entry(address / line).or_insert(0_u32) |= 1 << (address % line / machine.line.grain());
    }
    lines.into_iter().map(|(line, mask)| (line, Mask(mask))).collect()
}

/// A pseudorandom number: the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub(crate) fn mix(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

impl Pattern {
    /// Minimum cycles per instruction or first touch: lookups and banks in the L1, or the word's slice.
    pub fn least(self, machine: &MachineConfig) -> f64 {
        let lookups = machine.l1.lookups_per_cycle;
        let looked_up = |lines: f64| lines * f64::from(lookups.denominator) / f64::from(lookups.numerator);
        match self {
            Pattern::Lines => looked_up(LANES as f64),
            Pattern::OneBank => {
                looked_up(LANES as f64).max(if machine.l1.banks.is_some() { LANES as f64 } else { 0.0 })
            }
            Pattern::RandomWords => {
                let lines: usize = (0..LOADS).map(|load| words(self, load, machine).len()).sum();
                looked_up(lines as f64 / LOADS as f64)
            }
            // At least the latency of an L2 load.
            Pattern::Sectors | Pattern::Structs => {
                let cycle = machine.sm.clock.span(1).0 as f64;
                (machine.l1.hit_latency.0 + machine.l2.hit_latency.0 + 2 * machine.crossbar.latency.0) as f64 / cycle
            }
            Pattern::OneWord => {
                f64::from(machine.l2.request_cycles.numerator) / f64::from(machine.l2.request_cycles.denominator)
            }
            // Each SM receives all bytes once at least, at the rate of the slices or the crossbar's ports, whichever is
            // lower.
            Pattern::Broadcast | Pattern::BroadcastAgain => {
                let sms = machine.topology.sms() as u64;
                let slices = f64::from(machine.l2.slices) * machine.l2.rate.0 as f64;
                let rate = slices.min(sms as f64 * machine.crossbar.rate.0 as f64);
                let bytes = sms * SHARED_LINES * machine.line.bytes();
                bytes as f64 / rate * machine.sm.clock.hz() as f64
            }
            // The first request and the last leave one after the other.
            Pattern::StructsFromL2 => looked_up(4.0 * LANES as f64 - 1.0),
            // A warp issues at most an instruction per cycle.
            Pattern::Dependent(_) | Pattern::L2Lines { .. } => 1.0,
            // A lookup's share of a cycle.
            Pattern::L2Words | Pattern::L2Vectors => looked_up(1.0),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn lines_that_all_sms_read_pass_slices_no_faster_than_their_ports_and_no_faster_cold() {
        for name in ["v100", "h100"] {
            let machine = tombolo_machine::machine(name).unwrap().check().unwrap();
            let design = tombolo_design::design(name).unwrap().check().unwrap();
            let seconds = |pattern| measure_pattern(pattern, 1, &machine, &design).unwrap().0;
            let (cold, warm) = (seconds(Pattern::Broadcast), seconds(Pattern::BroadcastAgain));
            let alone = Pattern::Broadcast.least(&machine) / machine.sm.clock.hz() as f64;
            assert!(warm >= alone, "{name}: {warm} s, the bytes alone {alone} s");
            assert!(cold >= warm, "{name}: {cold} s cold, {warm} s warm");
        }
    }

    #[test]
    fn a_load_of_the_gathers_has_the_lines_and_banks_that_it_says() {
        let machine = tombolo_machine::machine("h100").unwrap().check().unwrap();
        let banks = |pattern| {
            let found = words(pattern, 3, &machine);
            (found.len(), found.iter().fold(0, |all, (_, mask)| all | mask.0).count_ones())
        };
        assert_eq!(banks(Pattern::Lines), (32, 32));
        assert_eq!(banks(Pattern::OneBank), (32, 1));
        let (lines, banks) = banks(Pattern::RandomWords);
        assert!((24..=32).contains(&lines) && (14..=27).contains(&banks), "{lines} lines, {banks} banks");
    }
}
