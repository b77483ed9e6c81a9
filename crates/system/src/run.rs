//! One run: a machine, a design, a program.

use crate::checker::{Checker, Versions};
use crate::elision::{self, BoundaryRecord, ElisionRecord, Known, Reading};
use crate::energy::{Energy, Moved};
use crate::labels::LabelError;
use crate::launches;
use crate::links;
use crate::paging::{CopiesRecord, PagingRecord};
use crate::partition::{Cut, Hub, Part, layout};
use crate::placement::place;
use crate::record::{
    DramRecord, HostRecord, L1Record, L2Record, LinkRecord, MemoryCacheRecord, RunRecord, TrafficRecord,
};
use crate::schedule::{Scheduled, scheduled};
use crate::timeline::Timeline;
use crate::ways::{local_ways, way_moves};
use std::sync::Arc;
use std::time::Instant;
use tombolo_design::elision::Decider;
use tombolo_design::placement::{Movement, Sharing};
use tombolo_design::{Built, DesignConfig, Unfit};
use tombolo_engine::{Engine, EngineStats, HORIZON};
use tombolo_machine::MachineConfig;
use tombolo_model::boundaries::{Boundaries, Extents};
use tombolo_model::cargo::Cargo;
use tombolo_model::command_processor::CommandProcessor;
use tombolo_model::controller::residency;
use tombolo_model::driver::{Driver, DriverConfig};
use tombolo_model::fabric::Fabric;
use tombolo_model::map::Map;
use tombolo_model::message::Message;
use tombolo_model::module::Module;
use tombolo_model::page_table::PageTable;
use tombolo_model::schedule::Schedule;
use tombolo_model::site::Site;
use tombolo_model::stats::{Digest, L2Stats, SmStats};
use tombolo_model::traffic::Traffic;
use tombolo_model::view::View;
use tombolo_model::watch::Contents;
use tombolo_model::weight::Weights;
use tombolo_protocol::catalogue::{Visitor, choose, choose_whole};
use tombolo_protocol::options::Options;
use tombolo_protocol::paging::BrokenPaging;
use tombolo_protocol::{BrokenRule, Coherence, Topology};
use tombolo_types::stream::{KernelClass, Program, StreamError};
use tombolo_types::{Bytes, Line, ModuleId, Ps};

/// What to run.
#[derive(Clone)]
pub struct RunSpec {
    /// The machine, scaled.
    pub machine: Arc<MachineConfig>,
    /// The design.
    pub design: DesignConfig,
    /// The program, recorded for the machine's line size and warp width.
    pub program: Arc<dyn Program>,
    /// Where its pages are, from [`place`]; `None` to place them now.
    pub pages: Option<Arc<PageTable>>,
    /// Threads, at least 1.
    pub threads: usize,
}

/// Why a run gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The program was recorded for another machine.
    #[error("{program} was recorded for {recorded}; machine {machine} has {has}")]
    Mismatch {
        /// The program.
        program: String,
        /// What it needs.
        recorded: String,
        /// The machine.
        machine: String,
        /// What it has.
        has: String,
    },
    /// A kernel that no SM can hold, or a cooperative one that is not resident at once.
    #[error("{0}")]
    DoesNotFit(String),
    /// The machine's links cannot do what the design asks of them.
    #[error("design {design} turns lanes (links = \"turning\"), machine {machine} has none to turn: {reason}")]
    Links {
        /// The design.
        design: String,
        /// The machine.
        machine: String,
        /// Why, by key.
        reason: &'static str,
    },
    /// The recording is damaged.
    #[error("{0}")]
    Stream(#[from] StreamError),
    /// The program cannot be labelled as the design asks.
    #[error("{0}")]
    Labels(#[from] LabelError),
    /// More simulated time than the model can tell apart.
    #[error("the program takes more than {:.0} s of simulated time, the most that can be simulated", HORIZON.seconds())]
    TooLong,
    /// Nothing can happen any more and the program has not ended.
    #[error("the run cannot advance at {at}; who waits for whom:\n{report}")]
    Stuck {
        /// When.
        at: Ps,
        /// One line a waiter.
        report: String,
    },
}

/// Lines of a report of who waits for whom.
const REPORT_LINES: usize = 40;

/// Lines that an earlier program left in the memory-side caches, the latest used last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// The first line.
    pub first: Line,
    /// How many.
    pub lines: u64,
    /// Whether memory has yet to be written.
    pub dirty: bool,
}

/// Runs a program to its end.
///
/// # Errors
/// See [`RunError`].
pub fn run(spec: &RunSpec) -> Result<RunRecord, RunError> {
    run_warm(spec, &[])
}

/// Runs a program to its end on a machine whose memory-side caches hold what fits of `resident`.
///
/// # Errors
/// See [`RunError`].
pub fn run_warm(spec: &RunSpec, resident: &[Resident]) -> Result<RunRecord, RunError> {
    Ok(dispatch::<()>(spec, Extras { resident, ..Extras::default() }, &())?.record)
}

/// Runs a program to its end and keeps what was done at each kernel boundary, whether or not the design elides any. The record
/// is that of [`run`], with their sums.
///
/// # Errors
/// See [`RunError`].
pub fn run_logged(spec: &RunSpec) -> Result<(RunRecord, Vec<BoundaryRecord>), RunError> {
    let finished = dispatch::<()>(spec, Extras { logs: true, ..Extras::default() }, &())?;
    Ok((finished.record, finished.boundaries))
}

/// Runs a program to its end and keeps what the links between GPUs did, in windows of `window`. The record is that of
/// [`run`].
///
/// # Errors
/// See [`RunError`].
pub fn run_timed(spec: &RunSpec, window: Ps) -> Result<(RunRecord, Timeline), RunError> {
    let finished = dispatch::<()>(spec, Extras { window: Some(window), ..Extras::default() }, &())?;
    Ok((finished.record, finished.timeline.expect("it was asked for")))
}

/// Runs a program whose lines carry versions, and holds every load to the memory model. The record is that of
/// [`run`], but for what it cost and what was found. `broken`: a rule broken on purpose, to see it caught.
///
/// # Errors
/// See [`RunError`].
pub fn run_checked(spec: &RunSpec, broken: impl Into<Broken>) -> Result<RunRecord, RunError> {
    let checker = Arc::new(Checker::new(spec.machine.line, spec.program.arrays()));
    let record = run_watched::<Versions>(spec, &checker, broken)?;
    Ok(RunRecord { check: Some(checker.checked()), ..record })
}

/// Runs a program whose lines carry contents of the caller's, and tells `watch` what happens. `broken`: a rule broken on
/// purpose.
///
/// # Errors
/// See [`RunError`].
pub fn run_watched<D: Contents>(
    spec: &RunSpec,
    watch: &D::Watch,
    broken: impl Into<Broken>,
) -> Result<RunRecord, RunError> {
    Ok(dispatch::<D>(spec, Extras { broken: broken.into(), ..Extras::default() }, watch)?.record)
}

/// Rules that are broken on purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Broken {
    /// Of coherence.
    pub rule: Option<BrokenRule>,
    /// Of pages that move.
    pub paging: Option<BrokenPaging>,
}

impl From<Option<BrokenRule>> for Broken {
    fn from(rule: Option<BrokenRule>) -> Broken {
        Broken { rule, paging: None }
    }
}

impl From<BrokenPaging> for Broken {
    fn from(paging: BrokenPaging) -> Broken {
        Broken { rule: None, paging: Some(paging) }
    }
}

/// Optional inputs: warm caches, an injected fault, a timeline.
#[derive(Clone, Copy, Default)]
struct Extras<'a> {
    /// What memory-side caches hold at the start.
    resident: &'a [Resident],
    /// What is broken.
    broken: Broken,
    /// Length of the timeline's windows, where there is to be one.
    window: Option<Ps>,
    /// Whether boundaries are kept.
    logs: bool,
}

/// What a run leaves.
struct Finished {
    record: RunRecord,
    /// Where one was asked for.
    timeline: Option<Timeline>,
    /// Where they were kept.
    boundaries: Vec<BoundaryRecord>,
}

/// Picks the protocol.
fn dispatch<D: Contents>(spec: &RunSpec, extras: Extras<'_>, watch: &D::Watch) -> Result<Finished, RunError> {
    check(spec)?;
    let mut built = spec.design.build(&spec.machine).map_err(|unfit| RunError::of(spec, &unfit))?;
    built.sharing.paging.broken = extras.broken.paging;
    let elides = matches!(built.boundaries, Decider::Table { .. });
    let known = if elides || extras.logs { Some(Known::find(spec)?) } else { None };
    let pages = match (&known, &spec.pages) {
        (Some(known), _) => Arc::clone(known.pages()),
        (None, Some(pages)) => Arc::clone(pages),
        (None, None) => place(&spec.machine, &spec.design, &*spec.program)?,
    };
    let boundaries = elision::boundaries(spec, &built, known.as_ref())?;
    let (name, options) = (built.protocol, Options { broken_rule: extras.broken.rule, ..built.options });
    let scheduled = scheduled(spec, &built.sharing)?;
    let simulation = Simulation::<D> { spec, built, pages, boundaries, known, scheduled, extras, watch };
    let run = if D::BREAKABLE { choose(name, options, simulation) } else { choose_whole(name, options, simulation) };
    run.expect("a design's protocol is one of the catalogue")
}

impl RunError {
    /// Why the design of `spec` does not fit its machine.
    fn of(spec: &RunSpec, unfit: &Unfit) -> RunError {
        let (design, machine) = (&spec.design.name, &spec.machine.name);
        match unfit {
            Unfit::Links(reason) => RunError::Links { design: design.clone(), machine: machine.clone(), reason },
            Unfit::Elision { most, modules } => RunError::DoesNotFit(format!(
                "design {design}: a chiplet table names at most {most} modules, machine {machine} has {modules}"
            )),
            Unfit::Pages => RunError::DoesNotFit(format!(
                "design {design} moves pages between GPUs of one module each, and those of machine {machine} have several"
            )),
            Unfit::Directory { most, modules } => RunError::DoesNotFit(format!(
                "design {design}: a directory entry names at most {most} modules, machine {machine} has {modules}"
            )),
        }
    }
}

/// Whether the program can run on the machine at all.
fn check(spec: &RunSpec) -> Result<(), RunError> {
    let (machine, program) = (&spec.machine, &spec.program);
    let mismatch = |recorded: String, has: String| {
        Err(RunError::Mismatch { program: program.name().into(), recorded, machine: machine.name.clone(), has })
    };
    if program.line_size() != machine.line {
        let bytes = |size: tombolo_types::LineSize| format!("lines of {} B", size.bytes());
        return mismatch(bytes(program.line_size()), bytes(machine.line));
    }
    if program.warp_width() > machine.sm.warp_width {
        // A narrower one runs with idle lanes.
        let lanes = |width: u32| format!("warps of {width} lanes");
        return mismatch(lanes(program.warp_width()), lanes(machine.sm.warp_width));
    }
    for kernel in program.kernels() {
        let resident = residency(machine, kernel, program.warp_width()).map_err(RunError::DoesNotFit)?;
        let room = u64::from(resident) * machine.topology.sms() as u64;
        let modules = machine.topology.modules() as u64;
        let alone = machine.topology.gpus == 1 || spec.design.placement.sharing().shows_at_once();
        if kernel.class == KernelClass::Cooperative && !alone {
            return Err(RunError::DoesNotFit(format!(
                "kernel {}: its CTAs wait for each other, and under design {} a GPU sees what another one writes behind a \
                 kernel alone",
                kernel.name, spec.design.name
            )));
        }
        let largest_share = u64::from(kernel.ctas).div_ceil(modules) * modules;
        if kernel.class == KernelClass::Cooperative && largest_share > room {
            return Err(RunError::DoesNotFit(format!(
                "kernel {}: its {} CTAs wait for each other and machine {} holds {room} at once",
                kernel.name, kernel.ctas, machine.name
            )));
        }
    }
    Ok(())
}

/// A run that lacks its protocol.
struct Simulation<'a, D: Contents> {
    spec: &'a RunSpec,
    built: Built,
    pages: Arc<PageTable>,
    boundaries: Boundaries,
    /// What is known of the program, where boundaries are kept.
    known: Option<Known>,
    scheduled: Scheduled,
    extras: Extras<'a>,
    watch: &'a D::Watch,
}

impl<D: Contents> Visitor for Simulation<'_, D> {
    type Output = Result<Finished, RunError>;

    fn visit<P: Coherence>(self, protocol: P) -> Self::Output {
        let Simulation { spec, built, pages, boundaries, known, scheduled, extras, watch } = self;
        let machine = Arc::clone(&built.machine);
        let layout = layout(&machine);
        let Scheduled { schedule, notes } = scheduled;
        let driver = driver(&built, &pages, &schedule);
        let map = Map::new(&machine, pages);
        let shared = Shared { map: &map, extents: boundaries.extents(), schedule: &schedule, driver: &driver, watch };
        let mut modules = modules::<_, D>(spec, &built, protocol, &shared);
        warm(&mut modules, &map, extras.resident);
        let fabric = links::fabric(&built, layout, extras.window);
        let hub = Beside { fabric, boundaries, driver, schedule };
        let mut engine = build(spec, &built, hub, protocol, &map, modules);
        let started = Instant::now();
        let stats = engine.run(spec.threads);
        let wall = started.elapsed().as_secs_f64();
        let parts = engine.into_partitions();
        let ended = Ended { spec, machine: &machine, stats, wall };
        let record = ended.record(&parts)?;
        let timeline = extras.window.map(|window| ended.timeline(&parts, &record, window));
        let (boundaries, elision) = known.map(|known| ended.boundaries(&known, &parts)).unzip();
        let record = RunRecord { elision, notes, ..record };
        Ok(Finished { record, timeline, boundaries: boundaries.unwrap_or_default() })
    }
}

/// What modules have in common.
struct Shared<'a, D: Contents> {
    map: &'a Map,
    extents: &'a Extents,
    schedule: &'a Arc<Schedule>,
    driver: &'a Driver,
    watch: &'a D::Watch,
}

/// What stands beside them.
struct Beside<D: Contents> {
    fabric: Fabric<D>,
    boundaries: Boundaries,
    driver: Driver,
    schedule: Arc<Schedule>,
}

/// The driver, idle.
fn driver(built: &Built, pages: &Arc<PageTable>, schedule: &Arc<Schedule>) -> Driver {
    let Sharing { paging, pins, .. } = built.sharing;
    let (machine, layout) = (&*built.machine, layout(&built.machine));
    let (pages, schedule) = (Arc::clone(pages), Arc::clone(schedule));
    Driver::new(DriverConfig { machine, layout, paging, pins, pages, schedule })
}

/// The modules, idle.
fn modules<C: Coherence, D: Contents>(
    spec: &RunSpec,
    built: &Built,
    protocol: C,
    shared: &Shared<'_, D>,
) -> Vec<Module<C, D>> {
    let layout = layout(&built.machine);
    let (sharing, cargo) = (&built.sharing, Cargo::default());
    let module = |module| {
        let machine = Arc::clone(&built.machine);
        let mut map = shared.map.clone();
        if sharing.moves() {
            map = map.seen(View::new(module, sharing.paging.everybody));
            shared.driver.hosted().for_each(|page| map.refuse(page));
        }
        let site = Site {
            module,
            protocol,
            layout,
            map,
            weights: Weights::new(&machine),
            machine,
            watch: shared.watch.clone(),
            extents: shared.extents.clone(),
            schedule: Arc::clone(shared.schedule),
            paging: sharing.paging,
            cargo: cargo.clone(),
        };
        Module::new(site, built, Arc::clone(&spec.program))
    };
    (0..layout.modules).map(ModuleId).map(module).collect()
}

/// Puts what is resident into the memory-side caches.
fn warm<C: Coherence, D: Contents>(modules: &mut [Module<C, D>], map: &Map, resident: &[Resident]) {
    for &Resident { first, lines, dirty } in resident {
        for line in (first.0..first.0 + lines).map(Line) {
            modules[usize::from(map.home(ModuleId(0), line).0)].warm(line, dirty);
        }
    }
}

fn build<C: Coherence, D: Contents>(
    spec: &RunSpec,
    built: &Built,
    Beside { fabric, boundaries, driver, schedule }: Beside<D>,
    protocol: C,
    map: &Map,
    modules: Vec<Module<C, D>>,
) -> Engine<Part<C, D>> {
    let (machine, turns) = (&built.machine, built.turning.is_some());
    let layout = layout(machine);
    let command_processor =
        CommandProcessor::new(machine, layout, Arc::clone(&spec.program), boundaries, schedule, turns);
    let cut = Cut::of(machine);
    let hub = Hub::new(fabric, command_processor, driver, (protocol, map.clone()));
    let partitions = cut.partitions(layout, modules, hub);
    let mut engine = Engine::new(partitions, cut.homes(layout), cut.lookahead(machine));
    let id = layout.command_processor();
    engine.schedule(Ps::ZERO, id, id, Message::Next);
    engine
}

/// A run that has come to its end, one way or the other.
struct Ended<'a> {
    spec: &'a RunSpec,
    machine: &'a MachineConfig,
    stats: EngineStats,
    wall: f64,
}

impl Ended<'_> {
    /// What was done at kernel boundaries, and its sums.
    fn boundaries<C: Coherence, D: Contents>(
        &self,
        known: &Known,
        parts: &[Part<C, D>],
    ) -> (Vec<BoundaryRecord>, ElisionRecord) {
        let hub = parts.iter().find_map(|part| part.hub.as_ref()).expect("one partition holds the hub");
        let reading = Reading { spec: self.spec, known, log: hub.command_processor.boundaries().log() };
        let records = reading.records();
        let sum = reading.sum(&records);
        (records, sum)
    }

    fn record<C: Coherence, D: Contents>(&self, parts: &[Part<C, D>]) -> Result<RunRecord, RunError> {
        let hub = parts.iter().find_map(|part| part.hub.as_ref()).expect("one partition holds the hub");
        let modules: Vec<&Module<C, D>> = parts.iter().flat_map(|part| &part.modules).collect();
        if let Some(message) = modules.iter().find_map(|module| module.controller().failure.clone()) {
            return Err(RunError::Stream(StreamError { message }));
        }
        if !hub.command_processor.is_done() {
            let stuck = || self.stuck(&hub.command_processor, &modules);
            return Err(if self.stats.beyond { RunError::TooLong } else { stuck() });
        }
        let (mut sm, mut l2) = (SmStats::default(), L2Stats::default());
        let (mut dram, mut memory_cache) = (DramRecord::default(), MemoryCacheRecord::default());
        let mut traffic = Traffic::default();
        for module in &modules {
            traffic.merge(module.slice_shared().traffic);
            module.sms().iter().for_each(|one| sm.merge(&one.stats));
            l2.merge(&module.slice_shared().stats);
            dram.add(module.slice_shared().memory.dram());
            memory_cache.add(module.slice_shared().memory.cache());
        }
        let (processor, sharing) = (&hub.command_processor, self.spec.design.placement.sharing());
        let end = processor.ended();
        let links = links::records(self.machine, &hub.fabric, &modules, end);
        let digests = Self::digests(parts, (&sm, &l2), &links, end);
        let gpu_bytes = links.iter().filter(|link| link.name.starts_with("gpu") && link.name.ends_with("out"));
        let inter_gpu_bytes = gpu_bytes.map(|link| link.bytes).sum();
        Ok(RunRecord {
            tombolo: env!("CARGO_PKG_VERSION").into(),
            machine: self.machine.name.clone(),
            design: self.spec.design.name.clone(),
            workload: self.spec.program.name().into(),
            scale: self.machine.scale.to_string(),
            time_s: end.seconds(),
            time: launches::time(processor),
            cycles: self.machine.sm.clock.cycle_at_or_after(end),
            kernel_launches: processor.kernels().len() as u64,
            warp_instructions: sm.warp_instructions,
            memory_instructions: sm.memory_instructions,
            transactions: sm.transactions,
            l1: L1Record { accesses: sm.transactions, loads: sm.l1_loads, hits: sm.l1_hits, merges: sm.l1_merges },
            l2: L2Record {
                accesses: l2.reads + l2.writes + l2.atomics + l2.atomics_passed,
                loads: l2.reads,
                hits: l2.read_hits,
                merges: l2.merges,
                remote_loads: l2.remote_reads,
                remote_hits: l2.remote_read_hits,
            },
            energy_pj: self.energy((&sm, &l2, memory_cache, dram), traffic, &links, inter_gpu_bytes),
            gpus: launches::gpus(self.machine, &modules, &links),
            links,
            inter_gpu_bytes,
            dram,
            memory_cache,
            traffic_flits: self.traffic(traffic, &modules),
            elision: None,
            paging: sharing.moves().then(|| PagingRecord::new(self.machine, &hub.driver.stats)),
            copies: self.copies(&modules, processor),
            coherence: l2.named().map(|(name, count)| (name.to_owned(), count)).collect(),
            ways: way_moves(&modules),
            local_ways: local_ways(&modules),
            sm: sm.named().map(|(name, count)| (name.to_owned(), count)).collect(),
            digest: digests[0].to_string(),
            statistics_digest: digests[1].to_string(),
            kernels: launches::records(self.machine, &*self.spec.program, processor, &modules),
            check: None,
            notes: Vec::new(),
            host: self.host(&sm),
        })
    }

    /// Of the simulated result: every event, and what the machine did by name. Of the statistics: what observes it.
    fn digests<C: Coherence, D: Contents>(
        parts: &[Part<C, D>],
        (sm, l2): (&SmStats, &L2Stats),
        links: &[LinkRecord],
        end: Ps,
    ) -> [Digest; 2] {
        let [mut digest, mut statistics] = [Digest::default(); 2];
        parts.iter().for_each(|part| digest.merge(part.digest));
        digest.value("end", end.0);
        for link in links {
            digest.value(&format!("{}.bytes", link.name), link.bytes);
            digest.value(&format!("{}.lanes_turned", link.name), link.lanes_turned);
        }
        let named =
            |level, count: (&str, u64), digest: &mut Digest| digest.value(&format!("{level}.{}", count.0), count.1);
        sm.results().for_each(|count| named("sm", count, &mut digest));
        l2.results().for_each(|count| named("l2", count, &mut digest));
        sm.statistics().for_each(|count| named("sm", count, &mut statistics));
        l2.statistics().for_each(|count| named("l2", count, &mut statistics));
        [digest, statistics]
    }

    /// Of a design that copies.
    fn copies<C: Coherence, D: Contents>(
        &self,
        modules: &[&Module<C, D>],
        processor: &CommandProcessor,
    ) -> Option<CopiesRecord> {
        let copies = match self.spec.design.placement.sharing().movement {
            Movement::Copies(_) | Movement::Hints { .. } => true,
            Movement::Placed | Movement::Faults | Movement::LatestWriter => false,
        };
        let engines = modules.iter().map(|module| &module.copy_engine().stats);
        copies.then(|| CopiesRecord::new(engines, processor.exposed()))
    }

    /// In flits, of a machine with caches in front of memory.
    fn traffic<C: Coherence, D: Contents>(&self, traffic: Traffic, modules: &[&Module<C, D>]) -> Option<TrafficRecord> {
        let flits = |bytes: Bytes| bytes.0 / self.machine.messages.flit_bytes;
        let remote = modules.iter().map(|module| flits(module.slice_shared().port.stats().bytes())).sum();
        let record = TrafficRecord { l1_l2: flits(traffic.l1_l2), l2_l3: flits(traffic.l2_l3), remote };
        (self.machine.memory_cache.bytes > Bytes(0)).then_some(record)
    }

    fn host(&self, sm: &SmStats) -> HostRecord {
        HostRecord {
            wall_s: self.wall,
            warp_instructions_per_s: sm.warp_instructions as f64 / self.wall,
            transactions_per_s: sm.transactions as f64 / self.wall,
            peak_rss_bytes: peak_rss_bytes(),
            threads: self.stats.threads,
            events: self.stats.events,
        }
    }

    fn timeline<C: Coherence, D: Contents>(&self, parts: &[Part<C, D>], record: &RunRecord, window: Ps) -> Timeline {
        let hub = parts.iter().find_map(|part| part.hub.as_ref()).expect("one partition holds the hub");
        let tracks = links::tracks(self.machine, &hub.fabric);
        Timeline { window, tracks, kernels: record.kernels.clone(), ways: record.local_ways.clone() }
    }

    fn energy(
        &self,
        (sm, l2, l3, dram): (&SmStats, &L2Stats, MemoryCacheRecord, DramRecord),
        traffic: Traffic,
        links: &[LinkRecord],
        inter_gpu_bytes: u64,
    ) -> Energy {
        let line = self.machine.line.bytes();
        // The port of a module that is the whole GPU is that of the GPU: nothing lies between.
        let divided = self.machine.topology.modules_per_gpu > 1;
        let of_modules = links.iter().filter(|link| divided && link.name.starts_with("module"));
        let module_links = of_modules.map(|link| link.bytes).sum();
        let lookups = l2.reads + l2.writes + l2.atomics + l2.atomics_passed - l2.passed;
        let moved = Moved {
            instructions: sm.warp_instructions,
            l1: Bytes(sm.transactions * line),
            scratchpad_passes: sm.scratchpad_passes,
            l2: Bytes(lookups * line),
            l2_fills: Bytes(l2.fill_bytes + l2.write_back_bytes),
            l3: Bytes(l3.accesses * line),
            traffic,
            dram: Bytes(dram.read_bytes + dram.write_bytes),
            module_links: Bytes(module_links),
            gpu_links: Bytes(inter_gpu_bytes),
        };
        Energy::of(&moved, &self.machine.energy)
    }

    fn stuck<C: Coherence, D: Contents>(&self, processor: &CommandProcessor, modules: &[&Module<C, D>]) -> RunError {
        let mut lines = vec![processor.waiting()];
        for module in modules {
            let name = module.id();
            lines.extend(module.controller().waiting().map(|line| format!("{name}: {line}")));
            lines.extend(module.sms().iter().flat_map(|sm| sm.waiting()).map(|line| format!("{name} {line}")));
            let slices = module.slices().iter().enumerate();
            lines.extend(slices.flat_map(|(index, slice)| {
                slice.waiting().map(move |(what, line)| format!("{name} slice{index}: {line} in {what}"))
            }));
        }
        let more = lines.len().saturating_sub(REPORT_LINES);
        lines.truncate(REPORT_LINES);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        RunError::Stuck { at: self.stats.last_event, report: lines.join("\n") }
    }
}

/// The most memory this process has held, from the kernel's own account.
fn peak_rss_bytes() -> u64 {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return 0 };
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.trim().strip_suffix("kB")).and_then(|kb| kb.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
