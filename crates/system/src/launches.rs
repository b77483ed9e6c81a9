//! The launches of a run, and how the run's time divides among launches, GPUs and modules.

use crate::counters::ModuleCounters;
use crate::record::{GpuRecord, KernelRecord, LinkRecord, ModuleRecord};
use crate::stalls::WarpSlots;
use crate::time::{Span, TimeRecord, TimeSplit, union};
use tombolo_model::front_end::{CommandProcessor, DriverOperation, TimeRange};
use tombolo_model::sm::{KernelStats, LaunchTimes};
use tombolo_types::GpuId;
use tombolo_types::stream::Program;

/// Splits the run's time. A release that waited for a host read, or for the program's end, counts as kernel time. No
/// other work in the host program takes time in this record.
pub(crate) fn time(processor: &CommandProcessor, modules: &[&dyn ModuleCounters]) -> TimeRecord {
    let kernels = processor.kernels().iter().map(|one| Span { start: one.start, end: one.end });
    let span = |ran: &TimeRange| Span { start: ran.start, end: ran.end };
    let releases = processor.host_releases().iter().chain(processor.final_releases()).map(span);
    let kernels: Vec<Span> = kernels.chain(releases).collect();
    let around = processor.around_commands().iter().map(|wait| &wait.time);
    let copies = processor.copies().iter().chain(around);
    let copies: Vec<Span> = copies.map(span).collect();
    let whole = processor.ended();
    let mut split = TimeSplit::of(&kernels, &copies, &[], whole);
    // Copies sent after the last kernel belong to the region, because other GPUs need the data. Copies from the host
    // for the first kernel also belong to it.
    let opened = processor.kernels().iter().map(|kernel| kernel.start);
    let from_host = processor.around_commands().iter().filter(|wait| wait.operation == DriverOperation::FromHost);
    let opened = opened.chain(from_host.map(|wait| wait.time.start)).min();
    let ended = processor.kernels().iter().map(|kernel| kernel.end);
    let ended = ended.chain(processor.around_commands().last().map(|wait| wait.time.end)).max();
    if let (Some(opened), Some(ended)) = (opened, ended) {
        split.region = split.region.max(ended.saturating_sub(opened));
    }
    let paces = || modules.iter().flat_map(|module| module.controller().dispatcher().paces());
    let as_span = |(start, end)| Span { start, end };
    split.ctas = union(&mut paces().filter_map(LaunchTimes::ran).map(as_span).collect::<Vec<_>>());
    split.drained = union(&mut paces().map(LaunchTimes::busy).map(as_span).collect::<Vec<_>>());
    split.record(whole)
}

/// Builds a record for each launch, in launch order.
pub(crate) fn records(program: &dyn Program, slots: &WarpSlots<'_>) -> Vec<KernelRecord> {
    let WarpSlots { machine, processor, modules, .. } = *slots;
    let named = program.kernels();
    let topology = &machine.topology;
    let launches = processor.kernels().iter().enumerate();
    let record = |(launch, time): (usize, &tombolo_model::front_end::KernelTime)| {
        let paces = || modules.iter().filter_map(|module| module.controller().dispatcher().paces().get(launch));
        let seconds = paces().map(|pace| pace.seconds());
        let [third, fourth] = seconds.fold([0.0; 2], |[third, fourth], pace| [third + pace[0], fourth + pace[1]]);
        let on = (modules.iter()).filter(|module| time.on.contains(module.id(), topology.modules_per_gpu)).count();
        let counted = modules.iter().fold(KernelStats::default(), |sum, module| sum.and(&module.counted(launch)));
        KernelRecord {
            name: named[time.kernel as usize].name.clone(),
            gpu: time.on.single_gpu(topology.gpus, topology.modules_per_gpu).map(|gpu| gpu.to_string()),
            stream: time.stream,
            start_s: time.start.seconds(),
            end_s: time.end.seconds(),
            ctas: counted.ctas,
            warp_instructions: counted.warp_instructions,
            memory_instructions: counted.memory_instructions,
            transactions: counted.transactions,
            l1_loads: counted.l1_loads,
            l1_load_hits: counted.l1_load_hits,
            stalls: slots.of_launch(launch, time),
            quarters_s: [third, fourth].map(|sum| sum / on as f64),
        }
    };
    launches.map(record).collect()
}

/// Builds a record for each GPU; `slots` and `links` belong to the same run.
pub(crate) fn gpus(slots: &WarpSlots<'_>, links: &[LinkRecord]) -> Vec<GpuRecord> {
    let WarpSlots { machine, processor, modules, .. } = *slots;
    let of_gpu = modules.chunks(usize::from(machine.topology.modules_per_gpu));
    let record = |(gpu, modules): (GpuId, &[&dyn ModuleCounters])| {
        let name = gpu.to_string();
        let paces = modules.iter().flat_map(|module| module.controller().dispatcher().paces());
        let mut busy: Vec<Span> = paces.map(LaunchTimes::busy).map(|(start, end)| Span { start, end }).collect();
        let sms = modules.iter().flat_map(|module| module.sms());
        let ways = [format!("{name}.in"), format!("{name}.out")];
        GpuRecord {
            busy_s: union(&mut busy).seconds(),
            transactions: sms.map(|sm| sm.stats.transactions).sum(),
            link_bytes: links.iter().filter(|link| ways.contains(&link.name)).map(|link| link.bytes).sum(),
            stalls: slots.of_gpu(modules, processor.ended()),
            name,
        }
    };
    (0..machine.topology.gpus).map(GpuId).zip(of_gpu).map(record).collect()
}

/// Builds a record for each module in each GPU.
pub(crate) fn modules(slots: &WarpSlots<'_>) -> Vec<ModuleRecord> {
    let WarpSlots { machine, processor, modules, .. } = *slots;
    let record = |module: &&dyn ModuleCounters| {
        let (l2, dram, sms) = (module.l2_stats(), module.dram(), module.sms());
        let sms = || sms.iter().map(|sm| sm.stats);
        ModuleRecord {
            name: module.id().to_string(),
            gpu: GpuId(module.id().0 / machine.topology.modules_per_gpu).to_string(),
            transactions: sms().map(|sm| sm.transactions).sum(),
            l1_loads: sms().map(|sm| sm.l1_loads).sum(),
            l1_load_hits: sms().map(|sm| sm.l1_hits).sum(),
            l2_loads: l2.reads,
            l2_hits: l2.read_hits,
            l2_remote_loads: l2.remote_reads,
            dram_read_bytes: dram.read_bytes,
            dram_write_bytes: dram.write_bytes,
            sent_bytes: module.port().stats().bytes().0,
            stalls: slots.of_gpu(std::slice::from_ref(module), processor.ended()),
        }
    };
    modules.iter().map(record).collect()
}
