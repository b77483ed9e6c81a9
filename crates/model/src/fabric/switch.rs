//! A non-blocking switch, used below or above others in a [`crate::fabric::tree`] or at the root of a [`crate::fabric::shared_bus`].
//! The switch has a port per GPU, and the inside never saturates. GPUs connected by a single switch have separate port
//! components instead ([`crate::fabric::gpu_port`]).
//!
//! A packet is forwarded when its last byte has arrived. The link to a port has already serialised the packet at the
//! link's rate, and input is counted without any wait. Packets are known earlier, in an order different from their
//! arrival: a packet with a long wait at its input must not delay packets that arrive sooner at another input. The
//! output is therefore reserved in flits; each packet gets the first free flits after its arrival, and a wait may be
//! one flit too short. Packets from one port to another stay in order. Not modelled: finite buffers, arbitration
//! between inputs.

use crate::calendar::{Calendar, FRACTION};
use crate::fabric::link::{LinkStats, Traffic, TrafficStats};
use crate::l2::set_index::Divisor;
use tombolo_types::{Bytes, GpuId, Ps, Rate};

/// Shape of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Number of ports: each GPU has a port.
    pub ports: u32,
    /// Rate at each output.
    pub rate: Rate,
    /// Packet size granularity, above zero.
    pub flit: Bytes,
    /// Latency from the last byte in to the first byte that may leave.
    pub crossing: Ps,
}

/// Counters for one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortStats {
    /// Traffic that entered.
    pub(crate) entered: TrafficStats,
    /// Outgoing traffic, with waits.
    pub(crate) left: LinkStats,
}

/// An output whose packets are known before they arrive: reserved in flits, in order for each source.
#[derive(Clone, Debug)]
pub(crate) struct OutputPort {
    flit: Divisor,
    stats: LinkStats,
    /// Reserved flits.
    out: Calendar,
    /// Departure time for the last byte in the latest packet, by source GPU.
    last: Vec<Ps>,
}

impl OutputPort {
    /// An idle output with this rate and packet size granularity, for packets from `sources` GPUs.
    pub(crate) fn new(rate: Rate, flit: Bytes, sources: usize) -> OutputPort {
        let out = Calendar::new(flit_time(flit, rate));
        OutputPort { flit: Divisor::new(flit.0), stats: LinkStats::default(), out, last: vec![Ps::ZERO; sources] }
    }

    /// Sends a packet from a GPU that may leave from `ready` on; returns when the last byte leaves. Calls must
    /// follow the order required by [`Switch::forward`].
    #[inline]
    pub(crate) fn send(&mut self, now: Ps, ready: Ps, from: GpuId, traffic: Traffic, bytes: Bytes) -> Ps {
        let (whole, rest) = self.flit.split(bytes.0);
        let flits = whole + u64::from(rest > 0);
        // A packet without bytes takes no flit, but still waits for packets ahead of it.
        let last = &mut self.last[usize::from(from.0)];
        *last = self.out.reserve(now, ready, flits).max(*last);
        let left = *last;
        let sending = self.out.span(flits);
        self.stats.count(traffic, bytes);
        self.stats.busy += sending;
        self.stats.worst_queueing = self.stats.worst_queueing.max(left.saturating_sub(ready + sending));
        left
    }

    /// Counters so far.
    pub(crate) fn stats(&self) -> &LinkStats {
        &self.stats
    }
}

#[derive(Clone, Debug)]
struct SwitchPort {
    entered: TrafficStats,
    output: OutputPort,
}

/// A switch.
#[derive(Clone, Debug)]
pub struct Switch {
    crossing: Ps,
    /// Ports by GPU.
    ports: Vec<SwitchPort>,
}

/// Time for a `flit` at `rate`, in 2^-16 ps, the unit used by [`Calendar`].
fn flit_time(flit: Bytes, rate: Rate) -> u64 {
    if rate.is_infinite() {
        return 0;
    }
    let time = ((u128::from(flit.0) * 1_000_000_000_000) << FRACTION) / u128::from(rate.0);
    u64::try_from(time).unwrap_or(u64::MAX).max(1)
}

impl Switch {
    /// An idle switch.
    pub fn new(config: SwitchConfig) -> Switch {
        let output = OutputPort::new(config.rate, config.flit, config.ports as usize);
        let port = SwitchPort { entered: TrafficStats::default(), output };
        Switch { crossing: config.crossing, ports: vec![port; config.ports as usize] }
    }

    /// Forwards a packet of `bytes` bytes whose last byte arrives at `inside`; returns when the last byte leaves. Calls
    /// must be in `now` order, with `now` at most `inside`, and for packets between the same two ports also in `inside`
    /// order.
    #[inline]
    pub fn forward(&mut self, now: Ps, inside: Ps, (from, to): (GpuId, GpuId), traffic: Traffic, bytes: Bytes) -> Ps {
        let entered = &mut self.ports[usize::from(from.0)].entered;
        entered.packets += 1;
        entered.bytes += bytes.0;
        self.ports[usize::from(to.0)].output.send(now, inside + self.crossing, from, traffic, bytes)
    }

    /// Counters for the port to `gpu`.
    pub(crate) fn stats(&self, gpu: GpuId) -> PortStats {
        let SwitchPort { entered, output } = &self.ports[usize::from(gpu.0)];
        PortStats { entered: *entered, left: *output.stats() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch() -> Switch {
        Switch::new(SwitchConfig { ports: 4, rate: Rate(100_000_000_000), flit: Bytes(10), crossing: Ps(500) })
    }

    fn forward(switch: &mut Switch, inside: u64, from: u8, to: u8) -> Ps {
        switch.forward(Ps(0), Ps(inside), (GpuId(from), GpuId(to)), Traffic::Data { grains: 1 }, Bytes(100))
    }

    #[test]
    fn an_idle_switch_costs_its_crossing_and_the_way_out() {
        assert_eq!(forward(&mut switch(), 100, 0, 1), Ps(100 + 500 + 1000));
    }

    #[test]
    fn a_packet_that_comes_in_late_holds_up_none_that_comes_in_before() {
        let mut switch = switch();
        assert_eq!(forward(&mut switch, 50_000, 0, 1), Ps(51_500), "asked for first");
        assert_eq!(forward(&mut switch, 1000, 2, 1), Ps(2500));
        assert_eq!(forward(&mut switch, 50_100, 2, 1), Ps(52_500), "behind the first");
    }

    #[test]
    fn an_empty_packet_does_not_overtake() {
        let mut switch = switch();
        forward(&mut switch, 0, 0, 1);
        let left = forward(&mut switch, 0, 2, 1);
        let empty = |switch: &mut Switch, from| {
            switch.forward(Ps(0), Ps(1), (GpuId(from), GpuId(1)), Traffic::Control, Bytes(0))
        };
        assert_eq!(empty(&mut switch, 2), left, "behind what its own GPU sent before");
        assert_eq!(empty(&mut switch, 3), Ps(501), "and behind nobody else");
    }

    #[test]
    fn a_saturated_way_out_delivers_its_rate() {
        let mut switch = switch();
        let last = (0..30_000_u32).map(|packet| forward(&mut switch, 0, (packet % 3) as u8, 3)).last();
        assert_eq!(last, Some(Ps(30_000_500)), "3 MB at 100 GB/s");
        assert_eq!(switch.stats(GpuId(3)).left.busy, Ps(30_000_000));
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
