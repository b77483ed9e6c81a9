//! A single run: a machine, a design, a program.

use crate::broken_rules::BrokenRules;
use crate::checker::Versions;
use crate::cut::{MachineCut, SplitCounts};
use crate::elision::{self, ProgramUses};
use crate::ended::EndedRun;
use crate::fit;
use crate::hints;
use crate::iteration;
use crate::labels::LabelError;
use crate::links;
use crate::partition::{self, Hub, MachinePart, join, layout};
use crate::placement::place;
use crate::record::RunRecord;
use crate::schedule::{ScheduleWithNotes, scheduled};
use crate::simulation::{Observed, RunOptions};
use crate::start;
use crate::subscribed::subscribed;
use std::sync::Arc;
use std::time::Instant;
use tombolo_design::elision::ElisionChoice;
use tombolo_design::placement::Sharing;
use tombolo_design::{BuildError, DesignConfig, ModelInput};
use tombolo_engine::{Engine, HORIZON};
use tombolo_machine::MachineConfig;
use tombolo_model::convert::{self, host_machine};
use tombolo_model::fabric::{Fabric, GpuPort, PacketSizes, Sideband};
use tombolo_model::front_end::{
    Boundaries, CommandProcessor, Driver, DriverConfig, Extents, PageTable, Schedule, Transfers, View,
};
use tombolo_model::l2::{AddressMap, BlockDesign, L2Design};
use tombolo_model::message::Message;
use tombolo_model::module::{Module, ModuleConfig, ModuleSite};
use tombolo_model::observe::{Contents, UnloadedLatencies};
use tombolo_protocol::catalogue::{Visitor, choose, choose_whole};
use tombolo_protocol::client_home::Nodes;
use tombolo_protocol::nmoesi::NmoesiOptions;
use tombolo_protocol::options::ProtocolOptions;
use tombolo_protocol::registry::{self, ProtocolFamily};
use tombolo_protocol::sm_rules::SmRules;
use tombolo_protocol::topology::ModuleSet;
use tombolo_protocol::{Coherence, Topology};
use tombolo_types::stream::{Program, StreamError};
use tombolo_types::{Line, ModuleId, Page, Ps};

/// Inputs to a run.
#[derive(Clone)]
pub struct RunSpec {
    /// The machine, scaled.
    pub machine: Arc<MachineConfig>,
    /// The design.
    pub design: DesignConfig,
    /// The program, recorded for the machine's line size and warp width.
    pub program: Arc<dyn Program>,
    /// Page homes, from [`place`]; `None` to place the pages at the start of the run.
    pub pages: Option<Arc<PageTable>>,
    /// Number of threads that the run may use, at least 1. The run leaves a thread idle if it brings no speedup.
    pub threads: usize,
}

/// Reason for which a run gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The program was recorded for a different machine.
    #[error("{program} was recorded for {recorded}; machine {machine} has {has}")]
    Mismatch {
        /// The program.
        program: String,
        /// The property required by the recording.
        recorded: String,
        /// The machine.
        machine: String,
        /// The machine's corresponding property.
        has: String,
    },
    /// A kernel that no SM can hold, or a cooperative kernel that cannot be resident at once.
    #[error("{0}")]
    DoesNotFit(String),
    /// The machine's links lack a feature that the design requires.
    #[error("design {design} turns lanes (links = \"turning\"), machine {machine} has none to turn: {reason}")]
    Links {
        /// The design.
        design: String,
        /// The machine.
        machine: String,
        /// Reason, by key.
        reason: &'static str,
    },
    /// The recording is damaged.
    #[error("{0}")]
    Stream(#[from] StreamError),
    /// The program's kernels cannot be labelled in the design's way.
    #[error("{0}")]
    Labels(#[from] LabelError),
    /// The run exceeds the simulated time that the model can represent.
    #[error("the program takes more than {:.0} s of simulated time, the most that can be simulated", HORIZON.seconds())]
    TooLong,
    /// The calling thread's [`tombolo_types::StopFlag`] was set.
    #[error("stopped")]
    Stopped,
    /// Deadlock: no event is left and the program has not ended.
    #[error("the run cannot advance at {at}; who waits for whom:\n{report}")]
    Stuck {
        /// Time of the last event.
        at: Ps,
        /// The deadlock report, with one line per waiting component.
        report: String,
    },
}

/// Lines that an earlier program left in the memory-side caches, in order of last use, most recent last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResidentLines {
    /// The first line.
    pub first: Line,
    /// Number of lines.
    pub lines: u64,
    /// True if the lines have not yet been written to memory.
    pub dirty: bool,
}

/// Configuration sections that describe a host.
const HOST_SECTIONS: &str = "[cpu], [llc], [host_memory], [host_directory], [host_link]";

/// Selects the protocol and runs the simulation with it.
pub(crate) fn dispatch<D: Contents>(
    spec: &RunSpec,
    extras: RunOptions<'_>,
    watch: &D::Probe,
) -> Result<Observed, RunError> {
    fit::check(spec)?;
    start::check(spec)?;
    let mut built = spec.design.build(&spec.machine).map_err(|unfit| RunError::of(spec, &unfit))?;
    built.sharing.paging.broken = extras.broken.paging;
    built.sharing.copies.broken = extras.broken.copies;
    if let Some(publishes) = &mut built.sharing.publishes {
        publishes.rules.broken = extras.broken.publication;
    }
    let elides = matches!(built.boundaries, ElisionChoice::Table { .. });
    let known = if elides || extras.logs { Some(ProgramUses::find(spec)?) } else { None };
    let pages = match (&known, &spec.pages) {
        (Some(known), _) => Arc::clone(known.pages()),
        (None, Some(pages)) => Arc::clone(pages),
        (None, None) => place(&spec.machine, &spec.design, &*spec.program)?,
    };
    let boundaries = elision::boundaries(spec, &built, known.as_ref())?;
    let (name, options) = (built.protocol, broken(built.options, extras.broken));
    fit::check_room(spec, &pages)?;
    let (scheduled, subscribed) = (scheduled(spec, &built.sharing, &pages)?, subscribed(spec)?);
    let prepared = Prepared::<D> { spec, built, pages, boundaries, known, scheduled, subscribed, extras, watch };
    let run = if D::BREAKABLE { choose(name, options, prepared) } else { choose_whole(name, options, prepared) };
    run.expect("a design's protocol is one of the catalogue")
}

/// Adds the broken rules to the protocol's options.
fn broken(options: ProtocolOptions, BrokenRules { rule, nmoesi, transfer, .. }: BrokenRules) -> ProtocolOptions {
    let nmoesi = NmoesiOptions { broken: nmoesi, ..options.nmoesi };
    ProtocolOptions { broken_rule: rule, broken_transfer: transfer, nmoesi, ..options }
}

impl RunError {
    /// Explains the mismatch between the design of `spec` and its machine.
    fn of(spec: &RunSpec, unfit: &BuildError) -> RunError {
        let (design, machine) = (&spec.design.name, &spec.machine.name);
        match unfit {
            BuildError::Links(reason) => RunError::Links { design: design.clone(), machine: machine.clone(), reason },
            BuildError::Pages => RunError::DoesNotFit(format!(
                "design {design} moves memory of GPUs of one module each, and those of machine {machine} have several"
            )),
            BuildError::Host => RunError::DoesNotFit(format!(
                "design {design} uses the memory of a host, and machine {machine} has no host: {HOST_SECTIONS}"
            )),
            BuildError::HostIds { modules } => RunError::DoesNotFit(format!(
                "design {design} makes the host one module more, and machine {machine} of {modules} modules has no ids left for it and its parts"
            )),
            BuildError::Stack => RunError::DoesNotFit(format!(
                "design {design} caches blocks of host memory in GPU memories, and those of machine {machine} have no directory: [stack]"
            )),
            BuildError::Interleave => RunError::DoesNotFit(format!(
                "design {design} cuts a block evenly where stack.interleave_bytes is less than stack.block_bytes: machine {machine} has slices, or \
                 host directories, whose number is no power of two"
            )),
            BuildError::Blocks => RunError::DoesNotFit(format!(
                "design {design} caches blocks of host memory by GPUs of one module each, and those of machine {machine} have several"
            )),
            BuildError::Directory { most, modules } => RunError::DoesNotFit(format!(
                "design {design}: a directory entry names at most {most} modules, machine {machine} has {modules}"
            )),
        }
    }
}

/// A simulation without its protocol.
struct Prepared<'a, D: Contents> {
    spec: &'a RunSpec,
    built: ModelInput,
    pages: Arc<PageTable>,
    boundaries: Boundaries,
    /// Array uses and pages in the program, if boundaries are logged.
    known: Option<ProgramUses>,
    scheduled: ScheduleWithNotes,
    subscribed: Vec<(Page, ModuleSet)>,
    extras: RunOptions<'a>,
    watch: &'a D::Probe,
}

impl<D: Contents> Visitor for Prepared<'_, D> {
    type Output = Result<Observed, RunError>;

    fn visit<P: Coherence>(self, protocol: P) -> Self::Output {
        self.simulate(protocol)
    }

    fn visit_nodes<P: Nodes>(self, protocol: P) -> Self::Output {
        self.simulate(BlockDesign(protocol))
    }

    fn registered(name: &str) -> Option<fn(Self, ProtocolOptions) -> Self::Output> {
        let simulator = registry::function::<RegisteredSimulator<D>>(name)?;
        Some(simulator as fn(Self, ProtocolOptions) -> Self::Output)
    }
}

/// The simulator, compiled for a registered protocol.
type RegisteredSimulator<D> = for<'a> fn(Prepared<'a, D>, ProtocolOptions) -> Result<Observed, RunError>;

/// Compiles the simulator for the registered protocol called `name`, with these line contents.
pub fn register_contents<F: ProtocolFamily, D: Contents>(name: &'static str) {
    let simulator: RegisteredSimulator<D> = |prepared, options| {
        if D::BREAKABLE { F::breakable(options, prepared) } else { F::whole(options, prepared) }
    };
    registry::add(name, simulator);
}

/// Compiles the simulator for the registered protocol called `name`: runs, and runs with checked values.
pub fn register<F: ProtocolFamily>(name: &'static str) {
    register_contents::<F, ()>(name);
    register_contents::<F, Versions>(name);
}

impl<D: Contents> Prepared<'_, D> {
    fn simulate<C: L2Design<D>>(self, protocol: C) -> Result<Observed, RunError> {
        let Prepared { spec, built, pages, boundaries, known, scheduled, subscribed, extras, watch } = self;
        let machine = Arc::clone(&built.machine);
        let layout = layout(&built);
        let ScheduleWithNotes { schedule, iterations, notes } = scheduled;
        let driver = driver(&built, &pages, &schedule, subscribed);
        let map = map(&built, &machine, Arc::clone(&pages));
        let (follows, extents) = (extras.follows, boundaries.extents());
        let transfers = Transfers::default();
        let shared = ModuleInputs {
            map: &map,
            follows,
            extents,
            schedule: &schedule,
            driver: &driver,
            watch,
            transfers: &transfers,
        };
        let mut modules = modules::<_, D>(spec, &built, protocol, &shared);
        warm(&mut modules, &map, extras.resident);
        start::fill(spec, &pages, &mut modules)?;
        extras.window.into_iter().for_each(|window| modules.iter_mut().for_each(|module| module.record(window)));
        let fabric = links::fabric(&built, layout, extras.window);
        let ways = links::ways(&machine, layout, extras.window);
        let hub = HubParts { fabric, ways, boundaries, driver, schedule, transfers };
        let threads = extras.spare.map_or(spec.threads, |spare| 1 + spare.count());
        let mut engine = build(spec, &built, hub, (protocol, watch), &map, (modules, threads));
        let started = Instant::now();
        let stats = match extras.spare {
            Some(spare) => engine.run_beside(spare),
            None => engine.run(spec.threads),
        };
        if stats.stopped {
            return Err(RunError::Stopped);
        }
        let wall = started.elapsed().as_secs_f64();
        let mut parts = engine.into_partitions();
        join(&mut parts);
        let ended = EndedRun { spec, machine: &machine, stats, wall, follows };
        let record = ended.record(&parts)?;
        let timeline = extras.window.map(|window| ended.timeline(&parts, &record, window));
        let processor = &partition::hub(&parts).command_processor;
        let (boundaries, elision) = known.map(|known| ended.boundaries(&known, processor)).unzip();
        let iteration = iterations.and_then(|launches| iteration::iteration(launches, &record));
        let record = RunRecord { elision, iteration, notes, ..record };
        Ok(Observed { record, timeline, boundaries: boundaries.unwrap_or_default() })
    }
}

/// Data common to all modules.
struct ModuleInputs<'a, D: Contents> {
    map: &'a AddressMap,
    /// True if load latencies are tracked.
    follows: bool,
    extents: &'a Extents,
    schedule: &'a Arc<Schedule>,
    driver: &'a Driver,
    watch: &'a D::Probe,
    transfers: &'a Transfers<D>,
}

/// Components outside the modules.
struct HubParts<D: Contents> {
    fabric: Fabric<D>,
    ways: Vec<GpuPort>,
    boundaries: Boundaries,
    driver: Driver,
    schedule: Arc<Schedule>,
    transfers: Transfers<D>,
}

/// The driver, idle.
fn driver(
    built: &ModelInput,
    pages: &Arc<PageTable>,
    schedule: &Arc<Schedule>,
    subscribed: Vec<(Page, ModuleSet)>,
) -> Driver {
    let Sharing { paging, copies, pins, .. } = built.sharing;
    let (machine, layout) = (&*built.machine, layout(built));
    let (pages, schedule) = (Arc::clone(pages), Arc::clone(schedule));
    Driver::new(DriverConfig { machine, layout, paging, copies, pins, pages, schedule, subscribed })
}

/// The address map. If the protocol manages blocks, each block belongs to one slice.
fn map(built: &ModelInput, machine: &MachineConfig, pages: Arc<PageTable>) -> AddressMap {
    let map = AddressMap::new(machine, pages);
    match &machine.stack {
        Some(stack) if built.blocks => map.interleaved(stack.interleave() / machine.line.bytes()),
        Some(_) | None => map,
    }
}

/// The modules, idle; a coherent host's module comes after the GPU modules.
fn modules<C: L2Design<D>, D: Contents>(
    spec: &RunSpec,
    built: &ModelInput,
    protocol: C,
    shared: &ModuleInputs<'_, D>,
) -> Vec<Module<C, D>> {
    let layout = layout(built);
    let (sharing, cargo, between) = (&built.sharing, Sideband::default(), C::SharedBySlices::default());
    let host_machine = host_machine(&built.machine).map(Arc::new);
    let hints = hints::are_useful(&built.machine);
    let routes = built.machine.routes().map(Arc::new);
    let wires = shared.follows.then(|| Arc::new(UnloadedLatencies::new(built, layout)));
    let module = |module| {
        let is_host = layout.host() == Some(module);
        let machine = match &host_machine {
            Some(machine) if is_host => Arc::clone(machine),
            Some(_) | None => Arc::clone(&built.machine),
        };
        let mut map = if is_host { shared.map.clone().for_host() } else { shared.map.clone() };
        if is_host && sharing.copies_with_host() {
            map = map.all_local(module);
        }
        if sharing.moves() {
            map = map.with_view(View::new(module, layout.all_modules(), sharing.paging));
            for (page, residence) in shared.driver.displaced() {
                map.map(page, residence.mapping(module));
            }
        }
        let site = ModuleSite {
            module,
            sm_rules: SmRules::of(&protocol),
            routing: protocol.routing(),
            layout,
            map,
            hints,
            packet_sizes: PacketSizes::new(&machine),
            tlb_banks: convert::tlb_banks(&machine),
            unloaded_latencies: wires.clone(),
            routes: routes.clone(),
            machine,
            probe: shared.watch.clone(),
            extents: shared.extents.clone(),
            schedule: Arc::clone(shared.schedule),
            paging: sharing.paging,
            copies: sharing.copies,
            sideband: cargo.clone(),
            transfers: shared.transfers.clone(),
        };
        Module::new(ModuleConfig { protocol, site }, built, Arc::clone(&spec.program), &between)
    };
    (0..layout.all_modules()).map(ModuleId).map(module).collect()
}

/// Fills the memory-side caches with resident lines.
fn warm<C: L2Design<D>, D: Contents>(modules: &mut [Module<C, D>], map: &AddressMap, resident: &[ResidentLines]) {
    for &ResidentLines { first, lines, dirty } in resident {
        for line in (first.0..first.0 + lines).map(Line) {
            modules[usize::from(map.home(ModuleId(0), line).0)].warm(line, dirty);
        }
    }
}

fn build<C: L2Design<D>, D: Contents>(
    spec: &RunSpec,
    built: &ModelInput,
    HubParts { fabric, ways, boundaries, driver, schedule, transfers }: HubParts<D>,
    (protocol, watch): (C, &D::Probe),
    map: &AddressMap,
    (modules, threads): (Vec<Module<C, D>>, usize),
) -> Engine<MachinePart<C, D>> {
    let (machine, turns) = (&built.machine, built.turning.is_some());
    let layout = layout(built);
    let command_processor =
        CommandProcessor::new((machine, built.cut), layout, Arc::clone(&spec.program), boundaries, schedule, turns);
    let cut = MachineCut::of(machine, layout, threads, SplitCounts::most(&modules, layout));
    let hub = Hub::new(fabric, command_processor, driver, (protocol, map.clone()), (watch.clone(), transfers));
    let partitions = cut.partitions(built, modules, (ways, hub), hints::are_useful(machine));
    let mut engine = Engine::new(partitions, cut.homes(machine, layout), cut.lookahead(machine, layout));
    let id = layout.command_processor();
    engine.schedule(Ps::ZERO, id, id, Message::Next);
    engine
}
