//! A run after its end: builds the record, or the deadlock report.

use crate::counters::ModuleCounters;
use crate::elision::{BoundaryLogReader, BoundaryRecord, ElisionRecord, ProgramUses};
use crate::energy::{ActivityCounts, Energy};
use crate::host::{blocks, phases};
use crate::latency;
use crate::launches;
use crate::links::RunLinks;
use crate::paging::{CopiesRecord, copies, paging};
use crate::partition::{MachinePart, hub};
use crate::publication::publication;
use crate::record::{
    DramRecord, GpuRecord, HostRecord, L1Record, L2Record, LinkRecord, MemoryCacheRecord, RunRecord, TrafficRecord,
};
use crate::run::{RunError, RunSpec};
use crate::stalls::{QueueRecord, QueuedRecord, StallRecord, WarpSlots};
use crate::timeline::{ModuleTrack, Timeline};
use crate::utilization::{BusyTimes, utilization};
use crate::ways::{local_ways, way_moves};
use tombolo_design::placement::Movement;
use tombolo_engine::EngineStats;
use tombolo_machine::MachineConfig;
use tombolo_model::fabric::LevelTraffic;
use tombolo_model::front_end::{CommandProcessor, Driver};
use tombolo_model::l2::L2Design;
use tombolo_model::observe::{Contents, Digest, L2Stats, Latencies, LoadServer, SmStats};
use tombolo_types::stream::StreamError;
use tombolo_types::{Bytes, GpuId, Ps};

/// Maximum number of lines in a deadlock report; a final line counts the omitted lines.
const REPORT_LINES: usize = 40;

/// A run that has ended, by completion or by deadlock, with the engine's statistics.
pub(crate) struct EndedRun<'a> {
    pub(crate) spec: &'a RunSpec,
    pub(crate) machine: &'a MachineConfig,
    pub(crate) stats: EngineStats,
    pub(crate) wall: f64,
    /// True if load latencies were tracked.
    pub(crate) follows: bool,
}

impl EndedRun<'_> {
    /// Operations at kernel boundaries, and their sums.
    pub(crate) fn boundaries(
        &self,
        known: &ProgramUses,
        processor: &CommandProcessor,
    ) -> (Vec<BoundaryRecord>, ElisionRecord) {
        let reading = BoundaryLogReader { spec: self.spec, known, log: processor.boundaries().log() };
        let records = reading.records();
        let sum = reading.sum(&records);
        (records, sum)
    }

    pub(crate) fn record<C: L2Design<D>, D: Contents>(
        &self,
        parts: &[MachinePart<C, D>],
    ) -> Result<RunRecord, RunError> {
        let hub = hub(parts);
        let links = RunLinks::of(parts);
        let mut events = Digest::default();
        parts.iter().for_each(|part| events.merge(part.digest));
        let beside = HubView { processor: &hub.command_processor, driver: &hub.driver, events };
        self.record_of(&modules(parts), &beside, &|modules, end| links.records(self.machine, modules, end))
    }

    /// Record for a run. `all`: the GPU modules, followed by the host's module. `links` builds the link records.
    fn record_of(
        &self,
        all: &[&dyn ModuleCounters],
        beside: &HubView<'_>,
        links: &RecordLinks<'_>,
    ) -> Result<RunRecord, RunError> {
        let modules: Vec<&dyn ModuleCounters> = all.iter().copied().filter(|module| module.cpu().is_none()).collect();
        if let Some(failure) = modules.iter().find_map(|module| module.failure()) {
            return Err(RunError::Stream(StreamError { message: failure.to_owned() }));
        }
        if !beside.processor.is_done() {
            let deadlock = || self.deadlock(beside, all);
            return Err(if self.stats.beyond { RunError::TooLong } else { deadlock() });
        }
        let host = all.iter().copied().find(|module| module.cpu().is_some());
        let cpu = host.and_then(|module| module.cpu());
        let (mut sm, mut l2) = (SmStats::default(), L2Stats::default());
        let (mut dram, mut memory_cache) = (DramRecord::default(), MemoryCacheRecord::default());
        let mut traffic = LevelTraffic::default();
        for module in &modules {
            module.sms().iter().for_each(|one| sm.merge(one.stats));
            l2.merge(&module.l2_stats());
            dram.merge(&module.dram().record());
            let memory = module.memory();
            traffic.merge(memory.traffic);
            memory.caches.iter().for_each(|stats| memory_cache.merge(stats));
        }
        let (processor, sharing) = (beside.processor, self.spec.design.placement.sharing());
        let end = processor.ended();
        let links = links(&modules, end);
        let slots = WarpSlots { machine: self.machine, processor, modules: &modules, follows: self.follows };
        let gpus = launches::gpus(&slots, &links);
        let busy: Vec<BusyTimes> = modules.iter().map(|module| BusyTimes::of(*module)).collect();
        let mut latencies = Latencies::default();
        modules.iter().for_each(|module| latencies.merge(&module.sm_shared().latencies));
        let observed = Observations { gpus: &gpus, busy: &busy, latencies: &latencies };
        let digests = Self::digests(beside.events, (&sm, &l2), (&links, end), &observed);
        let gpu_bytes = links.iter().filter(|link| link.name.starts_with("gpu") && link.name.ends_with("out"));
        let inter_gpu_bytes = gpu_bytes.map(|link| link.bytes).sum();
        Ok(RunRecord {
            tombolo: env!("CARGO_PKG_VERSION").into(),
            machine: self.machine.name.clone(),
            design: self.spec.design.name.clone(),
            workload: self.spec.program.name().into(),
            scale: self.machine.scale.to_string(),
            time_s: end.seconds(),
            time: launches::time(processor, &modules),
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
            energy_pj: self.energy((&sm, &l2, memory_cache, dram), traffic, &links),
            stalls: gpus.iter().fold(StallRecord::default(), |sum, gpu| sum.and(&gpu.stalls)),
            latency: self.follows.then(|| latency::record(&latencies)),
            gpus,
            modules: launches::modules(&slots),
            links,
            utilization: utilization(&busy, end),
            inter_gpu_bytes,
            dram,
            memory_cache,
            traffic_flits: self.traffic(traffic, &modules),
            iteration: None,
            sampling: None,
            elision: None,
            paging: sharing.moves().then(|| paging(self.machine, &beside.driver.stats)),
            copies: self.copies(all, processor),
            publication: publication(self.machine, &modules, beside.driver),
            phases: cpu.map(|cpu| phases(processor, &modules, cpu.done())),
            host_memory: host.map(|host| host.dram().record()),
            blocks: blocks(self.machine, all),
            coherence: l2.named().map(|(name, count)| (name.to_owned(), count)).collect(),
            ways: way_moves(&modules),
            local_ways: local_ways(&modules),
            sm: sm.named().map(|(name, count)| (name.to_owned(), count)).collect(),
            digest: digests[0].to_string(),
            statistics_digest: digests[1].to_string(),
            kernels: launches::records(&*self.spec.program, &slots),
            check: None,
            notes: Vec::new(),
            host: self.host(&sm),
        })
    }

    /// Two digests. The first covers the simulated result: every event, and the machine's named counters. The second
    /// covers the observing statistics.
    fn digests(
        events: Digest,
        (sm, l2): (&SmStats, &L2Stats),
        (links, end): (&[LinkRecord], Ps),
        observed: &Observations<'_>,
    ) -> [Digest; 2] {
        let (mut digest, mut statistics) = (events, Digest::default());
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
        observed.mix(&mut statistics);
        [digest, statistics]
    }

    /// Copy statistics, for a design that copies.
    fn copies(&self, modules: &[&dyn ModuleCounters], processor: &CommandProcessor) -> Option<CopiesRecord> {
        let copied = match self.spec.design.placement.sharing().movement {
            Movement::Copies { .. } | Movement::Hints { .. } | Movement::HostCopies(_) => true,
            Movement::Placed | Movement::Faults | Movement::LatestWriter | Movement::Published { .. } => false,
        };
        let engines = modules.iter().map(|module| &module.copy_engine().stats);
        copied.then(|| copies(engines, processor.around_commands()))
    }

    /// Traffic in flits, for a machine with memory-side caches.
    fn traffic(&self, traffic: LevelTraffic, modules: &[&dyn ModuleCounters]) -> Option<TrafficRecord> {
        let flits = |bytes: Bytes| bytes.0 / self.machine.messages.flit_bytes;
        let remote = modules.iter().map(|module| flits(module.port().stats().bytes())).sum();
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

    pub(crate) fn timeline<C: L2Design<D>, D: Contents>(
        &self,
        parts: &[MachinePart<C, D>],
        record: &RunRecord,
        window: Ps,
    ) -> Timeline {
        let tracks = RunLinks::of(parts).tracks(self.machine);
        let modules_per_gpu = self.machine.topology.modules_per_gpu;
        let end = hub(parts).command_processor.ended();
        let all = modules(parts).into_iter().filter(|module| module.cpu().is_none());
        let module = |module: &dyn ModuleCounters| {
            let mut samples = module.activity().map_or_else(Vec::new, |kept| kept.samples().to_vec());
            samples.push(module.sample(end));
            ModuleTrack { module: module.id(), gpu: GpuId(module.id().0 / modules_per_gpu), samples }
        };
        Timeline {
            window,
            tracks,
            modules: all.map(module).collect(),
            module_rate: (modules_per_gpu > 1).then_some(self.machine.module_link.rate),
            kernels: record.kernels.clone(),
            ways: record.local_ways.clone(),
        }
    }

    fn energy(
        &self,
        (sm, l2, l3, dram): (&SmStats, &L2Stats, MemoryCacheRecord, DramRecord),
        traffic: LevelTraffic,
        links: &[LinkRecord],
    ) -> Energy {
        let line = self.machine.line.bytes();
        // If a module is the whole GPU, its port is also the GPU's port: no link lies in between.
        let divided = self.machine.topology.modules_per_gpu > 1;
        let of_modules = links.iter().filter(|link| divided && link.name.starts_with("module"));
        let module_links = of_modules.map(|link| link.bytes).sum();
        // Each link end counts its own transmissions; for a host's own links, both directions carry the host's name.
        let sends =
            |name: &str| name.starts_with("host.gpu") || (!name.starts_with("module") && name.ends_with(".out"));
        let gpu_links = links.iter().filter(|link| sends(&link.name)).map(|link| link.bytes).sum();
        let lookups = l2.reads + l2.writes + l2.atomics + l2.atomics_passed - l2.passed;
        let moved = ActivityCounts {
            instructions: sm.warp_instructions,
            l1: Bytes(sm.transactions * line),
            scratchpad_passes: sm.scratchpad_passes,
            l2: Bytes(lookups * line),
            l2_fills: Bytes(l2.fill_bytes + l2.write_back_bytes),
            l3: Bytes(l3.accesses * line),
            traffic,
            dram: Bytes(dram.read_bytes + dram.write_bytes),
            module_links: Bytes(module_links),
            gpu_links: Bytes(gpu_links),
        };
        moved.energy(&self.machine.energy)
    }

    fn deadlock(&self, beside: &HubView<'_>, modules: &[&dyn ModuleCounters]) -> RunError {
        let mut lines = vec![beside.processor.waiting()];
        lines.extend(beside.driver.waiting());
        lines.extend(modules.iter().flat_map(|module| module.waiting()));
        let more = lines.len().saturating_sub(REPORT_LINES);
        lines.truncate(REPORT_LINES);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        RunError::Stuck { at: self.stats.last_event, report: lines.join("\n") }
    }
}

/// Builds the link records from the GPU modules and the end of the run.
type RecordLinks<'a> = dyn Fn(&[&dyn ModuleCounters], Ps) -> Vec<LinkRecord> + 'a;

/// Components in the hub, and the digest over all events.
struct HubView<'a> {
    processor: &'a CommandProcessor,
    driver: &'a Driver,
    events: Digest,
}

/// Modules in all partitions, the host's module last.
fn modules<C: L2Design<D>, D: Contents>(parts: &[MachinePart<C, D>]) -> Vec<&dyn ModuleCounters> {
    parts.iter().flat_map(|part| &part.modules).map(|module| module as &dyn ModuleCounters).collect()
}

/// Observations that do not influence a run, besides counters.
struct Observations<'a> {
    gpus: &'a [GpuRecord],
    busy: &'a [BusyTimes],
    latencies: &'a Latencies,
}

impl Observations<'_> {
    /// Mixes each number into the digest by name.
    fn mix(&self, statistics: &mut Digest) {
        for GpuRecord { name, stalls, .. } in self.gpus {
            stalls
                .named()
                .iter()
                .for_each(|(class, cycles)| statistics.value(&format!("{name}.stalls.{class}"), *cycles));
            for (class, QueueRecord { link, slice, dram }) in stalls.queued.iter().flat_map(QueuedRecord::named) {
                let queues = [("link", link), ("slice", slice), ("dram", dram)];
                queues.iter().for_each(|(queue, cycles)| {
                    statistics.value(&format!("{name}.stalls.queued.{class}.{queue}"), *cycles);
                });
            }
        }
        self.busy.iter().flat_map(BusyTimes::named).for_each(|(name, value)| statistics.value(&name, value));
        for served in LoadServer::ALL {
            let (named, served) = (self.latencies.of(served).named(), served.name());
            named.for_each(|(name, value)| statistics.value(&format!("latency.{served}.{name}"), value));
        }
    }
}

/// Peak memory held by this process, as reported by the operating system.
fn peak_rss_bytes() -> u64 {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return 0 };
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.trim().strip_suffix("kB")).and_then(|kb| kb.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
