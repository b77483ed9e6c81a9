//! What a run with a host that takes part spent where, and what became of blocks of its memory.

use crate::counters::ModuleCounters;
use crate::time::{Span, union};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tombolo_machine::MachineConfig;
use tombolo_model::block::BlockStats;
use tombolo_model::command_processor::{Awaited, CommandProcessor, Stretch};
use tombolo_model::cpu::{HostRun, HostWork};
use tombolo_model::weight::Weights;
use tombolo_protocol::nmoesi::Nmoesi;
use tombolo_protocol::nodes::{Class, Nodes};
use tombolo_types::Ps;

/// The time of a run with a host that takes part, in seconds: eight parts that add up to `whole_s`. At each moment the first
/// of these that is under way counts, in the order of the fields from `kernels_s` on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhasesRecord {
    /// While CTAs ran, or stores of theirs were not taken.
    pub kernels_s: f64,
    /// Of the rest, while the boundary of a kernel was synchronised: what its launch waited for, and what is released behind
    /// it, behind the last one or before what the host does.
    pub synchronisation_s: f64,
    /// Of the rest, while copies to GPUs were made before a kernel.
    pub copies_in_s: f64,
    /// Of the rest, while copies were made behind kernels, or before the host read.
    pub copies_out_s: f64,
    /// Of the rest, while the host set arrays up, before the first command.
    pub host_setup_s: f64,
    /// Of the rest, while the host worked between commands.
    pub host_between_s: f64,
    /// Of the rest, while the host read results.
    pub host_results_s: f64,
    /// The rest: launch latencies.
    pub launches_s: f64,
    /// From the start of the program to the end of its last command.
    pub whole_s: f64,
    /// From the end of the last CTA to the first value that the host has loaded behind it; null where it loads none.
    pub first_value_s: Option<f64>,
    /// Likewise, to the end of the last work that loads any.
    pub last_value_s: Option<f64>,
    /// Bytes that L2 slices wrote back for a release behind the last CTA: UMH's final flush. Blocks that are merged are not
    /// among them.
    pub final_flush_bytes: u64,
    /// Bytes copied to the host.
    pub copied_back_bytes: u64,
}

/// What became of blocks of host memory; sums over GPUs and the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BlocksRecord {
    /// Requests of clients to homes: for a block, or to have one alone.
    pub asked: u64,
    /// Blocks that came to a GPU's memory.
    pub fetched: u64,
    /// Lines of these that SMs used there, once for each time that the block came.
    pub used_lines: u64,
    /// Blocks that came from another GPU or the host's cache, past the home.
    pub from_peers: u64,
    /// Blocks that had to go for others.
    pub evicted: u64,
    /// Blocks merged for a release or a launch.
    pub merged: u64,
    /// Requests that waited at a home for a transaction of their block.
    pub home_waits: u64,
    /// Bytes of data that clients sent homes.
    pub written_back_bytes: u64,
    /// Messages that carry no data.
    pub control_messages: u64,
    /// Bytes of these that crossed between GPUs, or between GPUs and the host.
    pub control_bytes: u64,
    /// Bytes of data that crossed there.
    pub data_bytes: u64,
    /// Blocks that a GPU asked for.
    pub wanted: u64,
    /// GPUs that asked for a block, summed over these.
    pub wanting: u64,
    /// Blocks of the GPUs by state, at the end of the run.
    pub states: BTreeMap<String, u64>,
}

/// When CTAs of launches ran, and when their boundaries were synchronised.
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

impl PhasesRecord {
    /// Of a run that has ended; `runs`: what the host's core has done.
    pub(crate) fn new(processor: &CommandProcessor, modules: &[&dyn ModuleCounters], runs: &[HostRun]) -> PhasesRecord {
        let span = |ran: &Stretch| Span { start: ran.start, end: ran.end };
        let (running, mut boundaries) = kernels(processor, modules);
        boundaries.extend(processor.hosted().iter().chain(processor.ending()).map(span));
        let last_cta = running.iter().map(|span| span.end).max().unwrap_or_default();
        let copied = |awaited: [Awaited; 2]| {
            let waits = processor.around_commands().iter().filter(move |wait| awaited.contains(&wait.awaited));
            waits.map(|wait| span(&wait.time)).collect::<Vec<Span>>()
        };
        let inward = copied([Awaited::FromHost, Awaited::Pages]);
        let outward = copied([Awaited::ToHost, Awaited::Behind]);
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
        let [kernels_s, synchronisation_s, copies_in_s, copies_out_s, host_setup_s, host_between_s, host_results_s] =
            parts;
        // Results may be read as the host works on, before the end of the program.
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
}

impl BlocksRecord {
    /// Every count 0, with the name of every state.
    pub fn of_no_block() -> BlocksRecord {
        let states = Nmoesi::<false>::STATES.iter().map(|state| (state.to_string(), 0)).collect();
        BlocksRecord { states, ..BlocksRecord::default() }
    }

    /// Of modules whose slices answer for blocks; `None` where they answer for lines.
    pub(crate) fn new(machine: &MachineConfig, modules: &[&dyn ModuleCounters]) -> Option<BlocksRecord> {
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
        let classes = [Class::Request, Class::Down, Class::Answer, Class::Peer].map(|class| sum.class(class));
        let [(_, requested), _, (_, answered), (from_peers, _)] = classes;
        let (empty_between, data_bytes) = sum.between();
        Some(BlocksRecord {
            asked: sum.asked,
            fetched: sum.filled,
            used_lines: sum.used_lines,
            from_peers,
            evicted: sum.evicted,
            merged: sum.merged,
            home_waits: sum.home_waits,
            written_back_bytes: requested + answered,
            control_messages: sum.empty(),
            control_bytes: empty_between * Weights::new(machine).control().0,
            data_bytes,
            wanted: sum.wanted,
            wanting: sum.wanting,
            states,
        })
    }
}
