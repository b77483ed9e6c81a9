//! The host's end of the links between GPUs: one more GPU at what joins them, or a link of its own to each.
//!
//! Its number is that of one more GPU after the last, and its module's that of one more module of the machine.

use crate::link::{Link, LinkConfig, LinkStats, Traffic};
use crate::turning_link::Way;
use tombolo_machine::MachineConfig;
use tombolo_machine::coherent_host::{HostLinkConfig, HostPath};
use tombolo_types::{Bytes, GpuId, Ps};

/// The host's end.
#[derive(Clone, Debug)]
pub struct HostEnd {
    id: GpuId,
    /// By GPU and [`Way`], out of the GPU and in, where the GPUs have links of their own to the host.
    own: Option<Vec<[Link; 2]>>,
    /// One way between the host and a GPU's port, whole.
    latency: Ps,
}

impl HostEnd {
    /// The end of `link` at a host of `machine`, with idle links.
    pub fn new(machine: &MachineConfig, link: &HostLinkConfig) -> HostEnd {
        let gpus = machine.topology.gpus;
        let idle = || Link::new(LinkConfig { rate: link.rate, latency: Ps::ZERO });
        let (own, latency) = match link.through {
            HostPath::Own => (Some((0..gpus).map(|_| [idle(), idle()]).collect()), link.latency),
            HostPath::Fabric => (None, machine.gpu_link.latency),
        };
        HostEnd { id: GpuId(gpus), own, latency }
    }

    /// The host's number among the GPUs.
    pub fn id(&self) -> GpuId {
        self.id
    }

    /// One way between the host and a GPU's port, without queueing or serialisation.
    pub fn latency(&self) -> Ps {
        self.latency
    }

    /// Whether the host hangs from what joins the GPUs.
    pub fn is_in_fabric(&self) -> bool {
        self.own.is_none()
    }

    /// Whether it is an end of a way.
    pub fn is_at(&self, (from, to): (GpuId, GpuId)) -> bool {
        from == self.id || to == self.id
    }

    /// Sends `bytes` by the own link of a GPU where that is the way; returns when the last byte has left. To be called in
    /// order of `now`.
    #[inline]
    pub fn send(&mut self, now: Ps, ends: (GpuId, GpuId), traffic: Traffic, bytes: Bytes) -> Option<Ps> {
        let (gpu, way) = match ends {
            (from, to) if to == self.id => (from, Way::Out),
            (from, to) if from == self.id => (to, Way::In),
            _ => return None,
        };
        let link = &mut self.own.as_mut()?[usize::from(gpu.0)][way as usize];
        Some(link.send(now, traffic, bytes))
    }

    /// Counters of one way of a GPU's own link, where it has one.
    pub fn stats(&self, gpu: GpuId, way: Way) -> Option<LinkStats> {
        Some(*self.own.as_ref()?[usize::from(gpu.0)][way as usize].stats())
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
            let ways = (0..8).flat_map(|gpu| [(GpuId(gpu), GpuId(8)), (GpuId(8), GpuId(gpu))]);
            ends = ways.filter_map(|ends| host.send(Ps::ZERO, ends, DATA, Bytes(100))).collect();
        }
        assert_eq!(ends, [Ps(1_000_000); 16], "63 KB at 63 GB/s, sixteen times side by side");
        assert_eq!(host.stats(GpuId(2), Way::In).map(|way| way.bytes()), Some(Bytes(63_000)));
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
        assert_eq!(host.stats(GpuId(0), Way::Out), None);
    }
}
