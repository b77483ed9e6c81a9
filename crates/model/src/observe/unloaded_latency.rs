//! Unloaded latency of a trip between two modules: a read's request in one direction and the reply in return, without
//! contention.
//!
//! The latencies are measured by sending both packets over copies of the machine's links that carry nothing else.

use crate::convert;
use crate::fabric::fixed_links::FixedLinks;
use crate::fabric::host_end::HostEnd;
use crate::fabric::link::{Link, Traffic};
use crate::fabric::packet::Payload;
use crate::fabric::packet_size::PacketSizes;
use crate::layout::ComponentLayout;
use crate::observe::latency::short;
use tombolo_design::ModelInput;
use tombolo_machine::MachineConfig;
use tombolo_types::{Bytes, GpuId, Mask, ModuleId, Ps, Serializer};

/// Number of possible grain counts per line, including zero.
const GRAINS: usize = Mask::ALL.grains() as usize + 1;

/// Time between the end of a trial and the next trial. Assumed: any value above zero would do.
const GAP: Ps = Ps::from_ns(1000);

/// Trip latencies between any two modules.
#[derive(Clone, Debug)]
pub struct UnloadedLatencies {
    modules: usize,
    /// Index into `trips`, by pair of requester and replier.
    kinds: Vec<u16>,
    /// Round-trip latency in picoseconds, by trip kind, then by grains in the reply.
    trips: Vec<[u32; GRAINS]>,
}

impl UnloadedLatencies {
    /// Trip latencies on a design's machine. Links with turning lanes have equally many in each direction.
    pub fn new(built: &ModelInput, layout: ComponentLayout) -> UnloadedLatencies {
        let machine = &*built.machine;
        let modules = usize::from(layout.all_modules());
        let (mut idle, sizes) = (IdleNetwork::new(built, layout), PacketSizes::new(machine));
        let mut latencies = UnloadedLatencies { modules, kinds: vec![0; modules * modules], trips: Vec::new() };
        let pairs = (0..modules).flat_map(|from| (0..modules).map(move |to| (from, to)));
        for (from, to) in pairs.filter(|(from, to)| from != to) {
            let ends = (ModuleId(from as u8), ModuleId(to as u8));
            let there = idle.one_way(ends, sizes.of(Payload::Read));
            let back = |grains| idle.one_way((ends.1, ends.0), sizes.of(Payload::Grains(grains as u32)));
            let trip = std::array::from_fn(back).map(|back| short(there + back));
            let kind = latencies.trips.iter().position(|known| *known == trip).unwrap_or_else(|| {
                latencies.trips.push(trip);
                latencies.trips.len() - 1
            });
            latencies.kinds[from * modules + to] = u16::try_from(kind).expect("a machine has fewer pairs of modules");
        }
        latencies
    }

    /// Round-trip latency in picoseconds for a read from module `from` to module `to`.
    #[inline]
    pub(crate) fn trip(&self, from: ModuleId, to: ModuleId, mask: Mask) -> u32 {
        let kind = self.kinds[usize::from(from.0) * self.modules + usize::from(to.0)];
        self.trips[usize::from(kind)][mask.grains() as usize]
    }
}

/// Links carrying a single packet at a time.
struct IdleNetwork<'a> {
    machine: &'a MachineConfig,
    host: Option<HostEnd>,
    links: IdleLinks,
    /// A module's output port, and the ingress behind it.
    port: Link,
    incoming: Serializer,
    /// Start time for the next trial.
    now: Ps,
}

/// Links between GPUs.
enum IdleLinks {
    Fixed(FixedLinks),
    /// Output and input links at a switch, used in sequence, with equally many lanes in each direction.
    Switch([Serializer; 2]),
}

impl<'a> IdleNetwork<'a> {
    fn new(built: &'a ModelInput, layout: ComponentLayout) -> IdleNetwork<'a> {
        let machine = &*built.machine;
        let host = machine.coherent_host().filter(|_| layout.host).map(|host| HostEnd::new(machine, host.link));
        let inside = host.as_ref().filter(|host| host.is_in_fabric()).map(HostEnd::id);
        let fixed = if built.turning.is_none() { FixedLinks::new(machine, inside) } else { None };
        let links =
            fixed.map_or_else(|| IdleLinks::Switch([machine.gpu_link.rate; 2].map(Serializer::new)), IdleLinks::Fixed);
        let port = Link::new(convert::link(&machine.module_link));
        let incoming = Serializer::new(machine.module_link.rate);
        IdleNetwork { machine, host, links, port, incoming, now: GAP }
    }

    /// Latency from departure until the other module has received the packet completely.
    fn one_way(&mut self, (from, to): (ModuleId, ModuleId), bytes: Bytes) -> Ps {
        let began = self.now;
        let is_host = |module: ModuleId| usize::from(module.0) >= self.machine.topology.modules();
        let [from_host, to_host] = [from, to].map(is_host);
        // A host's links are its own: it has no port before them.
        let left = if from_host { began } else { self.port.send(began, Traffic::Control, bytes) };
        let [from, to] = [from, to].map(|module| GpuId(module.0 / self.machine.topology.modules_per_gpu));
        let arrived = if from == to { left } else { self.cross(left, (from, to), bytes) };
        let inside = if to_host { arrived } else { self.incoming.send(arrived, bytes) };
        self.now = inside + GAP;
        inside - began
    }

    /// Arrival time at another GPU's module, or at the host, for a packet that has left its GPU's port.
    fn cross(&mut self, left: Ps, ends: (GpuId, GpuId), bytes: Bytes) -> Ps {
        let to_module = self.machine.module_link.latency;
        let (mut latency, mut last) = (self.machine.gpu_link.latency, to_module);
        if let Some(host) = self.host.as_mut().filter(|host| host.is_at(ends)) {
            latency = host.latency();
            last = if ends.1 == host.id() { Ps::ZERO } else { to_module };
            if let Some(through) = host.send(left, ends, Traffic::Control, bytes) {
                return through + latency + last;
            }
        }
        let through = match &mut self.links {
            IdleLinks::Fixed(links) => links.cross(left, ends, Traffic::Control, bytes).left,
            IdleLinks::Switch(links) => links.iter_mut().fold(left, |at, link| link.send(at, bytes)),
        };
        through + latency + last
    }
}
