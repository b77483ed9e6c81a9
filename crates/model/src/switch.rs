//! A non-blocking switch: one port a GPU, nothing in its middle that saturates.
//!
//! A packet is handed over when its last byte has come in; the link that feeds a port has serialised it at its
//! own rate, so the way in is counted and never waits. The way out serialises at the port's rate, in order of
//! arrival. Packets of one port to another stay in order. Not modelled: finite buffers, arbitration between
//! the ways in.

use crate::link::{Link, LinkConfig, LinkStats, Traffic, TrafficStats};
use tombolo_types::{Bytes, GpuId, Ps, Rate};

/// Shape of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Ports, one for each GPU.
    pub ports: u32,
    /// Rate of each way out.
    pub rate: Rate,
    /// From the last byte in to the first that may leave.
    pub crossing: Ps,
}

/// Counters of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// What came in.
    pub entered: TrafficStats,
    /// What left, and how long that waited.
    pub left: LinkStats,
}

#[derive(Clone, Debug)]
struct Port {
    entered: TrafficStats,
    egress: Link,
}

/// A switch.
#[derive(Clone, Debug)]
pub struct Switch {
    crossing: Ps,
    /// By GPU.
    ports: Vec<Port>,
}

impl Switch {
    /// An idle switch.
    pub fn new(config: SwitchConfig) -> Switch {
        let egress = Link::new(LinkConfig { rate: config.rate, latency: Ps::ZERO });
        let port = Port { entered: TrafficStats::default(), egress };
        Switch { crossing: config.crossing, ports: vec![port; config.ports as usize] }
    }

    /// Forwards `bytes` whose last byte has come in at `now`; returns when the last byte leaves. To be called
    /// in order of time.
    #[inline]
    pub fn forward(&mut self, now: Ps, from: GpuId, to: GpuId, traffic: Traffic, bytes: Bytes) -> Ps {
        let entered = &mut self.ports[usize::from(from.0)].entered;
        entered.packets += 1;
        entered.bytes += bytes.0;
        self.ports[usize::from(to.0)].egress.send(now + self.crossing, traffic, bytes)
    }

    /// Counters of the port of `gpu`.
    pub fn stats(&self, gpu: GpuId) -> PortStats {
        let port = &self.ports[usize::from(gpu.0)];
        PortStats { entered: port.entered, left: *port.egress.stats() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch() -> Switch {
        Switch::new(SwitchConfig { ports: 4, rate: Rate(100_000_000_000), crossing: Ps(500) })
    }

    fn forward(switch: &mut Switch, now: u64, from: u8, to: u8) -> Ps {
        switch.forward(Ps(now), GpuId(from), GpuId(to), Traffic::Data, Bytes(100))
    }

    #[test]
    fn an_idle_switch_costs_its_crossing_and_the_way_out() {
        assert_eq!(forward(&mut switch(), 10, 0, 1), Ps(10 + 500 + 1000));
    }

    #[test]
    fn packets_for_one_gpu_share_its_way_out() {
        let mut switch = switch();
        forward(&mut switch, 0, 0, 3);
        assert_eq!(forward(&mut switch, 0, 1, 3), Ps(2500));
        assert_eq!(switch.stats(GpuId(3)).left.worst_queueing, Ps(1000));
    }

    #[test]
    fn packets_for_different_gpus_do_not_meet() {
        let mut switch = switch();
        let departs: Vec<Ps> = (0..4).map(|gpu| forward(&mut switch, 0, gpu, (gpu + 1) % 4)).collect();
        assert_eq!(departs, [Ps(1500); 4]);
    }

    #[test]
    fn each_port_counts_both_ways() {
        let mut switch = switch();
        forward(&mut switch, 0, 0, 1);
        forward(&mut switch, 0, 0, 2);
        assert_eq!(switch.stats(GpuId(0)).entered, TrafficStats { packets: 2, bytes: 200 });
        assert_eq!(switch.stats(GpuId(0)).left.bytes(), Bytes(0));
        assert_eq!(switch.stats(GpuId(1)).left.bytes(), Bytes(100));
    }
}
