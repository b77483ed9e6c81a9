//! Port between a GPU and a non-blocking switch, as a component for one direction: output from the GPU, or input to it.
//! A host attached to the switch has both directions, too.
//!
//! A packet crosses the output of the source GPU, then the input of the target GPU. Each is store-and-forward and
//! serves packets in arrival order. Inside the switch, nothing saturates. Not modelled: finite buffers, arbitration
//! between inputs.
//!
//! The latency between modules in different GPUs consists of two module links and the GPU link. This latency is split
//! over four places, without queueing at any place:
//! - before the output: the module link, extended to a quarter of the GPU link;
//! - between output and input: the GPU link's remainder;
//! - after the input: like before the output.
//!
//! Each port is therefore at least a quarter of the GPU link away from every other component. Moving latency from one
//! side of a port to the opposite side only changes the reservation time, equally for all packets at the port.

use crate::convert;
use crate::fabric::link::{Link, LinkConfig, LinkStats, Traffic};
use crate::fabric::packet::{Packet, Route};
use crate::fabric::turning_link::Direction;
use crate::layout::ComponentLayout;
use crate::message::{Message, Out};
use crate::observe::timeline::LinkTimeline;
use crate::observe::value_probe::Contents;
use tombolo_machine::MachineConfig;
use tombolo_types::{Bytes, ComponentId, GpuId, Ps};

/// A GPU's port to the switch, for one direction.
#[derive(Clone, Debug)]
pub struct GpuPort {
    id: ComponentId,
    direction: Direction,
    layout: ComponentLayout,
    modules_per_gpu: u8,
    link: Link,
    /// Latency from the last byte's departure to the next component, by target GPU.
    onward: Vec<Ps>,
    timeline: Option<LinkTimeline>,
}

/// Minimum latency between ports and further components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortDistances {
    /// Latency to modules in the same GPU.
    pub modules: Ps,
    /// To ports in other GPUs.
    pub ports: Ps,
}

/// An end of the path between two GPUs. The latencies at both ends are subtracted from the GPU link's latency; the rest
/// lies between the ports.
#[derive(Clone, Copy, Debug)]
struct PathEnd {
    /// Latency of the module link; zero for a host.
    module_link: Ps,
    /// Part of the GPU link's latency between the module link and the port.
    near: Ps,
}

impl PathEnd {
    fn new(machine: &MachineConfig, gpu: GpuId) -> PathEnd {
        let is_host = gpu.0 == machine.topology.gpus;
        let module_link = if is_host { Ps::ZERO } else { machine.module_link.latency };
        PathEnd { module_link, near: convert::port_latency(machine, module_link) }
    }
}

impl GpuPort {
    /// An idle port for `gpu`, which must be among the [`ComponentLayout::gpu_ports`] GPUs.
    pub(crate) fn new(machine: &MachineConfig, layout: ComponentLayout, gpu: GpuId, direction: Direction) -> GpuPort {
        let (own, latency) = (PathEnd::new(machine, gpu), machine.gpu_link.latency);
        let onward = |to| match direction {
            Direction::Out => latency - own.near - PathEnd::new(machine, GpuId(to)).near,
            Direction::In => own.near + own.module_link,
        };
        GpuPort {
            id: layout.gpu_port(gpu, direction),
            direction,
            layout,
            modules_per_gpu: machine.topology.modules_per_gpu,
            link: Link::new(LinkConfig { rate: machine.gpu_link.rate, latency: Ps::ZERO }),
            onward: (0..layout.gpu_ports).map(onward).collect(),
            timeline: None,
        }
    }

    /// Both idle ports of each GPU, ordered by GPU and [`Direction`].
    pub fn all(machine: &MachineConfig, layout: ComponentLayout) -> Vec<GpuPort> {
        let of_gpu = |gpu| Direction::BOTH.map(|direction| GpuPort::new(machine, layout, GpuId(gpu), direction));
        (0..layout.gpu_ports).flat_map(of_gpu).collect()
    }

    /// Minimum latency between ports and other components, if ports exist.
    pub fn distances(machine: &MachineConfig, layout: ComponentLayout) -> Option<PortDistances> {
        let mut ends: Vec<PathEnd> = (0..layout.gpu_ports).map(|gpu| PathEnd::new(machine, GpuId(gpu))).collect();
        ends.sort_by_key(|end| std::cmp::Reverse(end.near));
        let modules = ends.iter().map(|end| end.module_link + end.near).min()?;
        let widest: u64 = ends.iter().take(2).map(|end| end.near.0).sum();
        Some(PortDistances { modules, ports: machine.gpu_link.latency - Ps(widest) })
    }

    /// Records the port's activity in windows of length `window`; the link has `lanes` lanes.
    pub fn record(&mut self, window: Ps, lanes: u32) {
        self.timeline = Some(LinkTimeline::new(window, lanes));
    }

    /// Forwards a packet: from an output to the target's input, and from an input to the target module.
    pub fn cross<D: Contents>(&mut self, route: Route, packet: Packet<D>, out: &mut Out<'_, D>) {
        let target = GpuId(route.target.0 / self.modules_per_gpu);
        let at = self.carry(out.now(), target, packet.facts().traffic, Bytes(u64::from(route.bytes)));
        match self.direction {
            Direction::Out => {
                out.send(at, self.id, self.layout.gpu_port(target, Direction::In), Message::Cross { route, packet });
            }
            Direction::In => out.send(at, self.id, route.component, Message::Arrive { route, packet }),
        }
    }

    /// Sends `bytes` to `target`; returns the arrival time at the next component. Calls must be in `now` order.
    fn carry(&mut self, now: Ps, target: GpuId, traffic: Traffic, bytes: Bytes) -> Ps {
        let left = self.link.send(now, traffic, bytes);
        if let Some(timeline) = &mut self.timeline {
            timeline.sent(left, bytes);
        }
        left + self.onward[usize::from(target.0)]
    }

    /// Counters so far.
    pub fn stats(&self) -> &LinkStats {
        self.link.stats()
    }

    /// Recorded activity, if requested.
    pub fn timeline(&self) -> Option<&LinkTimeline> {
        self.timeline.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: Traffic = Traffic::Data { grains: 1 };

    fn machine(name: &str, settings: &[(&str, &str)]) -> MachineConfig {
        let mut described = tombolo_machine::machine(name).expect("it ships");
        settings.iter().for_each(|(path, value)| described.set(path, value).expect("a key"));
        described.check().expect("it fits")
    }

    fn layout(machine: &MachineConfig, ports: u8) -> ComponentLayout {
        let modules = u8::try_from(machine.topology.modules()).expect("few");
        ComponentLayout { modules, host: ports > machine.topology.gpus, sms: 1, slices: 1, gpu_ports: ports }
    }

    fn ports(machine: &MachineConfig, ports: u8) -> Vec<[GpuPort; 2]> {
        let layout = layout(machine, ports);
        let pair = |gpu| Direction::BOTH.map(|direction| GpuPort::new(machine, layout, GpuId(gpu), direction));
        (0..ports).map(pair).collect()
    }

    /// Arrival time at a module in GPU `to` for `bytes` that leave a module in GPU `from` at `now`.
    fn trip(ports: &mut [[GpuPort; 2]], machine: &MachineConfig, now: Ps, (from, to): (u8, u8), bytes: u64) -> Ps {
        let source = PathEnd::new(machine, GpuId(from));
        let at_out = now + source.module_link + source.near;
        let [out, _] = &mut ports[usize::from(from)];
        let at_in = out.carry(at_out, GpuId(to), DATA, Bytes(bytes));
        let [_, into] = &mut ports[usize::from(to)];
        into.carry(at_in, GpuId(to), DATA, Bytes(bytes))
    }

    #[test]
    fn an_idle_packet_takes_all_latencies_and_two_serialisations() {
        for module_link in ["1 ns", "32 ns", "200 ns"] {
            let machine = machine("hmg-4x4", &[("module_link.latency", module_link)]);
            let mut ports = ports(&machine, 4);
            let (hop, cross) = (machine.module_link.latency, machine.gpu_link.latency);
            let one = Ps(160_000_000_000_000 / machine.gpu_link.rate.0);
            let come = trip(&mut ports, &machine, Ps(7), (0, 3), 160);
            assert_eq!(come, Ps(7) + hop + cross + hop + one + one, "{module_link}");
        }
    }

    #[test]
    fn a_host_at_the_switch_has_the_latency_of_a_gpu_without_a_module_link() {
        let settings = [("fabric.shape", "switch"), ("module_link.latency", "30 ns")];
        let machine = machine("umh-2-pcie", &settings);
        let cross = machine.gpu_link.latency;
        for (ends, hops) in [((0, 1), 2), ((0, 2), 1), ((2, 1), 1)] {
            let come = trip(&mut ports(&machine, 3), &machine, Ps(0), ends, 0);
            assert_eq!(come, Ps(cross.0 + hops * 30_000), "{ends:?}");
        }
    }

    #[test]
    fn ways_are_a_quarter_of_their_link_from_others_at_least() {
        for module_link in ["1 ns", "32 ns", "200 ns"] {
            let machine = machine("hmg-4x4", &[("module_link.latency", module_link)]);
            let quarter = Ps(machine.gpu_link.latency.0 / 4);
            let PortDistances { modules, ports } =
                GpuPort::distances(&machine, layout(&machine, 4)).expect("four GPUs have some");
            assert_eq!(modules, quarter.max(machine.module_link.latency));
            assert!(ports >= quarter + quarter);
        }
        let machine = machine("hmg-4x4", &[]);
        assert_eq!(GpuPort::distances(&machine, layout(&machine, 0)), None);
    }

    #[test]
    fn packets_of_a_pair_stay_in_order_whatever_they_weigh() {
        let machine = machine("hmg-4x4", &[]);
        let mut ports = ports(&machine, 4);
        let mut last = Ps::ZERO;
        // Packets from GPU 1 keep the input port of GPU 3 busy.
        (0..50).for_each(|_| _ = trip(&mut ports, &machine, Ps(0), (1, 3), 160));
        for packet in 0..100_u64 {
            let come = trip(&mut ports, &machine, Ps(packet), (0, 3), if packet % 3 == 0 { 160 } else { 0 });
            assert!(come >= last, "packet {packet}");
            last = come;
        }
    }

    #[test]
    fn packets_for_one_gpu_share_its_way_in_and_others_do_not_meet() {
        let machine = machine("hmg-4x4", &[]);
        let mut ports = ports(&machine, 4);
        let one = Ps(160_000_000_000_000 / machine.gpu_link.rate.0);
        let [first, second, other] = [(0, 3), (1, 3), (2, 0)].map(|ends| trip(&mut ports, &machine, Ps(0), ends, 160));
        assert_eq!((second - first, other), (one, first));
        assert_eq!(ports[3][Direction::In as usize].stats().worst_queueing, one);
        assert_eq!(ports[0].each_ref().map(|port| port.stats().bytes()), [Bytes(160); 2]);
    }

    #[test]
    fn a_saturated_way_in_delivers_its_rate() {
        let machine = machine("hmg-4x4", &[]);
        let mut ports = ports(&machine, 4);
        let trips = (0..30_000_u32).map(|packet| trip(&mut ports, &machine, Ps(0), ((packet % 3) as u8, 3), 160));
        let (first, last) = trips.fold((None, Ps::ZERO), |(first, _), at| (first.or(Some(at)), at));
        let sending = u128::from(29_999 * 160_u64) * 1_000_000_000_000 / u128::from(machine.gpu_link.rate.0);
        let took = u128::from((last - first.expect("some")).0);
        assert!(took.abs_diff(sending) <= 1, "{took} ps, {sending} at the rate");
    }

    #[test]
    fn what_it_does_over_time_is_kept_where_asked_for() {
        let machine = machine("hmg-4x4", &[]);
        let mut port = GpuPort::new(&machine, layout(&machine, 4), GpuId(0), Direction::Out);
        assert!(port.timeline().is_none());
        port.record(Ps(1_000_000), 1);
        port.carry(Ps(0), GpuId(1), DATA, Bytes(160));
        assert_eq!(port.timeline().map(LinkTimeline::bytes), Some(&[160][..]));
    }
}
