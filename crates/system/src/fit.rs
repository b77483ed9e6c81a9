//! Checks that a program can run on a machine under a design at all, before anything runs.

use crate::movement::{array_lines, pages_of};
use crate::run::{RunError, RunSpec};
use std::collections::BTreeSet;
use tombolo_design::placement::Movement;
use tombolo_design::scheduling::MachineShape;
use tombolo_model::front_end::PageTable;
use tombolo_model::sm::residency;
use tombolo_types::stream::{Command, KernelClass, KernelInfo};
use tombolo_types::{LaunchDevices, Line, ModuleId};

/// Checks that the program can run on the machine at all.
pub(crate) fn check(spec: &RunSpec) -> Result<(), RunError> {
    let (machine, program) = (&spec.machine, &spec.program);
    let mismatch = |recorded: String, has: String| {
        Err(RunError::Mismatch { program: program.name().into(), recorded, machine: machine.name.clone(), has })
    };
    if program.line_size() != machine.line {
        let bytes = |size: tombolo_types::LineSize| format!("lines of {} B", size.bytes());
        return mismatch(bytes(program.line_size()), bytes(machine.line));
    }
    if program.warp_width() > machine.sm.warp_width {
        // A program with narrower warps runs with idle lanes.
        let lanes = |width: u32| format!("warps of {width} lanes");
        return mismatch(lanes(program.warp_width()), lanes(machine.sm.warp_width));
    }
    for kernel in program.kernels() {
        residency(machine, kernel, program.warp_width()).map_err(RunError::DoesNotFit)?;
    }
    check_sharing(spec)?;
    let launches: BTreeSet<_> = program.commands().iter().filter_map(launch_target).collect();
    launches.into_iter().try_for_each(|(kernel, on)| check_launch(spec, &program.kernels()[kernel as usize], on))
}

/// Kernel and target modules, if the command is a launch.
fn launch_target(command: &Command) -> Option<(u32, LaunchDevices)> {
    match *command {
        Command::Launch { kernel, on, .. } => Some((kernel, on)),
        Command::Copy { .. } | Command::Host { .. } | Command::Barrier => None,
    }
}

/// Checks that a kernel can be launched on the given modules.
fn check_launch(spec: &RunSpec, kernel: &KernelInfo, on: LaunchDevices) -> Result<(), RunError> {
    let (machine, cut) = (&spec.machine, spec.design.scheduling.cut(&spec.machine));
    let shape = MachineShape::of(machine);
    let defect = on.defect(shape.gpus, shape.modules_per_gpu).or_else(|| cut.defect(kernel, on, shape));
    if let Some(why) = defect {
        let (kernel, machine) = (&kernel.name, &machine.name);
        return Err(RunError::DoesNotFit(format!("kernel {kernel} on machine {machine}: {why}")));
    }
    if kernel.class != KernelClass::Cooperative {
        return Ok(());
    }
    let resident = residency(machine, kernel, spec.program.warp_width()).map_err(RunError::DoesNotFit)?;
    let shares =
        (0..machine.topology.modules() as u8).filter_map(|module| cut.share(kernel, on, ModuleId(module), shape));
    let (largest, count) = shares.fold((0, 0), |(most, count), share| (share.ctas().max(most), count + 1_u64));
    let room = u64::from(resident) * u64::from(machine.topology.sms_per_module);
    if u64::from(largest) <= room {
        return Ok(());
    }
    let room = room * count;
    Err(RunError::DoesNotFit(format!(
        "kernel {}: its {} CTAs wait for each other and machine {} holds {room} at once",
        kernel.name, kernel.ctas, machine.name
    )))
}

/// Checks that the program suits a sharing policy that acts around kernels.
fn check_sharing(spec: &RunSpec) -> Result<(), RunError> {
    let (sharing, program) = (spec.design.placement.sharing(), &spec.program);
    let is_alone = spec.machine.topology.gpus == 1 && !sharing.copies_with_host();
    if is_alone || sharing.movement == Movement::Placed || sharing.movement == Movement::Faults {
        return Ok(());
    }
    let refused = |why: String| Err(RunError::DoesNotFit(why));
    let design = &spec.design.name;
    let waits = |kernel: &&KernelInfo| kernel.class == KernelClass::Cooperative;
    if let Some(kernel) = program.kernels().iter().find(waits).filter(|_| !sharing.is_visible_at_once()) {
        return refused(format!(
            "kernel {}: its CTAs wait for each other, and under design {design} a GPU sees what another one writes behind a \
             kernel alone",
            kernel.name
        ));
    }
    let places: BTreeSet<_> = program.commands().iter().filter_map(stream_and_target).collect();
    if places.len() > 1 || places.iter().any(|(_, on)| *on != LaunchDevices::All) {
        return refused(format!(
            "program {}: it launches kernels in several streams or on some GPUs, and design {design} moves memory between \
             kernels that run one after the other on all",
            program.name()
        ));
    }
    Ok(())
}

/// Checks that GPU memories have room for all arrays copied from a host, for the program's whole duration. `pages`: the
/// page homes.
pub(crate) fn check_room(spec: &RunSpec, pages: &PageTable) -> Result<(), RunError> {
    let (machine, design, program) = (&spec.machine, &spec.design, &spec.program);
    if !design.placement.sharing().copies_with_host() {
        return Ok(());
    }
    let lines_per_page = machine.page_bytes / machine.line.bytes();
    let arrays = array_lines(&**program).into_iter().flatten().collect();
    let held = |gpu: ModuleId| {
        let of_arrays = pages_of(&arrays, lines_per_page).into_iter().flatten();
        let is_home = |page: &u64| pages.home(gpu, Line(page * lines_per_page)) == Some(gpu);
        of_arrays.filter(is_home).count() as u64 * machine.page_bytes
    };
    let fullest = (0..machine.topology.modules() as u8).map(ModuleId).map(|gpu| (held(gpu), gpu)).max();
    match fullest {
        Some((needs, gpu)) if needs > machine.dram.bytes => Err(RunError::DoesNotFit(format!(
            "design {} copies {needs} bytes of arrays to the memory of GPU {}, and machine {} has {} bytes there",
            design.name, gpu.0, machine.name, machine.dram.bytes
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Stream and target modules, if the command is a launch.
fn stream_and_target(command: &Command) -> Option<(u32, LaunchDevices)> {
    match *command {
        Command::Launch { stream, on, .. } => Some((stream, on)),
        Command::Copy { .. } | Command::Host { .. } | Command::Barrier => None,
    }
}
