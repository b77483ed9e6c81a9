//! The links between GPUs in a run: construction and records.

use crate::counters::ModuleCounters;
use crate::partition::{MachinePart, hub};
use crate::record::LinkRecord;
use crate::timeline::Track;
use tombolo_design::ModelInput;
use tombolo_machine::MachineConfig;
use tombolo_model::fabric::{Direction, Fabric, GpuPort, LaneStats, LinkStats};
use tombolo_model::l2::L2Design;
use tombolo_model::layout::ComponentLayout;
use tombolo_model::observe::{Contents, LinkTimeline};
use tombolo_types::{GpuId, Ps};

/// Both directions, each with the suffix for link names.
const WAYS: [(Direction, &str); 2] = [(Direction::Out, "out"), (Direction::In, "in")];

/// The network between GPUs, idle. `window`: window length for its timeline, if one is recorded.
pub(crate) fn fabric<D: Contents>(built: &ModelInput, layout: ComponentLayout, window: Option<Ps>) -> Fabric<D> {
    let host = built.machine.coherent_host().filter(|_| layout.host).map(|host| host.link);
    let mut fabric = Fabric::new(&built.machine, layout, built.turning, host);
    if let Some(window) = window {
        fabric.record(usize::from(built.machine.topology.gpus), window);
    }
    fabric
}

/// The GPU ports modelled as separate components, idle. `window`: window length for the timeline, if one is recorded.
pub(crate) fn ways(machine: &MachineConfig, layout: ComponentLayout, window: Option<Ps>) -> Vec<GpuPort> {
    let mut ways = GpuPort::all(machine, layout);
    if let Some(window) = window {
        ways.iter_mut().for_each(|way| way.record(window, machine.gpu_link.lanes));
    }
    ways
}

/// The links in a run that has ended.
pub(crate) struct RunLinks<'a, D: Contents> {
    fabric: &'a Fabric<D>,
    /// GPU ports by GPU and [`Direction`], if modelled as separate components.
    ways: Vec<&'a GpuPort>,
}

impl<'a, D: Contents> RunLinks<'a, D> {
    /// Collects the links from all partitions in the machine.
    pub(crate) fn of<C: L2Design<D>>(parts: &'a [MachinePart<C, D>]) -> RunLinks<'a, D> {
        RunLinks { fabric: &hub(parts).fabric, ways: parts.iter().flat_map(|part| &part.ports).collect() }
    }

    /// Counters for a GPU's link in one direction; a host in the fabric counts as a GPU.
    fn stats(&self, gpu: GpuId, way: Direction) -> LinkStats {
        let by_itself = || self.ways.get(2 * usize::from(gpu.0) + way as usize).map(|way| *way.stats());
        self.fabric.stats(gpu, way).or_else(by_itself).unwrap_or_default()
    }

    /// Link records for a run that ended at `end`, by this order:
    /// 1. both directions for each GPU's link and the host's link;
    /// 2. both directions for each leaf's uplinks, or for the shared medium;
    /// 3. each link between two GPUs that pass packets on;
    /// 4. the outgoing port for each module.
    pub(crate) fn records(&self, machine: &MachineConfig, modules: &[&dyn ModuleCounters], end: Ps) -> Vec<LinkRecord> {
        let of_run = |time: u64| if end == Ps::ZERO { 0.0 } else { time as f64 / end.0 as f64 };
        let record = |name: String, stats: &LinkStats, lanes: LaneStats| LinkRecord {
            name,
            bytes: stats.bytes().0,
            data_bytes: stats.grains * machine.line.grain(),
            utilization: of_run(stats.busy.0),
            busy_s: stats.busy.seconds(),
            lanes: of_run(lanes.lane_time),
            lanes_turned: lanes.turned,
        };
        let fabric = self.fabric;
        let mut links = Vec::new();
        let gpus = || (0..machine.topology.gpus).map(|gpu| (GpuId(gpu), GpuId(gpu).to_string()));
        for (gpu, name) in gpus().chain(fabric.host_inside().map(|host| (host, "host".to_owned()))) {
            for (way, word) in WAYS {
                let lanes = fabric.lane_stats(gpu, way, end);
                links.push(record(format!("{name}.{word}"), &self.stats(gpu, way), lanes));
            }
        }
        let one = LaneStats { turned: 0, lane_time: end.0 };
        for (gpu, name) in gpus() {
            let own = WAYS.iter().filter_map(|(way, word)| Some((fabric.host_link_stats(gpu, *way)?, word)));
            links.extend(own.map(|(stats, word)| record(format!("host.{name}.{word}"), &stats, one)));
        }
        let medium = fabric.medium_stats().into_iter().flat_map(|ways| ["up", "down"].into_iter().zip(ways));
        links.extend(medium.map(|(word, stats)| record(format!("medium.{word}"), &stats, one)));
        for leaf in 0..=machine.fabric.leaf_of(GpuId(machine.topology.gpus - 1)) {
            let ways = fabric.uplink_stats(leaf).into_iter().flat_map(|ways| ["up", "down"].into_iter().zip(ways));
            links.extend(ways.map(|(word, stats)| record(format!("leaf{leaf}.{word}"), &stats, one)));
        }
        links.extend(fabric.hops().iter().map(|((from, to), stats)| record(format!("{from}.{to}"), stats, one)));
        for module in modules {
            links.push(record(format!("{}.out", module.id()), module.port().stats(), one));
        }
        links
    }

    /// Timeline for each direction of each GPU's link; empty if no timeline was recorded.
    pub(crate) fn tracks(&self, machine: &MachineConfig) -> Vec<Track> {
        let of_ways: Vec<&LinkTimeline> = self.ways.iter().filter_map(|way| way.timeline()).collect();
        let of_fabric = self.fabric.timeline().unwrap_or_default().iter().flatten();
        let all = if of_ways.is_empty() { of_fabric.collect() } else { of_ways };
        let mut tracks = Vec::new();
        for (gpu, ways) in all.chunks(WAYS.len()).enumerate() {
            for (link, (_, word)) in ways.iter().zip(WAYS) {
                let is_host = self.fabric.host_inside() == Some(GpuId(gpu as u8));
                let name = if is_host { "host".to_owned() } else { format!("gpu{gpu}") };
                let link = (*link).clone();
                tracks.push(Track { name: format!("{name}.{word}"), rate: machine.gpu_link.rate, link });
            }
        }
        tracks
    }
}
