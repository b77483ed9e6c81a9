//! Operations on a workload at a given size: footprint, launch plan and recording.

use super::workload::{Instance, Request, Workload, WorkloadError};
use crate::record::{Host, MemoryBudget, RecordOptions, Recording};
use crate::scale::Scale;
use crate::simt::{ArrayInfo, Backing, Memory};
use tombolo_types::stream::KernelInfo;

/// Selects if a recording computes values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Computes values only if they decide addresses, otherwise only addresses: identical streams, in less time.
    #[default]
    Auto,
    /// Computes values, and checks the result against the reference.
    Verify,
    /// Computes only addresses; refused by workloads whose addresses depend on data.
    AddressOnly,
}

/// Lays out a workload. A size error mentions the scale, a possible cause.
fn lay_out(
    workload: &dyn Workload,
    request: &mut Request,
    memory: &mut Memory,
) -> Result<Box<dyn Instance>, WorkloadError> {
    let scale = request.scale;
    workload.lay_out(request, memory).map_err(|error| match error {
        WorkloadError::Shape { workload, message } if scale != Scale::FULL => {
            WorkloadError::Shape { workload, message: format!("{message}, at scale {scale}") }
        }
        other => other,
    })
}

/// The arrays of a workload at a given size, without allocating or running anything large.
pub fn footprint(workload: &dyn Workload, request: &Request) -> Result<Vec<ArrayInfo>, WorkloadError> {
    Ok(layout(workload, request)?.arrays().to_vec())
}

/// The workload's layout as an address space without contents.
pub fn layout(workload: &dyn Workload, request: &Request) -> Result<Memory, WorkloadError> {
    let mut memory = Memory::new(Backing::AddressOnly);
    lay_out(workload, &mut request.clone(), &mut memory)?;
    Ok(memory)
}

/// The launches of a workload at a given size, in order, without running any kernel. Refused by workloads whose
/// addresses depend on data, because their launches may too.
pub fn plan(workload: &dyn Workload, request: &Request) -> Result<Vec<KernelInfo>, WorkloadError> {
    let name = workload.name();
    if !workload.data_independent() {
        let message = "its launches may depend on its data".to_owned();
        return Err(WorkloadError::Shape { workload: name, message });
    }
    let (mut memory, options) = (Memory::new(Backing::AddressOnly), RecordOptions::default());
    let instance = lay_out(workload, &mut request.clone(), &mut memory)?;
    let mut host = Host::planning(&memory, &options);
    instance.run(&mut host).map_err(|error| WorkloadError::Record { workload: name, error })?;
    Ok(host.into_plan())
}

/// Runs a workload once and records all launches.
pub fn record(
    workload: &dyn Workload,
    request: &Request,
    options: &RecordOptions,
    mode: Mode,
) -> Result<Recording, WorkloadError> {
    let name = workload.name();
    if mode == Mode::AddressOnly && !workload.data_independent() {
        let message = "its addresses depend on its data".to_owned();
        return Err(WorkloadError::Shape { workload: name, message });
    }
    let computes = mode == Mode::Verify || !workload.data_independent();
    // Contents are allocated after the layout, which determines their size.
    let mut memory = Memory::new(Backing::AddressOnly);
    let mut request = request.clone();
    let instance = lay_out(workload, &mut request, &mut memory)?;
    if computes {
        let needs = memory.bytes();
        if let Some(has) = MemoryBudget::of(options).available().filter(|has| needs > *has) {
            return Err(WorkloadError::Memory { workload: name, needs, has });
        }
        memory.back();
    }
    let mut host = Host::new(&memory, options);
    host.set_up(|memory| instance.fill(memory));
    instance.run(&mut host).map_err(|error| WorkloadError::Record { workload: name, error })?;
    let recording = host.finish(name).with_notes(request.adjusted().to_vec(), request.notes());
    if mode == Mode::Verify {
        instance.verify(&memory).map_err(|message| WorkloadError::Wrong { workload: name, message })?;
    }
    Ok(recording)
}
