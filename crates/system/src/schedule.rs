//! Actions around a program's commands, as required by the design's policy for sharing memory between GPUs.

use crate::movement::{HostCopier, IterationLaunches, Movement as ProgramMovement};
use crate::placement::TouchOrder;
use crate::run::RunSpec;
use std::sync::Arc;
use tombolo_design::placement::{CopyContents, HostCopies, Movement, Sharing, Subscriptions};
use tombolo_machine::MachineConfig;
use tombolo_model::front_end::{CommandTasks, PageTable, Schedule};
use tombolo_types::stream::{Command, Program, StreamError};
use tombolo_types::{ModuleId, Ps};

const SECOND: Ps = Ps::from_ns(1_000_000_000);

/// A schedule, with notes for the record.
pub(crate) struct ScheduleWithNotes {
    pub(crate) schedule: Arc<Schedule>,
    /// The launches of the iterations, for a program that is cut over GPUs and has several.
    pub(crate) iterations: Option<IterationLaunches>,
    pub(crate) notes: Vec<String>,
}

/// Builds the actions that a design adds around a program's commands.
///
/// # Errors
/// The recording is damaged.
pub(crate) fn scheduled(
    spec: &RunSpec,
    sharing: &Sharing,
    pages: &PageTable,
) -> Result<ScheduleWithNotes, StreamError> {
    let (machine, program) = (&spec.machine, &*spec.program);
    let modules = machine.topology.modules() as u8;
    let is_cut =
        machine.topology.modules_per_gpu == 1 && program.kernels().iter().any(|kernel| !kernel.parts.is_empty());
    if !is_cut && !needs_walk(sharing.movement) {
        return Ok(ScheduleWithNotes { schedule: Arc::default(), iterations: None, notes: Vec::new() });
    }
    let of_host = HostCopier { program, pages, host: ModuleId(modules) };
    let order = TouchOrder::of(machine, &spec.design, program);
    let moved = ProgramMovement::find(program, spec.design.scheduling.cut(machine), order)?;
    let iterations = if is_cut { moved.iterations(program) } else { None };
    let (schedule, notes) = match sharing.movement {
        Movement::Hints { prefetch: true } => (moved.hints(program).0, Vec::new()),
        Movement::Copies { copied, overlap } if copied != CopyContents::Nothing => {
            let (schedule, notes) = moved.with_joining_distance(lines_of_a_call(machine)).copies(program, copied);
            (Schedule { overlaps: overlap, ..schedule }, notes)
        }
        Movement::HostCopies(HostCopies::Needed) => of_host.needed(&moved),
        Movement::HostCopies(HostCopies::Everything) => of_host.everything(),
        Movement::LatestWriter => (moved.latest_writers(program).0, Vec::new()),
        Movement::Published { subscriptions: Subscriptions::Automatic, profiled } => {
            tracked(program, moved.end_of_iterations(program, profiled))
        }
        Movement::Placed
        | Movement::Faults
        | Movement::Hints { prefetch: false }
        | Movement::Copies { .. }
        | Movement::Published {
            subscriptions: Subscriptions::All | Subscriptions::OnRead | Subscriptions::Manual,
            ..
        } => (Schedule::default(), Vec::new()),
    };
    Ok(ScheduleWithNotes { schedule: Arc::new(schedule), iterations, notes })
}

/// True if the actions around commands depend on the kernels' accesses.
fn needs_walk(movement: Movement) -> bool {
    match movement {
        Movement::Hints { prefetch } => prefetch,
        Movement::Copies { copied, .. } => copied != CopyContents::Nothing,
        Movement::LatestWriter | Movement::HostCopies(_) => true,
        Movement::Published { subscriptions, .. } => subscriptions == Subscriptions::Automatic,
        Movement::Placed | Movement::Faults => false,
    }
}

/// Schedule that tracks accesses up to a command, with a note on the tracking.
fn tracked(program: &dyn Program, last: Option<usize>) -> (Schedule, Vec<String>) {
    let Some(last) = last else {
        let note = "no launches repeat: every GPU subscribes to every page from the start to the end";
        return (Schedule::default(), vec![note.to_owned()]);
    };
    let commands = program.commands();
    let launches = |commands: &[Command]| commands.iter().filter(|one| matches!(one, Command::Launch { .. })).count();
    let mut around = vec![CommandTasks::default(); commands.len()];
    around[last].stops_tracking = true;
    let (tracked, all) = (launches(&commands[..=last]), launches(commands));
    let note = format!(
        "accesses are tracked in the first {tracked} of {all} launches: every GPU subscribes to every page there"
    );
    (Schedule { tasks: around, ..Schedule::default() }, vec![note])
}

/// Lines that a link transfers during the time for a copy call.
fn lines_of_a_call(machine: &MachineConfig) -> u64 {
    let rate = machine.gpu_link.rate;
    if rate.is_infinite() {
        return u64::MAX;
    }
    let bytes = u128::from(rate.0) * u128::from(machine.copy.call.0) / u128::from(SECOND.0);
    u64::try_from(bytes).unwrap_or(u64::MAX) / machine.line.bytes()
}
