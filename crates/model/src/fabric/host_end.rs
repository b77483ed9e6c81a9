//! The host's end of the links between GPUs: an additional member in the fabric, or a separate link to each GPU.
//!
//! The host's GPU number follows the last GPU, and its module number follows the last module. Traffic over separate
//! links does not use the GPUs' fabric at all.

use crate::fabric::link::{Link, LinkConfig, LinkStats, Traffic};
use crate::fabric::turning_link::Direction;
use tombolo_machine::MachineConfig;
use tombolo_machine::coherent_host::{HostLinkConfig, HostPath};
use tombolo_types::{Bytes, GpuId, Ps};

/// The host's end.
#[derive(Clone, Debug)]
pub(crate) struct HostEnd {
    id: GpuId,
    /// Links by GPU and [`Direction`], out of the GPU and in, if the GPUs have their own links to the host.
    own: Option<Vec<[Link; 2]>>,
    /// Total one-way latency between the host and a GPU's port.
    latency: Ps,
}

impl HostEnd {
    /// Host end of `link` on `machine`, with idle links.
    pub(crate) fn new(machine: &MachineConfig, link: &HostLinkConfig) -> HostEnd {
        let gpus = machine.topology.gpus;
        let idle = || Link::new(LinkConfig { rate: link.rate, latency: Ps::ZERO });
        let (own, latency) = match link.through {
            HostPath::Own => (Some((0..gpus).map(|_| [idle(), idle()]).collect()), link.latency),
            HostPath::Fabric => (None, machine.gpu_link.latency),
        };
        HostEnd { id: GpuId(gpus), own, latency }
    }

    /// The host's GPU number.
    pub(crate) fn id(&self) -> GpuId {
        self.id
    }

    /// One-way latency between the host and a GPU's port, without queueing or serialisation.
    pub(crate) fn latency(&self) -> Ps {
        self.latency
    }

    /// True if the host belongs to the GPUs' fabric.
    pub(crate) fn is_in_fabric(&self) -> bool {
        self.own.is_none()
    }

    /// True if the host is an end of the path.
    pub(crate) fn is_at(&self, (from, to): (GpuId, GpuId)) -> bool {
        from == self.id || to == self.id
    }

    /// Sends `bytes` over a GPU's own host link, if the path uses this link; returns the last byte's departure time.
    /// Calls must be in `now` order.
    #[inline]
    pub(crate) fn send(&mut self, now: Ps, ends: (GpuId, GpuId), traffic: Traffic, bytes: Bytes) -> Option<Ps> {
        let (gpu, direction) = match ends {
            (from, to) if to == self.id => (from, Direction::Out),
            (from, to) if from == self.id => (to, Direction::In),
            _ => return None,
        };
        let link = &mut self.own.as_mut()?[usize::from(gpu.0)][direction as usize];
        Some(link.send(now, traffic, bytes))
    }

    /// Counters for one direction on a GPU's own host link, if present.
    pub(crate) fn stats(&self, gpu: GpuId, direction: Direction) -> Option<LinkStats> {
        Some(*self.own.as_ref()?[usize::from(gpu.0)][direction as usize].stats())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: Traffic = Traffic::Data { grains: 1 };

    fn end(name: &str) -> HostEnd {
        let machine = tombolo_machine::machine(name).and_then(|described| described.check()).expect("it ships");
        let link = machine.coherent_host().expect("it has one").link;
        HostEnd::new(&machine, link)
    }

    #[test]
    fn each_gpu_has_the_full_rate_of_its_own_link_both_ways() {
        let mut host = end("dgx-h100");
        assert_eq!((host.id(), host.is_in_fabric(), host.latency()), (GpuId(8), false, Ps::from_ns(235)));
        let mut ends = Vec::new();
        for _ in 0..630 {
            let pairs = (0..8).flat_map(|gpu| [(GpuId(gpu), GpuId(8)), (GpuId(8), GpuId(gpu))]);
            ends = pairs.filter_map(|ends| host.send(Ps::ZERO, ends, DATA, Bytes(100))).collect();
        }
        assert_eq!(ends, [Ps(1_000_000); 16], "63 KB at 63 GB/s, sixteen times side by side");
        assert_eq!(host.stats(GpuId(2), Direction::In).map(|direction| direction.bytes()), Some(Bytes(63_000)));
    }

    #[test]
    fn what_goes_between_gpus_does_not_take_them() {
        let mut host = end("dgx-h100");
        let ends = (GpuId(0), GpuId(1));
        assert!(!host.is_at(ends) && host.is_at((GpuId(0), GpuId(8))));
        assert_eq!(host.send(Ps::ZERO, ends, DATA, Bytes(100)), None);
    }

    #[test]
    fn a_host_in_the_fabric_is_one_more_gpu_with_its_latency() {
        let mut host = end("umh-2-pcie");
        assert_eq!((host.id(), host.is_in_fabric(), host.latency()), (GpuId(2), true, Ps::from_ns(235)));
        assert_eq!(host.send(Ps::ZERO, (GpuId(0), GpuId(2)), DATA, Bytes(100)), None);
        assert_eq!(host.stats(GpuId(0), Direction::Out), None);
    }
}
