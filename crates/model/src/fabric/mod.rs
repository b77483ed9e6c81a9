//! Connection between modules in different GPUs, if modelled as a single component:
//! - a link from each GPU to a leaf in a switch tree (`tree`);
//! - one shared medium (`shared_bus`), or a link per GPU pair (`pairs`);
//! - links between some GPUs, which pass packets on (`routed_links`);
//! - links with turning lanes to one switch (`turning_link`).
//!
//! A host is an additional GPU in this fabric, or has separate links (`host_end`). GPU ports with fixed rates
//! at one switch are separate components (`gpu_port`); the fabric in a machine with such ports contains only
//! the host's separate links.
//!
//! A packet arrives at the fabric after the first half of the path latency; the second half follows. Links with fixed
//! rates (`fixed_links`) are reserved on arrival. Links with turning lanes (`turning_link`) queue
//! packets until their turn, because the rate at that time is not known earlier. Modules are notified when the number
//! of incoming lanes changes; the notice takes the path latency but no bandwidth. While nothing is sent, no samples are
//! taken; sampling resumes with the next packet.

pub(crate) mod crossbar;
pub(crate) mod fixed_links;
pub(crate) mod gpu_port;
pub(crate) mod host_end;
pub(crate) mod link;
pub(crate) mod packet;
pub(crate) mod packet_size;
pub(crate) mod pairs;
pub(crate) mod port;
pub(crate) mod routed_links;
pub(crate) mod shared_bus;
pub(crate) mod sideband;
pub(crate) mod switch;
pub(crate) mod traffic;
pub(crate) mod tree;
pub(crate) mod turning_link;

pub use crossbar::SmPort;
pub use gpu_port::GpuPort;
pub use link::{Link, LinkConfig, LinkStats, Traffic};
pub use packet::{BlockMessage, Packet};
pub use packet_size::PacketSizes;
pub use port::Port;
pub use sideband::Sideband;
pub use switch::{Switch, SwitchConfig};
pub use traffic::LevelTraffic;
pub use turning_link::{Direction, LaneStats};

use crate::fabric::fixed_links::FixedLinks;
use crate::fabric::host_end::HostEnd;
use crate::fabric::packet::Route;
use crate::fabric::shared_bus::LinkCrossing;
use crate::fabric::turning_link::{TurningConfig, TurningLink};
use crate::layout::ComponentLayout;
use crate::message::{LinkEvent, Message, Out};
use crate::observe::timeline::LinkTimeline;
use crate::observe::value_probe::Contents;
use tombolo_design::links::TurningTimes;
use tombolo_machine::MachineConfig;
use tombolo_machine::coherent_host::HostLinkConfig;
use tombolo_types::{Bytes, GpuId, ModuleId, Ps};

/// Links between GPUs and to the host, with the connection between them.
pub struct Fabric<D: Contents> {
    layout: ComponentLayout,
    modules_per_gpu: u8,
    lanes: u32,
    /// `None` if GPU ports are separate components.
    links: Option<FabricLinks<D>>,
    host: Option<HostEnd>,
    /// Second half of the latency between two GPUs.
    half: Ps,
    /// Latency from a GPU's port to its module.
    to_module: Ps,
    /// Recorded activity by GPU and [`Direction`], if requested. The host is last if it belongs to the fabric.
    timeline: Option<Vec<[LinkTimeline; 2]>>,
}

enum FabricLinks<D: Contents> {
    Fixed(FixedLinks),
    Turning(TurningLinks<D>),
}

/// Links with turning lanes, by GPU, and the state of their sampling. Samples decide when a lane turns from one
/// direction to the other.
struct TurningLinks<D: Contents> {
    links: Vec<TurningLink<(Route, Packet<D>)>>,
    /// Incoming lanes last reported to the modules, by GPU; the host gets no report.
    reported: Vec<u32>,
    sample_time: Ps,
    /// Kernel in progress: its number and launch time.
    kernel: Option<(u32, Ps)>,
    launches: u32,
    /// Set while the end of the current sample is scheduled; cleared when no packet is sent.
    sampling: bool,
}

impl<D: Contents> Fabric<D> {
    /// An idle fabric. `turning`: timing for turning lanes, if lanes turn at all. `host`: link to a coherent host, if
    /// present.
    pub fn new(
        machine: &MachineConfig,
        layout: ComponentLayout,
        turning: Option<TurningTimes>,
        host: Option<&HostLinkConfig>,
    ) -> Fabric<D> {
        let host = host.map(|link| HostEnd::new(machine, link));
        let inside = host.as_ref().filter(|host| host.is_in_fabric()).map(HostEnd::id);
        let links = match turning {
            None => FixedLinks::new(machine, inside).map(FabricLinks::Fixed),
            Some(times) => Some(FabricLinks::Turning(TurningLinks::new(machine, times, inside.is_some()))),
        };
        let latency = machine.gpu_link.latency;
        Fabric {
            layout,
            modules_per_gpu: machine.topology.modules_per_gpu,
            lanes: machine.gpu_link.lanes,
            links,
            host,
            half: latency - Ps(latency.0 / 2),
            to_module: machine.module_link.latency,
            timeline: None,
        }
    }

    /// Records the activity on the links between GPUs, in windows of length `window`.
    pub fn record(&mut self, gpus: usize, window: Ps) {
        let members = gpus + usize::from(self.host_inside().is_some());
        self.timeline = Some(vec![[(); 2].map(|()| LinkTimeline::new(window, self.lanes)); members]);
    }

    /// The host's GPU number, if the host belongs to the fabric.
    pub fn host_inside(&self) -> Option<GpuId> {
        self.host.as_ref().filter(|host| host.is_in_fabric()).map(HostEnd::id)
    }

    /// Remaining latency from the last byte's departure to its arrival at the module: the second half of the path
    /// latency, plus the module link.
    fn onward(&self, (from, to): (GpuId, GpuId)) -> Ps {
        match &self.host {
            Some(host) if host.is_at((from, to)) => {
                let half = host.latency() - Ps(host.latency().0 / 2);
                if to == host.id() { half } else { half + self.to_module }
            }
            _ => self.half + self.to_module,
        }
    }

    /// Carries a packet from one GPU's module to another GPU's module.
    pub fn cross(&mut self, route: Route, packet: Packet<D>, out: &mut Out<'_, D>) {
        let ends = self.ends(route);
        let (bytes, traffic) = (Bytes(u64::from(route.bytes)), packet.facts().traffic);
        let (id, now, onward) = (self.layout.switch(), out.now(), self.onward(ends));
        if let Some(left) = self.host.as_mut().and_then(|host| host.send(now, ends, traffic, bytes)) {
            out.send(left + onward, id, route.component, Message::Arrive { route, packet });
            return;
        }
        match &mut self.links {
            None => panic!("each way of {} is a component", ends.0),
            Some(FabricLinks::Fixed(links)) => {
                let LinkCrossing { sent, left } = links.cross(now, ends, traffic, bytes);
                if let Some(timeline) = &mut self.timeline {
                    timeline[usize::from(ends.0.0)][Direction::Out as usize].sent(sent, bytes);
                    timeline[usize::from(ends.1.0)][Direction::In as usize].sent(left, bytes);
                }
                out.send(left + onward, id, route.component, Message::Arrive { route, packet });
            }
            Some(FabricLinks::Turning(turning)) => {
                turning.wake(self.layout, out);
                turning.push(ends.0, Direction::Out, (route, packet), self.layout, out);
            }
        }
    }

    /// Handles an event for links with turning lanes.
    pub fn handle(&mut self, event: LinkEvent, out: &mut Out<'_, D>) {
        let Some(FabricLinks::Turning(turning)) = &mut self.links else { panic!("links of fixed rates got {event:?}") };
        match event {
            LinkEvent::Launch => turning.launch(self.layout, out),
            LinkEvent::End => turning.kernel = None,
            LinkEvent::Sample { launch } => turning.sample(launch, self.layout, out),
            LinkEvent::Turned { gpu } => turning.links[usize::from(gpu.0)].turned(out.now()),
            LinkEvent::Sent { gpu, direction } => self.sent(gpu, direction, out),
        }
        if !matches!(event, LinkEvent::Sent { .. } | LinkEvent::End) {
            self.report_lanes(out);
            self.note_lanes(out.now());
        }
    }

    /// Reports changes in the number of incoming lanes to each GPU's modules.
    fn report_lanes(&mut self, out: &mut Out<'_, D>) {
        let Some(FabricLinks::Turning(turning)) = &mut self.links else { return };
        let (id, at) = (self.layout.switch(), out.now() + self.half + self.to_module);
        for (gpu, (link, reported)) in turning.links.iter().zip(&mut turning.reported).enumerate() {
            let lanes = link.lanes(Direction::In);
            if std::mem::replace(reported, lanes) == lanes {
                continue;
            }
            for module in 0..self.modules_per_gpu {
                let to = self.layout.controller(ModuleId(gpu as u8 * self.modules_per_gpu + module));
                out.send(at, id, to, Message::LanesIn(lanes));
            }
        }
    }

    /// The last byte in a packet leaves one link direction: the packet enters the next direction, or the destination
    /// module.
    fn sent(&mut self, gpu: GpuId, direction: Direction, out: &mut Out<'_, D>) {
        let Some(FabricLinks::Turning(turning)) = &mut self.links else { return };
        let id = self.layout.switch();
        let ((route, packet), next) = turning.links[usize::from(gpu.0)].sent(out.now(), direction);
        if let Some(at) = next {
            out.send(at, id, id, Message::Link(LinkEvent::Sent { gpu, direction }));
        }
        if let Some(timeline) = &mut self.timeline {
            timeline[usize::from(gpu.0)][direction as usize].sent(out.now(), Bytes(u64::from(route.bytes)));
        }
        match direction {
            Direction::Out => {
                let (_, to) = self.ends(route);
                let Some(FabricLinks::Turning(turning)) = &mut self.links else { return };
                turning.push(to, Direction::In, (route, packet), self.layout, out);
            }
            Direction::In => {
                out.send(
                    out.now() + self.onward(self.ends(route)),
                    id,
                    route.component,
                    Message::Arrive { route, packet },
                );
            }
        }
    }

    fn note_lanes(&mut self, now: Ps) {
        let (Some(timeline), Some(FabricLinks::Turning(turning))) = (&mut self.timeline, &self.links) else { return };
        for (track, link) in timeline.iter_mut().zip(&turning.links) {
            Direction::BOTH
                .iter()
                .for_each(|direction| track[*direction as usize].set_lanes(now, link.lanes(*direction)));
        }
    }

    fn ends(&self, route: Route) -> (GpuId, GpuId) {
        (GpuId(route.source.0 / self.modules_per_gpu), GpuId(route.target.0 / self.modules_per_gpu))
    }

    /// Counters for one direction of a GPU's link, or the host's link if the host belongs to the fabric. With
    /// several links per GPU, all of them are added, with their average busy time. `None` if ports are separate
    /// components.
    pub fn stats(&self, gpu: GpuId, direction: Direction) -> Option<LinkStats> {
        match self.links.as_ref()? {
            FabricLinks::Fixed(links) => Some(links.stats(gpu, direction)),
            FabricLinks::Turning(turning) => Some(*turning.links[usize::from(gpu.0)].stats(direction)),
        }
    }

    /// Counters for one direction on a GPU's own link to the host, if present.
    pub fn host_link_stats(&self, gpu: GpuId, direction: Direction) -> Option<LinkStats> {
        self.host.as_ref()?.stats(gpu, direction)
    }

    /// Counters for a leaf's uplink, up and down; `None` without a tree.
    pub fn uplink_stats(&self, leaf: u8) -> Option<[LinkStats; 2]> {
        match self.links.as_ref()? {
            FabricLinks::Fixed(links) => links.uplink_stats(leaf),
            FabricLinks::Turning(_) => None,
        }
    }

    /// Counters for a shared medium, towards its root and away; `None` without such a medium.
    pub fn medium_stats(&self) -> Option<[LinkStats; 2]> {
        match self.links.as_ref()? {
            FabricLinks::Fixed(links) => links.medium_stats(),
            FabricLinks::Turning(_) => None,
        }
    }

    /// Counters for each link between two GPUs that pass packets on, by its ends; empty in other fabrics.
    pub fn hops(&self) -> Vec<((GpuId, GpuId), LinkStats)> {
        match &self.links {
            Some(FabricLinks::Fixed(links)) => links.hops(),
            None | Some(FabricLinks::Turning(_)) => Vec::new(),
        }
    }

    /// Lane counters for one direction on a GPU's link, up to `end`.
    pub fn lane_stats(&self, gpu: GpuId, direction: Direction, end: Ps) -> LaneStats {
        match &self.links {
            None | Some(FabricLinks::Fixed(_)) => LaneStats { turned: 0, lane_time: u64::from(self.lanes) * end.0 },
            Some(FabricLinks::Turning(turning)) => turning.links[usize::from(gpu.0)].lane_stats(direction, end),
        }
    }

    /// Recorded activity of the links, by GPU and [`Direction`], if requested.
    pub fn timeline(&self) -> Option<&[[LinkTimeline; 2]]> {
        self.timeline.as_deref()
    }
}

impl<D: Contents> TurningLinks<D> {
    /// Idle links for the GPUs of `machine`, and for a host in the fabric.
    fn new(machine: &MachineConfig, times: TurningTimes, has_host: bool) -> TurningLinks<D> {
        let (rate, lanes, gpus) = (machine.gpu_link.rate, machine.gpu_link.lanes, machine.topology.gpus);
        let TurningTimes { sample_time, switch_time } = times;
        let link = |_| TurningLink::new(TurningConfig { rate, lanes, switch_time });
        TurningLinks {
            links: (0..usize::from(gpus) + usize::from(has_host)).map(link).collect(),
            reported: vec![lanes; usize::from(gpus)],
            sample_time,
            kernel: None,
            launches: 0,
            sampling: false,
        }
    }

    fn push(
        &mut self,
        gpu: GpuId,
        direction: Direction,
        what: (Route, Packet<D>),
        layout: ComponentLayout,
        out: &mut Out<'_, D>,
    ) {
        let (bytes, traffic) = (Bytes(u64::from(what.0.bytes)), what.1.facts().traffic);
        if let Some(at) = self.links[usize::from(gpu.0)].push(out.now(), direction, what, traffic, bytes) {
            let id = layout.switch();
            out.send(at, id, id, Message::Link(LinkEvent::Sent { gpu, direction }));
        }
    }

    fn launch(&mut self, layout: ComponentLayout, out: &mut Out<'_, D>) {
        self.launches += 1;
        self.kernel = Some((self.launches, out.now()));
        self.sampling = false;
        let turned = self.links.iter_mut().map(|link| link.launch(out.now())).collect();
        turn(turned, layout, out);
    }

    /// Schedules the end of the current sample, when the first packet after a pause arrives.
    #[inline]
    fn wake(&mut self, layout: ComponentLayout, out: &mut Out<'_, D>) {
        if self.sampling {
            return;
        }
        let Some((launch, began)) = self.kernel else { return };
        let now = out.now();
        let passed = Ps((now - began).0 / self.sample_time.0 * self.sample_time.0);
        self.links.iter_mut().for_each(|link| link.forget_sample(now, began + passed));
        self.next_sample(launch, began + passed, layout, out);
    }

    fn next_sample(&mut self, launch: u32, from: Ps, layout: ComponentLayout, out: &mut Out<'_, D>) {
        self.sampling = true;
        let id = layout.switch();
        out.send(from + self.sample_time, id, id, Message::Link(LinkEvent::Sample { launch }));
    }

    fn sample(&mut self, launch: u32, layout: ComponentLayout, out: &mut Out<'_, D>) {
        let now = out.now();
        if self.kernel.is_none_or(|(current, _)| current != launch) {
            return;
        }
        // Without traffic there is nothing to decide, and a stuck run must be able to end.
        if self.links.iter().all(|link| link.is_quiet(now)) {
            self.sampling = false;
            return;
        }
        let turned = self.links.iter_mut().map(|link| link.sample(now)).collect();
        turn(turned, layout, out);
        self.next_sample(launch, now, layout, out);
    }
}

/// Schedules the end of lane turns, by GPU.
fn turn<D: Contents>(turned: Vec<Option<Ps>>, layout: ComponentLayout, out: &mut Out<'_, D>) {
    let id = layout.switch();
    for (gpu, at) in turned.into_iter().enumerate() {
        if let Some(at) = at {
            let gpu = GpuId(gpu as u8);
            out.send(at, id, id, Message::Link(LinkEvent::Turned { gpu }));
        }
    }
}
