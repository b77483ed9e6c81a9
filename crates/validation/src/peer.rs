//! What a GPU moves from or to another's memory, or a copy engine between two: a directed program beside idle GPUs.

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
    /// A copy of it to the first GPU's, by the second one's engine.
    Copy,
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
    if way == Way::Copy {
        return copied(all, machine);
    }
    let place = |gpu| match gpu {
        1 => Cta::new()
            .warp(|warp| (0..all).step_by((machine.page_bytes / line) as usize).for_each(|line| _ = warp.read([line]))),
        _ => Cta::new(),
    };
    let access = |warp: &mut Warp<'_>, line| match way {
        Way::Read => _ = warp.load([line], Order::WEAK).use_result(AHEAD),
        Way::Write | Way::Copy => _ = warp.write([line]),
    };
    let of = |cta| if cta < sms { Cta::sharing(cta * part..(cta + 1) * part, WARPS, access) } else { Cta::new() };
    let program =
        Directed::of_lines(machine.line, vec![(0..gpus).map(place).collect(), (0..gpus * sms).map(of).collect()]);
    let (machine, design) = (Arc::clone(machine), design.clone());
    let record = run(&RunSpec { machine, design, program, pages: None, threads: 1 })?;
    let kernel = record.kernels.last().expect("two kernels ran");
    Ok((kernel.end_s - kernel.start_s, (all * line) as f64))
}

/// Seconds that an engine takes to copy so many lines, behind the call, and their bytes: one GPU has written them, and the
/// other reads them.
fn copied(lines: u64, machine: &Arc<MachineConfig>) -> Result<(f64, f64), EstimateError> {
    let design = tombolo_design::design("memcpy-needed").and_then(|design| design.check()).expect("it ships");
    let gpus = u64::from(machine.topology.gpus);
    let only = |one: u64, cta: Cta| {
        let ctas = (0..gpus).map(|gpu| if gpu == one { cta.clone() } else { Cta::new() });
        ctas.collect::<Vec<_>>()
    };
    let written = Cta::sharing(0..lines, WARPS, |warp, line| _ = warp.write([line]));
    let read = Cta::sharing(0..lines, WARPS, |warp, line| _ = warp.load([line], Order::WEAK));
    let arrays = [("copied", 0..lines)];
    let program = Directed::of_arrays(machine.line, vec![only(1, written), only(0, read)], &arrays, &[]);
    let record = run(&RunSpec { machine: Arc::clone(machine), design, program, pages: None, threads: 1 })?;
    let exposed = record.copies.expect("it copies").exposed_s - machine.copy.call.seconds();
    Ok((exposed, (lines * machine.line.bytes()) as f64))
}
