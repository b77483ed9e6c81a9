//! Transfers between a GPU and a peer's memory, or by a copy engine between two GPUs: a directed program, other GPUs
//! idle.

use crate::estimate::EstimateError;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_system::{RunSpec, run};
use tombolo_types::Order;

/// Warps per CTA, with a CTA on each SM. Assumed: with [`AHEAD`] lines each, more in flight than a link holds.
const WARPS: u64 = 8;
/// Lines in flight per warp.
const AHEAD: u8 = 16;

/// Transfer direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferDirection {
    /// Loads from the peer's memory.
    Read,
    /// Stores to the peer's memory.
    Write,
    /// A copy from the peer's memory to the first GPU, by the peer's copy engine.
    Copy,
}

/// Measures the first GPU in `machine` on `mib` MiB in the second GPU's memory; returns seconds and transferred bytes.
///
/// # Errors
/// Errors from the run.
pub fn measure_transfer(
    direction: TransferDirection,
    mib: u64,
    machine: &Arc<MachineConfig>,
    design: &DesignConfig,
) -> Result<(f64, f64), EstimateError> {
    let line = machine.line.bytes();
    let (gpus, sms) =
        (u64::from(machine.topology.gpus), machine.topology.sms() as u64 / u64::from(machine.topology.gpus));
    // An equal number of lines for each warp.
    let part = (mib << 20) / line / (sms * WARPS) * WARPS;
    let all = sms * part;
    if direction == TransferDirection::Copy {
        return measure_copy(all, machine);
    }
    let place = |gpu| match gpu {
        1 => CtaBuilder::new()
            .warp(|warp| (0..all).step_by((machine.page_bytes / line) as usize).for_each(|line| _ = warp.read([line]))),
        _ => CtaBuilder::new(),
    };
    let access = |warp: &mut WarpBuilder<'_>, line| match direction {
        TransferDirection::Read => _ = warp.load([line], Order::WEAK).use_result(AHEAD),
        TransferDirection::Write | TransferDirection::Copy => _ = warp.write([line]),
    };
    let of = |cta| {
        if cta < sms { CtaBuilder::sharing(cta * part..(cta + 1) * part, WARPS, access) } else { CtaBuilder::new() }
    };
    let program = DirectedProgram::of_lines(
        machine.line,
        vec![(0..gpus).map(place).collect(), (0..gpus * sms).map(of).collect()],
    );
    let (machine, design) = (Arc::clone(machine), design.clone());
    let record = run(&RunSpec { machine, design, program, pages: None, threads: 1 })?;
    let kernel = record.kernels.last().expect("two kernels ran");
    Ok((kernel.end_s - kernel.start_s, (all * line) as f64))
}

/// Measures a copy engine on `lines` lines; returns seconds after the call, and bytes. A GPU has written the lines, and
/// the second GPU reads them.
fn measure_copy(lines: u64, machine: &Arc<MachineConfig>) -> Result<(f64, f64), EstimateError> {
    let design = tombolo_design::design("memcpy-needed").and_then(|design| design.check()).expect("it ships");
    let gpus = u64::from(machine.topology.gpus);
    let only = |one: u64, cta: CtaBuilder| {
        let ctas = (0..gpus).map(|gpu| if gpu == one { cta.clone() } else { CtaBuilder::new() });
        ctas.collect::<Vec<_>>()
    };
    let written = CtaBuilder::sharing(0..lines, WARPS, |warp, line| _ = warp.write([line]));
    let read = CtaBuilder::sharing(0..lines, WARPS, |warp, line| _ = warp.load([line], Order::WEAK));
    let arrays = [("copied", 0..lines)];
    let program = DirectedProgram::of_arrays(machine.line, vec![only(1, written), only(0, read)], &arrays, &[]);
    let record = run(&RunSpec { machine: Arc::clone(machine), design, program, pages: None, threads: 1 })?;
    let exposed = record.copies.expect("it copies").exposed_s - machine.copy.call.seconds();
    Ok((exposed, (lines * machine.line.bytes()) as f64))
}
