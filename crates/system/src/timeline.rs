//! What a run did over time, and its form that Perfetto and Chrome's tracing page open.
//!
//! The form is the trace-event JSON of Chrome: a counter (`"ph": "C"`) for the utilisation and the lanes of each way
//! of each link between GPUs and for the local ways of each module's caches, a slice (`"ph": "X"`) for each kernel, a row a stream. Times are microseconds from the start of the run.
//! Utilisation is of the machine's rate: more than 1 where more lanes than that have turned to a way.

use crate::record::{KernelRecord, LocalWaysRecord};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tombolo_model::timeline::LinkTimeline;
use tombolo_types::{Ps, Rate};

/// One way of one link over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// As in the record, such as `gpu0.out`.
    pub name: String,
    /// The machine's rate of a way.
    pub rate: Rate,
    /// What it did.
    pub link: LinkTimeline,
}

/// What a run did over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Length of a window of the tracks.
    pub window: Ps,
    /// Each way of each link between GPUs.
    pub tracks: Vec<Track>,
    /// When each kernel ran.
    pub kernels: Vec<KernelRecord>,
    /// Ways of local lines over time, where they shift: module by module, in order of time.
    pub ways: Vec<LocalWaysRecord>,
}

/// One event of the trace-event format.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceEvent {
    /// What is counted or ran.
    pub name: String,
    /// `C` of a counter, `X` of a slice, `M` of a name.
    pub ph: char,
    /// Begin, in microseconds.
    pub ts: f64,
    /// Length of a slice, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dur: Option<f64>,
    /// Group: 1 kernels, 2 links, 3 ways of caches.
    pub pid: u32,
    /// Row within the group.
    pub tid: u32,
    /// Values of a counter.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<&'static str, Value>,
}

/// A trace, as a file holds it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// In order of time within each track.
    pub trace_events: Vec<TraceEvent>,
    /// Unit in which viewers show times.
    pub display_time_unit: &'static str,
}

const KERNELS: u32 = 1;
const LINKS: u32 = 2;
const WAYS: u32 = 3;

impl Track {
    /// Utilisation of each window, until the way is last used; then zero.
    pub fn utilization(&self, window: Ps) -> impl Iterator<Item = f64> + '_ {
        let most = self.rate.0 as f64 * window.seconds();
        self.link.bytes().iter().map(move |bytes| if self.rate.is_infinite() { 0.0 } else { *bytes as f64 / most })
    }
}

impl Timeline {
    /// The trace of it.
    pub fn trace(&self) -> Trace {
        let mut trace_events = vec![group("kernels", KERNELS), group("links between GPUs", LINKS)];
        trace_events.extend(self.kernels.iter().map(slice));
        for track in &self.tracks {
            trace_events.extend(self.utilization(track));
            let lanes = track.link.lanes().iter();
            trace_events.extend(lanes.map(|(at, lanes)| counter(track, "lanes", *at, json!(lanes))));
        }
        if !self.ways.is_empty() {
            trace_events.push(group("local ways of caches", WAYS));
            trace_events.extend(self.ways.iter().map(local_ways));
        }
        Trace { trace_events, display_time_unit: "ns" }
    }

    fn utilization(&self, track: &Track) -> Vec<TraceEvent> {
        let at = |index: usize| Ps(index as u64 * self.window.0);
        let values = track.utilization(self.window).chain(std::iter::once(0.0)).enumerate();
        // A counter holds until the next: only changes are written.
        let mut last = None;
        let changes = values.filter(|(_, value)| last.replace(*value) != Some(*value));
        changes.map(|(index, value)| counter(track, "utilization", at(index), json!(value))).collect()
    }
}

fn microseconds(at: Ps) -> f64 {
    at.0 as f64 / 1e6
}

fn counter(track: &Track, what: &'static str, at: Ps, value: Value) -> TraceEvent {
    TraceEvent {
        name: format!("{} {what}", track.name),
        ph: 'C',
        ts: microseconds(at),
        dur: None,
        pid: LINKS,
        tid: 0,
        args: BTreeMap::from([(what, value)]),
    }
}

fn local_ways(ways: &LocalWaysRecord) -> TraceEvent {
    TraceEvent {
        name: format!("{} local ways", ways.module),
        ph: 'C',
        ts: ways.since_s * 1e6,
        dur: None,
        pid: WAYS,
        tid: 0,
        args: BTreeMap::from([("l1", json!(ways.l1)), ("l2", json!(ways.l2))]),
    }
}

fn slice(kernel: &KernelRecord) -> TraceEvent {
    TraceEvent {
        name: kernel.name.clone(),
        ph: 'X',
        ts: kernel.start_s * 1e6,
        dur: Some((kernel.end_s - kernel.start_s) * 1e6),
        pid: KERNELS,
        tid: kernel.stream,
        args: BTreeMap::new(),
    }
}

fn group(name: &str, pid: u32) -> TraceEvent {
    let args = BTreeMap::from([("name", json!(name))]);
    TraceEvent { name: "process_name".to_owned(), ph: 'M', ts: 0.0, dur: None, pid, tid: 0, args }
}
