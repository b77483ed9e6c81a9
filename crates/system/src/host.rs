//! Phases in a run with a coherent host, and statistics for cached blocks of host memory.

use crate::counters::ModuleCounters;
use crate::time::{Span, union};
use std::collections::BTreeMap;
use tombolo_machine::MachineConfig;
pub use tombolo_metrics::{BlocksRecord, PhasesRecord};
use tombolo_model::fabric::PacketSizes;
use tombolo_model::front_end::{CommandProcessor, DriverOperation, HostRun, HostWork, TimeRange};
use tombolo_model::l2::BlockStats;
use tombolo_protocol::client_home::MessageClass;
use tombolo_types::Ps;

/// Spans with running CTAs for each launch, and spans with synchronisation at the launch's boundaries: from the
/// launch's start to the first CTA, and from the last CTA to the launch's end.
fn kernels(processor: &CommandProcessor, modules: &[&dyn ModuleCounters]) -> (Vec<Span>, Vec<Span>) {
    let (mut running, mut boundaries) = (Vec::new(), Vec::new());
    for (launch, time) in processor.kernels().iter().enumerate() {
        let paces = modules.iter().filter_map(|module| module.controller().dispatcher().paces().get(launch));
        let busy: Vec<(Ps, Ps)> = paces.map(|pace| pace.busy()).filter(|(start, end)| end > start).collect();
        let start = busy.iter().map(|(start, _)| *start).min().unwrap_or(time.end);
        let end = busy.iter().map(|(_, end)| *end).max().unwrap_or(time.end);
        running.push(Span { start, end });
        boundaries.push(Span { start: time.start.min(start), end: start });
        boundaries.push(Span { start: end, end: time.end.max(end) });
    }
    (running, boundaries)
}

/// Record for a run that has ended; `runs` lists the work that the host's core performed.
pub(crate) fn phases(processor: &CommandProcessor, modules: &[&dyn ModuleCounters], runs: &[HostRun]) -> PhasesRecord {
    let span = |ran: &TimeRange| Span { start: ran.start, end: ran.end };
    let (running, mut boundaries) = kernels(processor, modules);
    boundaries.extend(processor.host_releases().iter().chain(processor.final_releases()).map(span));
    let last_cta = running.iter().map(|span| span.end).max().unwrap_or_default();
    let copied = |awaited: [DriverOperation; 2]| {
        let waits = processor.around_commands().iter().filter(move |wait| awaited.contains(&wait.operation));
        waits.map(|wait| span(&wait.time)).collect::<Vec<Span>>()
    };
    let inward = copied([DriverOperation::FromHost, DriverOperation::Pages]);
    let outward = copied([DriverOperation::ToHost, DriverOperation::Behind]);
    let of = |wanted: fn(HostWork) -> bool| {
        let each = processor.core().iter().zip(runs).filter(|(_, run)| wanted(run.work));
        each.map(|(stretch, _)| span(stretch)).collect::<Vec<Span>>()
    };
    let setup = of(|work| work == HostWork::Setup);
    let between = of(|work| matches!(work, HostWork::Phase(_)));
    let results = of(|work| work == HostWork::Results);
    let (mut spans, mut covered) = (Vec::new(), Ps::ZERO);
    let parts = [running, boundaries, inward, outward, setup, between, results].map(|more| {
        spans.extend(more);
        let earlier = std::mem::replace(&mut covered, union(&mut spans));
        (covered - earlier).seconds()
    });
    let [kernels_s, synchronisation_s, copies_in_s, copies_out_s, host_setup_s, host_between_s, host_results_s] = parts;
    // Results may be read while the host still works, before the program ends.
    let reads = || runs.iter().filter(|run| run.start >= last_cta && run.first_load.is_some());
    let since = |at: Ps| at.saturating_sub(last_cta).seconds();
    PhasesRecord {
        kernels_s,
        synchronisation_s,
        copies_in_s,
        copies_out_s,
        host_setup_s,
        host_between_s,
        host_results_s,
        launches_s: (processor.ended() - covered).seconds(),
        whole_s: processor.ended().seconds(),
        first_value_s: reads().next().and_then(|run| run.first_load).map(since),
        last_value_s: reads().next_back().map(|run| since(run.end)),
        final_flush_bytes: modules.iter().map(|module| module.controller().flushed(last_cta)).sum(),
        copied_back_bytes: modules.iter().map(|module| module.copy_engine().stats.bytes).sum(),
    }
}

/// Sums over modules with block-based slices; `None` if the slices track lines.
pub(crate) fn blocks(machine: &MachineConfig, modules: &[&dyn ModuleCounters]) -> Option<BlocksRecord> {
    let mut sum = BlockStats::default();
    let mut states: BTreeMap<String, u64> = BTreeMap::new();
    for module in modules {
        for slice in module.slices() {
            let (stats, held) = slice.blocks?;
            sum.merge(&stats);
            if module.cpu().is_none() {
                held.into_iter().for_each(|(state, count)| *states.entry(state).or_default() += count);
            }
        }
    }
    let classes = [MessageClass::Request, MessageClass::Down, MessageClass::Answer, MessageClass::Peer]
        .map(|class| sum.class(class));
    let [(_, requested), _, (_, answered), (from_peers, _)] = classes;
    let (empty_between, data_bytes) = sum.between();
    Some(BlocksRecord {
        asked: sum.requests,
        fetched: sum.fills,
        used_lines: sum.used_lines,
        from_peers,
        evicted: sum.evicted,
        merged: sum.merged,
        home_waits: sum.home_waits,
        written_back_bytes: requested + answered,
        control_messages: sum.empty(),
        control_bytes: empty_between * PacketSizes::new(machine).control().0,
        data_bytes,
        wanted: sum.requested_blocks,
        wanting: sum.requesting_gpus,
        states,
    })
}
