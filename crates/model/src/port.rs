//! A module's port to the other modules: the link out of it, the way in, and the order of what leaves.

use crate::departure::{Departure, SOON};
use crate::link::{Link, LinkConfig, LinkStats};
use crate::message::{Message, Out};
use crate::packet::{Facts, Packet, Route};
use crate::site::Site;
use crate::watch::{Contents, Watch};
use tombolo_engine::{HOST_LINE, prefetch};
use tombolo_types::{Bytes, ComponentId, ModuleId, Ps, Serializer};

/// Shape of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// The link out; the way in has its rate.
    pub link: LinkConfig,
    /// Where what goes to another GPU leaves its own.
    pub to_gpus: Exit,
    /// Likewise, of what goes to a host that takes part or comes from it.
    pub to_host: Exit,
    /// Components that send on channels of their own.
    pub sources: usize,
    /// Modules of the machine.
    pub modules: usize,
}

/// Where packets for other GPUs go from a module's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The way out of the module's GPU, or what joins all GPUs.
    pub at: ComponentId,
    /// From the link's end there: half of the latency between two GPUs, or what [`crate::gpu_way`] says.
    pub latency: Ps,
}

/// A packet as it leaves.
#[derive(Clone, Copy, Debug)]
pub struct Parcel<D: Contents> {
    /// The component that sends it.
    pub from: ComponentId,
    /// When it leaves that component.
    pub departs: Departure,
    /// The module it is for.
    pub target: ModuleId,
    /// The packet.
    pub packet: Packet<D>,
}

/// A module's port to the other modules.
#[derive(Clone, Debug)]
pub struct Port {
    config: PortConfig,
    outgoing: Link,
    /// Arrival time of the last packet per channel: by [`Site::source`], then target.
    arrivals: Vec<Ps>,
    incoming: Serializer,
    /// When the last packet that had to wait for the way in enters.
    entering: Ps,
}

impl Port {
    /// An idle port.
    pub fn new(config: PortConfig) -> Port {
        Port {
            outgoing: Link::new(config.link),
            arrivals: vec![Ps::ZERO; config.sources * config.modules],
            incoming: Serializer::new(config.link.rate),
            entering: Ps::ZERO,
            config,
        }
    }

    /// Sends a packet to another module as it departs. What a component sends to one module arrives in order: the
    /// protocols rely on it line by line and region by region, and each of those has one slice. Returns when it has left.
    pub fn send<C, D: Contents>(&mut self, parcel: Parcel<D>, site: &Site<C, D>, out: &mut Out<'_, D>) -> Ps {
        let Parcel { from, departs, target, packet } = parcel;
        let Facts { receiver, traffic, payload } = packet.facts();
        let bytes = site.weights.of(payload);
        let component = site.component(target, receiver);
        let route = Route { source: site.module, target, bytes: bytes.0 as u16, component };
        let sent = self.outgoing.pass(out.now(), departs, traffic, bytes);
        let channel = site.source(from) * self.config.modules + usize::from(target.0);
        let late = site.watch.delay(site.module, target, &packet);
        let keeps_order = !matches!(packet, Packet::Invalidate { .. }) || site.routing.fills_stay_ahead;
        let at = sent.time() + late;
        let arrival = if keeps_order { in_order(&mut self.arrivals[channel], at) } else { at };
        if site.is_beyond(target) {
            let host = site.layout.host();
            let is_host = host.is_some_and(|host| host == target || host == site.module);
            let exit = if is_host { self.config.to_host } else { self.config.to_gpus };
            out.send(arrival + exit.latency, from, exit.at, Message::Cross { route, packet });
        } else {
            out.send(arrival, from, component, Message::Arrive { route, packet });
        }
        sent.time().saturating_sub(self.outgoing.latency())
    }

    /// Takes a packet for a component of this module from the port. Returns when it is wholly inside where that is soon
    /// enough for it to be handled now ([`SOON`]); otherwise it comes again, as [`Message::Enter`]. A controller takes its
    /// part in a phase by so much too early.
    pub fn receive<D: Contents>(&mut self, route: Route, packet: &Packet<D>, out: &mut Out<'_, D>) -> Option<Ps> {
        let now = out.now();
        let inside = self.incoming.send(now, Bytes(u64::from(route.bytes)));
        if inside <= now + SOON && now > self.entering {
            return Some(inside);
        }
        // One after the other, whichever components they are for.
        self.entering = inside.max(self.entering + Ps(1)).max(now + Ps(1));
        let to = route.component;
        out.send(self.entering, to, to, Message::Enter { source: route.source, packet: *packet });
        None
    }

    /// Starts to load what packets of a source to other modules will change into the host's caches.
    #[inline]
    pub fn prefetch(&self, source: usize) {
        let modules = self.config.modules;
        let arrivals = &self.arrivals[source * modules..][..modules];
        arrivals.iter().step_by(HOST_LINE / size_of_val(&arrivals[0])).for_each(prefetch);
    }

    /// Counters of the link out.
    pub fn stats(&self) -> &LinkStats {
        self.outgoing.stats()
    }
}

/// The arrival on a channel of what would arrive at `at`: not before what was sent ahead of it.
pub(crate) fn in_order(last: &mut Ps, at: Ps) -> Ps {
    *last = at.max(*last);
    *last
}
