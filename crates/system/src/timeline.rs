//! A run's activity over time, and its export for Perfetto and Chrome's tracing page.
//!
//! The export format is Chrome's trace-event JSON. Each run is a process. Within it, each GPU and stream is a thread
//! with a slice (`"ph": "X"`) for each kernel; links, modules and GPUs have counters (`"ph": "C"`). Times are
//! microseconds from the start of the run. Utilisation is relative to the machine's rate: it exceeds 1 if additional
//! lanes have turned to a direction.

mod activity;

use crate::record::{KernelRecord, LocalWaysRecord};
use crate::stalls::SMALLEST_SHOWN_SHARE;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tombolo_model::observe::{LinkTimeline, Sample};
use tombolo_types::{GpuId, ModuleId, Ps, Rate};

/// Activity on a link over time, for a single direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// Link name as in the record, for example `gpu0.out`.
    pub name: String,
    /// The machine's rate for one direction.
    pub rate: Rate,
    /// Activity over time.
    pub link: LinkTimeline,
}

/// Activity in a module over time.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleTrack {
    /// The module's id.
    pub module: ModuleId,
    /// The module's GPU.
    pub gpu: GpuId,
    /// Samples at the start, at the end of each window, when kernels begin and end on the module, and at the end of the
    /// run.
    pub samples: Vec<Sample>,
}

/// A run's activity over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Length of a window in the tracks.
    pub window: Ps,
    /// Each direction of each link between GPUs.
    pub tracks: Vec<Track>,
    /// Each module in each GPU.
    pub modules: Vec<ModuleTrack>,
    /// Rate of a module's link within its GPU; `None` if a GPU is a single module.
    pub module_rate: Option<Rate>,
    /// Records of all kernels, with their times.
    pub kernels: Vec<KernelRecord>,
    /// Local ways over time, if ways shift: module by module, in time order.
    pub ways: Vec<LocalWaysRecord>,
}

/// An event in the trace-event format.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceEvent {
    /// Name of the counter or kernel.
    pub name: String,
    /// `C` for a counter, `X` for a slice, `M` for a name.
    pub ph: char,
    /// Start, in microseconds.
    pub ts: f64,
    /// Length of a slice, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dur: Option<f64>,
    /// The run, from 1.
    pub pid: u32,
    /// For a slice, its GPU and stream; for a counter 0.
    pub tid: u32,
    /// Values of a counter, or of a slice.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<&'static str, Value>,
}

/// A trace, as stored in a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trace {
    /// Events, in time order within each track.
    #[serde(rename = "traceEvents")]
    pub trace_events: Vec<TraceEvent>,
    /// Unit in which viewers show times.
    #[serde(rename = "displayTimeUnit")]
    pub display_time_unit: &'static str,
}

/// Streams per GPU that have their own thread; later streams share the last thread.
const STREAMS: u32 = 64;

impl Track {
    /// Utilisation in each window, until the link direction is last used; zero afterwards.
    pub fn utilization(&self, window: Ps) -> impl Iterator<Item = f64> + '_ {
        let most = self.rate.0 as f64 * window.seconds();
        self.link.bytes().iter().map(move |bytes| if self.rate.is_infinite() { 0.0 } else { *bytes as f64 / most })
    }
}

impl Trace {
    /// Combines runs into a single trace, each run as a named process.
    pub fn of(runs: &[(String, Timeline)]) -> Trace {
        let run = |(pid, (name, timeline)): (u32, &(String, Timeline))| timeline.events(pid, name);
        let trace_events = (1..).zip(runs).flat_map(run).collect();
        Trace { trace_events, display_time_unit: "ns" }
    }
}

impl Timeline {
    /// The trace events for a run with process id `pid`.
    fn events(&self, pid: u32, name: &str) -> Vec<TraceEvent> {
        let mut events = vec![named("process_name", name, pid, 0)];
        let slices: Vec<TraceEvent> = self.kernels.iter().flat_map(|kernel| self.slices(kernel, pid)).collect();
        let threads: BTreeSet<u32> = slices.iter().map(|slice| slice.tid).collect();
        events.extend(threads.into_iter().map(|tid| named("thread_name", &thread(tid), pid, tid)));
        events.extend(slices);
        for track in &self.tracks {
            let name = |what| format!("{} {what}", track.name);
            let values = track.utilization(self.window).chain(std::iter::once(0.0)).enumerate();
            let values = values.map(|(index, value)| (Ps(index as u64 * self.window.0), value));
            events.extend(changes(pid, &name("utilization"), "utilization", values));
            let lanes = track.link.lanes().iter();
            events.extend(lanes.map(|(at, lanes)| counter(pid, name("lanes"), "lanes", *at, json!(lanes))));
        }
        events.extend(self.activity(pid));
        events.extend(self.ways.iter().map(|ways| local_ways(pid, ways)));
        events
    }

    /// Trace slices for a kernel: a slice for each participating GPU.
    fn slices(&self, kernel: &KernelRecord, pid: u32) -> Vec<TraceEvent> {
        let gpus: BTreeSet<GpuId> = self.modules.iter().map(|module| module.gpu).collect();
        let ran = gpus.into_iter().filter(|gpu| kernel.gpu.as_ref().is_none_or(|name| *name == gpu.to_string()));
        let slice = |gpu: GpuId| TraceEvent {
            name: kernel.name.clone(),
            ph: 'X',
            ts: kernel.start_s * 1e6,
            dur: Some((kernel.end_s - kernel.start_s) * 1e6),
            pid,
            tid: u32::from(gpu.0) * STREAMS + kernel.stream.min(STREAMS - 1) + 1,
            args: self.arguments(kernel, gpu),
        };
        ran.map(slice).collect()
    }

    /// Details for a kernel's slice: its CTAs' counters over all GPUs, the largest stalls, and bytes moved by one GPU's
    /// memories and links while the kernel was open.
    fn arguments(&self, kernel: &KernelRecord, gpu: GpuId) -> BTreeMap<&'static str, Value> {
        let moved = self.moved(gpu, kernel);
        let mut args = BTreeMap::from([
            ("ctas", json!(kernel.ctas)),
            ("warp_instructions", json!(kernel.warp_instructions)),
            ("transactions", json!(kernel.transactions)),
            ("l1_loads", json!(kernel.l1_loads)),
            ("l1_load_hits", json!(kernel.l1_load_hits)),
            ("gpu_l2_loads", json!(moved.l2_loads)),
            ("gpu_l2_hits", json!(moved.l2_hits)),
            ("gpu_dram_bytes", json!(moved.dram_bytes)),
            ("gpu_sent_bytes", json!(moved.sent_bytes)),
        ]);
        let stalls = &kernel.stalls;
        let mut classes = stalls.named().to_vec();
        classes.retain(|(_, cycles)| stalls.share(*cycles) >= SMALLEST_SHOWN_SHARE);
        classes.sort_by_key(|(_, cycles)| std::cmp::Reverse(*cycles));
        let told = classes.iter().map(|(class, cycles)| format!("{class} {:.1} %", 100.0 * stalls.share(*cycles)));
        args.insert("stalls", json!(told.collect::<Vec<_>>().join(", ")));
        args
    }
}

fn microseconds(at: Ps) -> f64 {
    at.0 as f64 / 1e6
}

/// A counter event at each time when its value changes: the value holds until the next event.
fn changes(pid: u32, name: &str, what: &'static str, values: impl Iterator<Item = (Ps, f64)>) -> Vec<TraceEvent> {
    let mut last = None;
    let changes = values.filter(|(_, value)| last.replace(*value) != Some(*value));
    changes.map(|(at, value)| counter(pid, name.to_owned(), what, at, json!(value))).collect()
}

fn counter(pid: u32, name: String, what: &'static str, at: Ps, value: Value) -> TraceEvent {
    TraceEvent { name, ph: 'C', ts: microseconds(at), dur: None, pid, tid: 0, args: BTreeMap::from([(what, value)]) }
}

fn local_ways(pid: u32, ways: &LocalWaysRecord) -> TraceEvent {
    TraceEvent {
        name: format!("{} local ways", ways.module),
        ph: 'C',
        ts: ways.since_s * 1e6,
        dur: None,
        pid,
        tid: 0,
        args: BTreeMap::from([("l1", json!(ways.l1)), ("l2", json!(ways.l2))]),
    }
}

/// Display name for a thread.
fn thread(tid: u32) -> String {
    let (gpu, stream) = ((tid - 1) / STREAMS, (tid - 1) % STREAMS);
    if stream == 0 { format!("gpu{gpu}") } else { format!("gpu{gpu}, stream {stream}") }
}

fn named(what: &str, name: &str, pid: u32, tid: u32) -> TraceEvent {
    let args = BTreeMap::from([("name", json!(name))]);
    TraceEvent { name: what.to_owned(), ph: 'M', ts: 0.0, dur: None, pid, tid, args }
}
