//! Reads by all SMs from random and from equally spaced places in memory, corresponding to the kernels `random_reads` and
//! `strided_reads` in `data/h100/bandwidth.cuh`.

use crate::estimate::EstimateError;
use crate::pattern::mix;
use std::collections::BTreeMap;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;
use tombolo_machine::machine::TlbStart;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_system::{RunSpec, run};
use tombolo_types::{Mask, Order};

/// Lanes per warp.
const LANES: u64 = 32;
/// Warps per CTA. Source: `threads=1024` in the rows.
const WARPS: u64 = 32;
/// Loads per warp before their first use. Source: `#pragma unroll 8` in the kernels.
const UNROLLED: u64 = 8;
/// Bytes per word.
const WORD: u64 = 4;

/// Places of the reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScatteredReads {
    /// Random granules: `lanes` lanes in a warp read the words of a granule.
    Random {
        /// Memory to read from, in MiB: a power of two.
        mib: u64,
        /// Bytes per granule.
        granule: u64,
        /// Lanes per granule.
        lanes: u64,
    },
    /// A word by each lane, all at one distance.
    Strided {
        /// Distance in bytes.
        stride: u64,
    },
}

impl ScatteredReads {
    /// Number of CTAs. Source: `ctas` in the rows: two per SM on an H100 for random reads.
    fn ctas(self, sms: u64) -> u64 {
        match self {
            ScatteredReads::Random { .. } => 2 * sms,
            ScatteredReads::Strided { .. } => 128,
        }
    }

    /// Bytes that a load by a warp counts for: granules, or sectors.
    fn bytes(self) -> u64 {
        match self {
            ScatteredReads::Random { granule, lanes, .. } => LANES / lanes * granule,
            ScatteredReads::Strided { .. } => LANES * 32,
        }
    }

    /// Address that a lane of a thread block reads in load `index` of `loads`.
    fn address(self, thread: u64, (index, loads): (u64, u64), threads: u64) -> u64 {
        match self {
            ScatteredReads::Random { mib, granule, lanes } => {
                let number = mix(thread / lanes * loads + index + 1) % ((mib << 20) / granule);
                number * granule + thread % lanes * (granule / lanes)
            }
            ScatteredReads::Strided { stride } => (thread + index * threads) * stride,
        }
    }

    /// Lines with the words that a warp reads in load `index` of `loads`.
    fn words(self, warp: u64, load: (u64, u64), threads: u64, machine: &MachineConfig) -> Vec<(u64, Mask)> {
        let (line, grain) = (machine.line.bytes(), machine.line.grain());
        let mut lines = BTreeMap::new();
        for thread in warp * LANES..(warp + 1) * LANES {
            let address = self.address(thread, load, threads);
            let word = machine.line.mask(address % line, WORD.max(grain));
            *lines.entry(address / line).or_insert(Mask::NONE) |= word;
        }
        lines.into_iter().collect()
    }

    /// Runs `loads` loads per lane, after the memory that fits into the L2 was read once. Returns the duration in
    /// seconds, and the bytes in granules or sectors.
    ///
    /// # Errors
    /// Errors from the run.
    pub fn measure(
        self,
        loads: u64,
        machine: &MachineConfig,
        design: &DesignConfig,
    ) -> Result<(f64, f64), EstimateError> {
        let mut machine = machine.clone();
        machine.tlb.start = TlbStart::Warm;
        let ctas = self.ctas(machine.topology.sms() as u64);
        let threads = ctas * WARPS * LANES;
        let warp = |number: u64| {
            let machine = &machine;
            move |warp: &mut WarpBuilder<'_>| {
                for first in (0..loads).step_by(UNROLLED as usize) {
                    let count = UNROLLED.min(loads - first);
                    (first..first + count).for_each(|index| {
                        warp.load_parts(self.words(number, (index, loads), threads, machine));
                    });
                    (1..=count).rev().for_each(|distance| _ = warp.use_result(distance as u8));
                }
            }
        };
        let cta = |cta: u64| (0..WARPS).fold(CtaBuilder::new(), |built, index| built.warp(warp(cta * WARPS + index)));
        let mut kernels: Vec<Vec<CtaBuilder>> = self.warm_up(&machine).into_iter().collect();
        kernels.push((0..ctas).map(cta).collect());
        let program = DirectedProgram::of_lines(machine.line, kernels);
        let record =
            run(&RunSpec { machine: Arc::new(machine), design: design.clone(), program, pages: None, threads: 1 })?;
        let last = record.kernels.last().expect("the program has a kernel");
        Ok((last.end_s - last.start_s, (ctas * WARPS * loads * self.bytes()) as f64))
    }

    /// Kernel that reads all memory in use, if the L2 holds it.
    fn warm_up(self, machine: &MachineConfig) -> Option<Vec<CtaBuilder>> {
        let ScatteredReads::Random { mib, .. } = self else { return None };
        let lines = (mib << 20) / machine.line.bytes();
        if mib << 20 > machine.l2.bytes {
            return None;
        }
        let each = lines.div_ceil(machine.topology.sms() as u64 * WARPS);
        let warp = |first: u64| {
            move |warp: &mut WarpBuilder<'_>| {
                let own = (first * each).min(lines)..((first + 1) * each).min(lines);
                for line in own.step_by(8) {
                    warp.load(line..(line + 8).min(lines), Order::WEAK).use_result(1);
                }
            }
        };
        let cta = |cta: u64| (0..WARPS).fold(CtaBuilder::new(), |built, index| built.warp(warp(cta * WARPS + index)));
        Some((0..machine.topology.sms() as u64).map(cta).collect())
    }
}
