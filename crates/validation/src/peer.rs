//! What a GPU moves from or to another's memory: a directed program of one GPU beside idle ones.

use crate::estimate::EstimateError;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{Cta, Directed, Warp};
use tombolo_system::{RunSpec, run};
use tombolo_types::Order;

/// Warps of a CTA, of which each SM has one. Assumed: with [`AHEAD`] lines each, more under way than a link holds.
const WARPS: u64 = 8;
/// Lines that a warp has under way.
const AHEAD: u8 = 16;

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Loads of the other's memory.
    Read,
    /// Stores to it.
    Write,
}

/// Seconds that the first GPU of `machine` takes for so many MiB of the second one's memory, and their bytes.
///
/// # Errors
/// The run's.
pub fn moved(
    way: Way,
    mib: u64,
    machine: &Arc<MachineConfig>,
    design: &DesignConfig,
) -> Result<(f64, f64), EstimateError> {
    let line = machine.line.bytes();
    let (gpus, sms) =
        (u64::from(machine.topology.gpus), machine.topology.sms() as u64 / u64::from(machine.topology.gpus));
    // As many lines for each warp.
    let part = (mib << 20) / line / (sms * WARPS) * WARPS;
    let all = sms * part;
    let place = |gpu| match gpu {
        1 => Cta::new()
            .warp(|warp| (0..all).step_by((machine.page_bytes / line) as usize).for_each(|line| _ = warp.read([line]))),
        _ => Cta::new(),
    };
    let access = |warp: &mut Warp<'_>, line| match way {
        Way::Read => _ = warp.load([line], Order::WEAK).use_result(AHEAD),
        Way::Write => _ = warp.write([line]),
    };
    let of = |cta| if cta < sms { Cta::sharing(cta * part..(cta + 1) * part, WARPS, access) } else { Cta::new() };
    let program =
        Directed::of_lines(machine.line, vec![(0..gpus).map(place).collect(), (0..gpus * sms).map(of).collect()]);
    let (machine, design) = (Arc::clone(machine), design.clone());
    let record = run(&RunSpec { machine, design, program, pages: None, threads: 1 })?;
    let kernel = record.kernels.last().expect("two kernels ran");
    Ok((kernel.end_s - kernel.start_s, (all * line) as f64))
}
