//! Traces, as the command line names them, and the programs they become.

use crate::failure::Failure;
use std::path::Path;
use std::sync::Arc;
use tombolo_experiment::workload::Source;
use tombolo_machine::MachineConfig;
use tombolo_workload::trace;

/// The trace at `path`, for `machine`.
pub(crate) fn trace(path: &Path, machine: &MachineConfig) -> Result<Source, Failure> {
    let (program, mut notes) = trace::open_with_notes(path, machine.line, machine.sm.warp_width)?;
    if machine.scale != tombolo_machine::Scale::FULL {
        notes.push(format!("the machine is scaled by {}; a trace stays as it was recorded", machine.scale));
    }
    let label = program.name().to_owned();
    Ok(Source { label, program: Arc::from(program), notes, adjusted: Vec::new(), sample: None, bytes: 0 })
}
