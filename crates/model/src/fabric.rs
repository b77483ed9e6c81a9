//! What stands between the modules of different GPUs: each GPU's port into one non-blocking switch.

use crate::layout::Layout;
use crate::link::{Link, LinkConfig, LinkStats, Traffic};
use crate::message::{Message, Packet, Route};
use crate::switch::Switch;
use crate::uncore::Out;
use tombolo_machine::MachineConfig;
use tombolo_protocol::Data;
use tombolo_types::{Bytes, GpuId, Ps};

/// The ports and the switch.
pub struct Fabric {
    layout: Layout,
    modules_per_gpu: u8,
    /// By GPU: toward the switch.
    ports: Vec<Link>,
    switch: Switch,
    /// From the switch's way out to the module.
    onward: Ps,
}

impl Fabric {
    /// An idle fabric.
    pub fn new(machine: &MachineConfig, layout: Layout) -> Fabric {
        let port = Link::new(LinkConfig { rate: machine.gpu_link.rate, latency: Ps::ZERO });
        let latency = machine.gpu_link.latency;
        Fabric {
            layout,
            modules_per_gpu: machine.topology.modules_per_gpu,
            ports: vec![port; usize::from(machine.topology.gpus)],
            switch: Switch::new(crate::convert::switch(machine)),
            onward: latency - Ps(latency.0 / 2) + machine.module_link.latency,
        }
    }

    /// Carries a packet from one GPU's module to another's.
    pub fn cross<D: Data>(&mut self, route: Route, packet: Packet<D>, out: &mut Out<'_, D>) {
        let from = GpuId(route.source.0 / self.modules_per_gpu);
        let to = GpuId(route.target.0 / self.modules_per_gpu);
        let bytes = Bytes(u64::from(route.bytes));
        let traffic = traffic(&packet);
        let inside = self.ports[usize::from(from.0)].send(out.now(), traffic, bytes);
        let left = self.switch.forward(inside, from, to, traffic, bytes);
        out.send(left + self.onward, self.layout.switch(), route.component, Message::Arrive { route, packet });
    }

    /// Counters of the link from a GPU to the switch.
    pub fn upward(&self, gpu: GpuId) -> &LinkStats {
        self.ports[usize::from(gpu.0)].stats()
    }

    /// Counters of the link from the switch to a GPU.
    pub fn downward(&self, gpu: GpuId) -> LinkStats {
        self.switch.stats(gpu).left
    }
}

/// What a packet counts as on a link.
pub fn traffic<D: Data>(packet: &Packet<D>) -> Traffic {
    match packet {
        Packet::Request(request) => match request.request {
            tombolo_protocol::Request::Read { .. } => Traffic::Control,
            tombolo_protocol::Request::Write { .. } | tombolo_protocol::Request::Atomic { .. } => Traffic::Data,
        },
        Packet::Fill { .. } | Packet::Answer { .. } | Packet::Old { .. } => Traffic::Data,
        Packet::Downgrade { .. } | Packet::Invalidate { .. } | Packet::Act { .. } | Packet::Acted { .. } => {
            Traffic::Control
        }
    }
}
