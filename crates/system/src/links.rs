//! The links between GPUs of a run: how they are built, what is told of them.

use crate::record::LinkRecord;
use crate::timeline::Track;
use tombolo_design::Built;
use tombolo_machine::MachineConfig;
use tombolo_model::below::Below;
use tombolo_model::fabric::Fabric;
use tombolo_model::layout::Layout;
use tombolo_model::link::LinkStats;
use tombolo_model::module::Module;
use tombolo_model::turning_link::{LaneStats, Way};
use tombolo_model::watch::Contents;
use tombolo_types::{GpuId, Ps};

/// Both ways of a link, with the ends of their names.
const WAYS: [(Way, &str); 2] = [(Way::Out, "out"), (Way::In, "in")];

/// The links, idle. `window`: that of their timeline, where one is to be kept.
pub(crate) fn fabric<D: Contents>(built: &Built, layout: Layout, window: Option<Ps>) -> Fabric<D> {
    let host = built.machine.coherent_host().filter(|_| layout.host).map(|host| host.link);
    let mut fabric = Fabric::new(&built.machine, layout, built.turning, host);
    if let Some(window) = window {
        fabric.record(usize::from(built.machine.topology.gpus), window);
    }
    fabric
}

/// Each way of each GPU's link and of the host's, each way of each leaf's uplink or of the medium for all, then the way out
/// of each module, of a run that ended at `end`.
pub(crate) fn records<C: Below<D>, D: Contents>(
    machine: &MachineConfig,
    fabric: &Fabric<D>,
    modules: &[&Module<C, D>],
    end: Ps,
) -> Vec<LinkRecord> {
    let of_run = |time: u64| if end == Ps::ZERO { 0.0 } else { time as f64 / end.0 as f64 };
    let record = |name: String, stats: &LinkStats, lanes: LaneStats| LinkRecord {
        name,
        bytes: stats.bytes().0,
        data_bytes: stats.grains * machine.line.grain(),
        utilization: of_run(stats.busy.0),
        lanes: of_run(lanes.lane_time),
        lanes_turned: lanes.turned,
    };
    let mut links = Vec::new();
    let gpus = || (0..machine.topology.gpus).map(|gpu| (GpuId(gpu), GpuId(gpu).to_string()));
    for (gpu, name) in gpus().chain(fabric.host_inside().map(|host| (host, "host".to_owned()))) {
        for (way, word) in WAYS {
            let lanes = fabric.lane_stats(gpu, way, end);
            links.push(record(format!("{name}.{word}"), &fabric.stats(gpu, way), lanes));
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
    for module in modules {
        links.push(record(format!("{}.out", module.id()), module.uncore().port.stats(), one));
    }
    links
}

/// Each way of each GPU's link over time; none where no timeline was kept.
pub(crate) fn tracks<D: Contents>(machine: &MachineConfig, fabric: &Fabric<D>) -> Vec<Track> {
    let mut tracks = Vec::new();
    for (gpu, ways) in fabric.timeline().unwrap_or_default().iter().enumerate() {
        for (way, word) in WAYS {
            let link = ways[way as usize].clone();
            let name =
                if fabric.host_inside() == Some(GpuId(gpu as u8)) { "host".to_owned() } else { format!("gpu{gpu}") };
            tracks.push(Track { name: format!("{name}.{word}"), rate: machine.gpu_link.rate, link });
        }
    }
    tracks
}
