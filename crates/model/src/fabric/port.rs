//! A module's port to the other modules: outgoing link, ingress, and the order of outgoing packets. All packets to
//! other modules leave through this port, and all packets from them enter through it.

use crate::fabric::link::{Link, LinkConfig, LinkStats};
use crate::fabric::packet::{Packet, PacketFacts, Route};
use crate::l2::departure::{Departure, SOON};
use crate::message::{Message, Out};
use crate::module::config::ModuleSite;
use crate::observe::value_probe::{Contents, ValueProbe};
use tombolo_engine::{HOST_LINE, prefetch};
use tombolo_types::{Bytes, ComponentId, ModuleId, Ps, Serializer};

/// Shape of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortConfig {
    /// Outgoing link; the ingress has an equal rate.
    pub(crate) link: LinkConfig,
    /// Exit for packets to different GPUs.
    pub(crate) to_gpus: PortExit,
    /// Exit for packets to or from a coherent host.
    pub(crate) to_host: PortExit,
    /// Number of components with separate send channels.
    pub(crate) sources: usize,
    /// Number of modules in the whole machine.
    pub(crate) modules: usize,
}

/// Next component for packets that leave a module's link towards another GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortExit {
    /// Output port for the module's GPU, or the component between all GPUs.
    pub(crate) at: ComponentId,
    /// Latency from the link's end: half the latency between two GPUs, or the value given by [`crate::fabric::gpu_port`].
    pub(crate) latency: Ps,
}

/// A packet to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingPacket<D: Contents> {
    /// Sending component.
    pub(crate) from: ComponentId,
    /// Departure from this component.
    pub(crate) departs: Departure,
    /// Target module.
    pub(crate) target: ModuleId,
    /// The packet.
    pub(crate) packet: Packet<D>,
}

/// A module's port to the other modules.
#[derive(Clone, Debug)]
pub struct Port {
    config: PortConfig,
    outgoing: Link,
    /// Arrival time of the last packet per channel: by [`ModuleSite::source`], then target.
    arrivals: Vec<Ps>,
    incoming: Serializer,
    /// Entry time for the last packet with a wait at the ingress.
    entering: Ps,
}

impl Port {
    /// An idle port.
    pub(crate) fn new(config: PortConfig) -> Port {
        Port {
            outgoing: Link::new(config.link),
            arrivals: vec![Ps::ZERO; config.sources * config.modules],
            incoming: Serializer::new(config.link.rate),
            entering: Ps::ZERO,
            config,
        }
    }

    /// Sends a packet to another module at its departure; returns when it has left. Packets from a component to a
    /// module arrive in order. Protocols rely on this order per line and per region, and each line and region belongs
    /// to one slice.
    pub(crate) fn send<D: Contents>(
        &mut self,
        parcel: OutgoingPacket<D>,
        config: &ModuleSite<D>,
        out: &mut Out<'_, D>,
    ) -> Ps {
        let OutgoingPacket { from, departs, target, packet } = parcel;
        let PacketFacts { receiver, traffic, payload } = packet.facts();
        let bytes = config.packet_sizes.of(payload);
        let component = config.component(target, receiver);
        let route = Route { source: config.module, target, bytes: bytes.0 as u16, component };
        let sent = self.outgoing.pass(out.now(), departs, traffic, bytes);
        let channel = config.source(from) * self.config.modules + usize::from(target.0);
        let late = config.probe.delay(config.module, target, &packet);
        let keeps_order = !matches!(packet, Packet::Invalidate { .. }) || config.routing.fills_stay_ahead;
        let at = sent.time() + late;
        let arrival = if keeps_order { in_order(&mut self.arrivals[channel], at) } else { at };
        if config.is_beyond(target) {
            let host = config.layout.host();
            let is_host = host.is_some_and(|host| host == target || host == config.module);
            let exit = if is_host { self.config.to_host } else { self.config.to_gpus };
            out.send(arrival + exit.latency, from, exit.at, Message::Cross { route, packet });
        } else {
            out.send(arrival, from, component, Message::Arrive { route, packet });
        }
        sent.time().saturating_sub(self.outgoing.latency())
    }

    /// Receives a packet for a component in this module. Returns the time when it is completely received, if soon
    /// enough to handle it now ([`SOON`]). Otherwise the packet comes again, as [`Message::Enter`]. A controller begins
    /// its part in a phase early by at most this amount.
    pub(crate) fn receive<D: Contents>(
        &mut self,
        route: Route,
        packet: &Packet<D>,
        out: &mut Out<'_, D>,
    ) -> Option<Ps> {
        let now = out.now();
        let inside = self.incoming.send(now, Bytes(u64::from(route.bytes)));
        if inside <= now + SOON && now > self.entering {
            return Some(inside);
        }
        // Packets enter one after the other, regardless of their component.
        self.entering = inside.max(self.entering + Ps(1)).max(now + Ps(1));
        let to = route.component;
        out.send(self.entering, to, to, Message::Enter { source: route.source, packet: *packet });
        None
    }

    /// Prefetches into the host's caches the data that packets from a source to other modules change.
    #[inline]
    pub(crate) fn prefetch(&self, source: usize) {
        let modules = self.config.modules;
        let arrivals = &self.arrivals[source * modules..][..modules];
        arrivals.iter().step_by(HOST_LINE / size_of_val(&arrivals[0])).for_each(prefetch);
    }

    /// Counters for the outgoing link.
    pub fn stats(&self) -> &LinkStats {
        self.outgoing.stats()
    }
}

/// Arrival time on a channel for a packet that would arrive at `at`: not before any packet sent earlier. This keeps
/// packets on a channel from overtaking each other.
pub(crate) fn in_order(last: &mut Ps, at: Ps) -> Ps {
    *last = at.max(*last);
    *last
}
