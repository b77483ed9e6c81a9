//! What stands between the modules of different GPUs: each GPU's link to one non-blocking switch, or to the leaf of a tree
//! of them ([`crate::tree`]), both ways of it in one component.
//!
//! Links of fixed rates are reserved as a packet comes. Links whose lanes turn ([`crate::turning_link`]) hold their
//! packets until their turn comes, for what a packet will find then is not known before. They tell the modules how
//! many lanes come in, by a notice that takes the latency of the way and no room on it.

use crate::layout::Layout;
use crate::link::{Link, LinkConfig, LinkStats};
use crate::message::{LinkEvent, Message, Out};
use crate::packet::{Packet, Route};
use crate::switch::Switch;
use crate::timeline::LinkTimeline;
use crate::tree::Tree;
use crate::turning_link::{LaneStats, TurningConfig, TurningLink, Way};
use tombolo_design::links::TurningTimes;
use tombolo_machine::MachineConfig;
use tombolo_protocol::Data;
use tombolo_types::{Bytes, GpuId, ModuleId, Ps};

/// The links to the switch, and the switch.
pub struct Fabric<D: Data> {
    layout: Layout,
    modules_per_gpu: u8,
    lanes: u32,
    links: Links<D>,
    /// From the switch's way out to the module.
    onward: Ps,
    /// By GPU and [`Way`], where it was asked for.
    timeline: Option<Vec<[LinkTimeline; 2]>>,
}

enum Links<D: Data> {
    Fixed {
        /// By GPU: toward the switch.
        ports: Vec<Link>,
        /// The ways out to the GPUs: of the one switch, or of all leaves.
        switch: Switch,
        /// Between leaves.
        tree: Option<Tree>,
    },
    Turning(TurningLinks<D>),
}

/// Links whose lanes turn, by GPU, and when they are looked at.
struct TurningLinks<D: Data> {
    links: Vec<TurningLink<(Route, Packet<D>)>>,
    /// Lanes in, as the modules were last told, by GPU.
    told: Vec<u32>,
    sample_time: Ps,
    /// The kernel under way: its number, and its launch.
    kernel: Option<(u32, Ps)>,
    launches: u32,
    /// Whether the end of the present sample is scheduled: not while nothing is sent.
    sampling: bool,
}

impl<D: Data> Fabric<D> {
    /// An idle fabric; its lanes turn as `turning` says, or not at all.
    pub fn new(machine: &MachineConfig, layout: Layout, turning: Option<TurningTimes>) -> Fabric<D> {
        let gpus = usize::from(machine.topology.gpus) + usize::from(layout.host);
        let links = match turning {
            None => {
                let port = Link::new(LinkConfig { rate: machine.gpu_link.rate, latency: Ps::ZERO });
                Links::Fixed {
                    ports: vec![port; gpus],
                    switch: Switch::new(crate::switch::SwitchConfig {
                        ports: gpus as u32,
                        ..crate::convert::switch(machine)
                    }),
                    tree: crate::convert::tree(machine).map(Tree::new),
                }
            }
            Some(TurningTimes { sample_time, switch_time }) => {
                let (rate, lanes) = (machine.gpu_link.rate, machine.gpu_link.lanes);
                let link = || TurningLink::new(TurningConfig { rate, lanes, switch_time });
                Links::Turning(TurningLinks {
                    links: (0..gpus).map(|_| link()).collect(),
                    told: vec![lanes; gpus],
                    sample_time,
                    kernel: None,
                    launches: 0,
                    sampling: false,
                })
            }
        };
        let latency = machine.gpu_link.latency;
        Fabric {
            layout,
            modules_per_gpu: machine.topology.modules_per_gpu,
            lanes: machine.gpu_link.lanes,
            links,
            onward: latency - Ps(latency.0 / 2) + machine.module_link.latency,
            timeline: None,
        }
    }

    /// Keeps what the links do over time, in windows of `window`.
    pub fn record(&mut self, gpus: usize, window: Ps) {
        self.timeline = Some(vec![[(); 2].map(|()| LinkTimeline::new(window, self.lanes)); gpus]);
    }

    /// Carries a packet from one GPU's module to another's.
    pub fn cross(&mut self, route: Route, packet: Packet<D>, out: &mut Out<'_, D>) {
        let (from, to) = self.ends(route);
        let (bytes, traffic) = (Bytes(u64::from(route.bytes)), packet.facts().traffic);
        let (id, now) = (self.layout.switch(), out.now());
        match &mut self.links {
            Links::Fixed { ports, switch, tree } => {
                let inside = ports[usize::from(from.0)].send(now, traffic, bytes);
                let met = match tree {
                    Some(tree) => tree.climb(now, inside, (from, to), traffic, bytes),
                    None => inside,
                };
                let left = switch.forward(now, met, (from, to), traffic, bytes);
                if let Some(timeline) = &mut self.timeline {
                    timeline[usize::from(from.0)][Way::Out as usize].sent(inside, bytes);
                    timeline[usize::from(to.0)][Way::In as usize].sent(left, bytes);
                }
                out.send(left + self.onward, id, route.component, Message::Arrive { route, packet });
            }
            Links::Turning(turning) => {
                turning.wake(self.layout, out);
                turning.push(from, Way::Out, (route, packet), self.layout, out);
            }
        }
    }

    /// Handles an event of links whose lanes turn.
    pub fn handle(&mut self, event: LinkEvent, out: &mut Out<'_, D>) {
        let Links::Turning(turning) = &mut self.links else { panic!("links of fixed rates got {event:?}") };
        match event {
            LinkEvent::Launch => turning.launch(self.layout, out),
            LinkEvent::End => turning.kernel = None,
            LinkEvent::Sample { launch } => turning.sample(launch, self.layout, out),
            LinkEvent::Turned { gpu } => turning.links[usize::from(gpu.0)].turned(out.now()),
            LinkEvent::Sent { gpu, way } => self.sent(gpu, way, out),
        }
        if !matches!(event, LinkEvent::Sent { .. } | LinkEvent::End) {
            self.tell_lanes(out);
            self.note_lanes(out.now());
        }
    }

    /// Tells the modules of each GPU how many lanes now come in, where that has changed.
    fn tell_lanes(&mut self, out: &mut Out<'_, D>) {
        let Links::Turning(turning) = &mut self.links else { return };
        let (id, at) = (self.layout.switch(), out.now() + self.onward);
        for (gpu, (link, told)) in turning.links.iter().zip(&mut turning.told).enumerate() {
            let lanes = link.lanes(Way::In);
            if std::mem::replace(told, lanes) == lanes {
                continue;
            }
            for module in 0..self.modules_per_gpu {
                let to = self.layout.controller(ModuleId(gpu as u8 * self.modules_per_gpu + module));
                out.send(at, id, to, Message::LanesIn(lanes));
            }
        }
    }

    /// The last byte of a packet leaves a way: on to the next, or to the module.
    fn sent(&mut self, gpu: GpuId, way: Way, out: &mut Out<'_, D>) {
        let Links::Turning(turning) = &mut self.links else { return };
        let id = self.layout.switch();
        let ((route, packet), next) = turning.links[usize::from(gpu.0)].sent(out.now(), way);
        if let Some(at) = next {
            out.send(at, id, id, Message::Link(LinkEvent::Sent { gpu, way }));
        }
        if let Some(timeline) = &mut self.timeline {
            timeline[usize::from(gpu.0)][way as usize].sent(out.now(), Bytes(u64::from(route.bytes)));
        }
        match way {
            Way::Out => {
                let to = GpuId(route.target.0 / self.modules_per_gpu);
                turning.push(to, Way::In, (route, packet), self.layout, out);
            }
            Way::In => {
                out.send(out.now() + self.onward, id, route.component, Message::Arrive { route, packet });
            }
        }
    }

    fn note_lanes(&mut self, now: Ps) {
        let (Some(timeline), Links::Turning(turning)) = (&mut self.timeline, &self.links) else { return };
        for (track, link) in timeline.iter_mut().zip(&turning.links) {
            Way::BOTH.iter().for_each(|way| track[*way as usize].set_lanes(now, link.lanes(*way)));
        }
    }

    fn ends(&self, route: Route) -> (GpuId, GpuId) {
        (GpuId(route.source.0 / self.modules_per_gpu), GpuId(route.target.0 / self.modules_per_gpu))
    }

    /// Counters of one way of a GPU's link.
    pub fn stats(&self, gpu: GpuId, way: Way) -> LinkStats {
        let index = usize::from(gpu.0);
        match (&self.links, way) {
            (Links::Fixed { ports, .. }, Way::Out) => *ports[index].stats(),
            (Links::Fixed { switch, .. }, Way::In) => switch.stats(gpu).left,
            (Links::Turning(turning), _) => *turning.links[index].stats(way),
        }
    }

    /// Counters of the uplink of a leaf, up and down; none where there is but one switch.
    pub fn uplink_stats(&self, leaf: u8) -> Option<[LinkStats; 2]> {
        match &self.links {
            Links::Fixed { tree, .. } => tree.as_ref().map(|tree| tree.stats(leaf)),
            Links::Turning(_) => None,
        }
    }

    /// Counters of the lanes of one way of a GPU's link, up to `end`.
    pub fn lane_stats(&self, gpu: GpuId, way: Way, end: Ps) -> LaneStats {
        match &self.links {
            Links::Fixed { .. } => LaneStats { turned: 0, lane_time: u64::from(self.lanes) * end.0 },
            Links::Turning(turning) => turning.links[usize::from(gpu.0)].lane_stats(way, end),
        }
    }

    /// What the links did over time, by GPU and [`Way`], where it was kept.
    pub fn timeline(&self) -> Option<&[[LinkTimeline; 2]]> {
        self.timeline.as_deref()
    }
}

impl<D: Data> TurningLinks<D> {
    fn push(&mut self, gpu: GpuId, way: Way, what: (Route, Packet<D>), layout: Layout, out: &mut Out<'_, D>) {
        let (bytes, traffic) = (Bytes(u64::from(what.0.bytes)), what.1.facts().traffic);
        if let Some(at) = self.links[usize::from(gpu.0)].push(out.now(), way, what, traffic, bytes) {
            let id = layout.switch();
            out.send(at, id, id, Message::Link(LinkEvent::Sent { gpu, way }));
        }
    }

    fn launch(&mut self, layout: Layout, out: &mut Out<'_, D>) {
        self.launches += 1;
        self.kernel = Some((self.launches, out.now()));
        self.sampling = false;
        let turned = self.links.iter_mut().map(|link| link.launch(out.now())).collect();
        turn(turned, layout, out);
    }

    /// The first packet after a pause: the end of the sample that it falls into is scheduled.
    #[inline]
    fn wake(&mut self, layout: Layout, out: &mut Out<'_, D>) {
        if self.sampling {
            return;
        }
        let Some((launch, began)) = self.kernel else { return };
        let now = out.now();
        let passed = Ps((now - began).0 / self.sample_time.0 * self.sample_time.0);
        self.links.iter_mut().for_each(|link| link.forget_sample(now, began + passed));
        self.next_sample(launch, began + passed, layout, out);
    }

    fn next_sample(&mut self, launch: u32, from: Ps, layout: Layout, out: &mut Out<'_, D>) {
        self.sampling = true;
        let id = layout.switch();
        out.send(from + self.sample_time, id, id, Message::Link(LinkEvent::Sample { launch }));
    }

    fn sample(&mut self, launch: u32, layout: Layout, out: &mut Out<'_, D>) {
        let now = out.now();
        if self.kernel.is_none_or(|(current, _)| current != launch) {
            return;
        }
        // Where nothing moves nothing is to be decided, and a run that cannot go on must come to its end.
        if self.links.iter().all(|link| link.is_quiet(now)) {
            self.sampling = false;
            return;
        }
        let turned = self.links.iter_mut().map(|link| link.sample(now)).collect();
        turn(turned, layout, out);
        self.next_sample(launch, now, layout, out);
    }
}

/// Schedules the end of turns, by GPU.
fn turn<D: Data>(turned: Vec<Option<Ps>>, layout: Layout, out: &mut Out<'_, D>) {
    let id = layout.switch();
    for (gpu, at) in turned.into_iter().enumerate() {
        if let Some(at) = at {
            let gpu = GpuId(gpu as u8);
            out.send(at, id, id, Message::Link(LinkEvent::Turned { gpu }));
        }
    }
}
