//! A shared bus that joins all GPUs, and a host attached to it, to a root: for example PCI Express below one root port.
//!
//! The bus has two directions, towards the root and away from it. All members share each direction's rate, in order of
//! arrival. Traffic to the host uses only the first direction, traffic from the host only the second. Traffic between
//! GPUs uses both, store-and-forward in each. A packet that turns around later does not delay a packet that leaves the
//! root sooner ([`crate::fabric::switch`]). Not modelled: arbitration, finite buffers, a nearer switch that turns packets
//! around.

use crate::fabric::link::{Link, LinkConfig, LinkStats, Traffic};
use crate::fabric::switch::{Switch, SwitchConfig};
use crate::fabric::turning_link::Direction;
use tombolo_types::{Bytes, GpuId, Ps, Rate, Serializer};

/// Shape of a shared bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedBusConfig {
    /// Number of GPUs, plus one for an attached host.
    pub(crate) members: u32,
    /// The host's number among the members.
    pub(crate) host: Option<GpuId>,
    /// Rate of each direction, for all members together.
    pub(crate) rate: Rate,
    /// Packet size granularity, above zero.
    pub(crate) flit: Bytes,
}

/// Crossing times of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkCrossing {
    /// Departure of the last byte from the sender.
    pub(crate) sent: Ps,
    /// Departure of the last byte towards the receiver.
    pub(crate) left: Ps,
}

/// A shared bus.
#[derive(Clone, Debug)]
pub(crate) struct SharedBus {
    host: Option<GpuId>,
    /// Direction towards the root.
    up: Link,
    /// Direction away from the root: a switch with one output port for all members.
    down: Switch,
    /// Serialisation time of a packet alone in a direction.
    alone: Serializer,
    /// Counters by member: packets sent, and packets received.
    members: Vec<[LinkStats; 2]>,
}

/// The only output port of the switch at the root.
const AWAY: GpuId = GpuId(0);

impl SharedBus {
    /// An idle bus.
    pub(crate) fn new(config: SharedBusConfig) -> SharedBus {
        let SharedBusConfig { members, host, rate, flit } = config;
        SharedBus {
            host,
            up: Link::new(LinkConfig { rate, latency: Ps::ZERO }),
            down: Switch::new(SwitchConfig { ports: members, rate, flit, crossing: Ps::ZERO }),
            alone: Serializer::new(rate),
            members: vec![[LinkStats::default(); 2]; members as usize],
        }
    }

    /// Carries `bytes` from one member to another. Calls must be in `now` order.
    #[inline]
    pub(crate) fn cross(
        &mut self,
        now: Ps,
        (from, to): (GpuId, GpuId),
        traffic: Traffic,
        bytes: Bytes,
    ) -> LinkCrossing {
        let [from_host, to_host] = [from, to].map(|end| self.host == Some(end));
        let at_root = if from_host { now } else { self.up.send(now, traffic, bytes) };
        let left = if to_host { at_root } else { self.down.forward(now, at_root, (from, AWAY), traffic, bytes) };
        let crossing = LinkCrossing { sent: if from_host { left } else { at_root }, left };
        let alone = self.alone.span(bytes);
        let mut count = |member: GpuId, direction: Direction, ready: Ps, done: Ps| {
            let stats = &mut self.members[usize::from(member.0)][direction as usize];
            stats.count(traffic, bytes);
            stats.busy += alone;
            stats.worst_queueing = stats.worst_queueing.max(done.saturating_sub(ready + alone));
        };
        count(from, Direction::Out, now, crossing.sent);
        count(to, Direction::In, if to_host || from_host { now } else { at_root }, left);
        crossing
    }

    /// Counters for packets sent or received by a member: only the member's own packets count towards busy time.
    pub(crate) fn stats(&self, member: GpuId, direction: Direction) -> LinkStats {
        self.members[usize::from(member.0)][direction as usize]
    }

    /// Counters for the two directions, all members together: towards the root, and away from the root.
    pub(crate) fn direction_stats(&self) -> [LinkStats; 2] {
        [*self.up.stats(), self.down.stats(AWAY).left]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: GpuId = GpuId(4);
    /// Serialisation time for 100 bytes at 16 GB/s: 6.25 ns.
    const ONE: Ps = Ps(6250);

    /// Four GPUs and a host on a bus with 16 GB/s per direction.
    fn medium() -> SharedBus {
        SharedBus::new(SharedBusConfig { members: 5, host: Some(HOST), rate: Rate(16_000_000_000), flit: Bytes(4) })
    }

    fn cross(medium: &mut SharedBus, now: u64, from: u8, to: u8) -> LinkCrossing {
        medium.cross(Ps(now), (GpuId(from), GpuId(to)), Traffic::Data { grains: 1 }, Bytes(100))
    }

    #[test]
    fn to_the_host_and_from_it_takes_one_way_and_from_gpu_to_gpu_both() {
        let at = |from, to| cross(&mut medium(), 1000, from, to);
        assert_eq!(at(0, HOST.0), LinkCrossing { sent: Ps(1000) + ONE, left: Ps(1000) + ONE });
        assert_eq!(at(HOST.0, 0), LinkCrossing { sent: Ps(1000) + ONE, left: Ps(1000) + ONE });
        assert_eq!(at(0, 1), LinkCrossing { sent: Ps(1000) + ONE, left: Ps(1000) + ONE + ONE });
    }

    #[test]
    fn gpus_that_stream_to_the_host_share_the_rate() {
        for gpus in 1..=4_u8 {
            let mut medium = medium();
            let mut ends = vec![Ps::ZERO; usize::from(gpus)];
            for _ in 0..1600 {
                for gpu in 0..gpus {
                    ends[usize::from(gpu)] = cross(&mut medium, 0, gpu, HOST.0).left;
                }
            }
            // Each GPU sends 160 KB at its share of 16 GB/s.
            for (gpu, end) in ends.into_iter().enumerate() {
                let behind = u64::from(gpus) - 1 - gpu as u64;
                assert_eq!(end, Ps(10_000_000 * u64::from(gpus) - behind * ONE.0), "{gpus} GPUs");
            }
            assert_eq!(medium.stats(GpuId(0), Direction::Out).busy, Ps(10_000_000), "its own share of the time");
            assert_eq!(medium.direction_stats()[0].busy, Ps(10_000_000 * u64::from(gpus)));
        }
    }

    #[test]
    fn both_directions_are_independent() {
        let mut medium = medium();
        for _ in 0..100 {
            cross(&mut medium, 0, 0, HOST.0);
        }
        assert_eq!(cross(&mut medium, 0, HOST.0, 1).left, ONE, "nothing has gone away from the root yet");
        assert_eq!(cross(&mut medium, 0, 2, HOST.0).left, Ps(101 * ONE.0));
        assert_eq!(medium.direction_stats().map(|direction| direction.bytes()), [Bytes(10_100), Bytes(100)]);
    }

    #[test]
    fn traffic_from_gpu_to_gpu_takes_of_both_ways() {
        let mut medium = medium();
        let last = (0..1600).map(|_| cross(&mut medium, 0, 0, 1).left).last();
        assert_eq!(last, Some(Ps(10_000_000) + ONE), "160 KB at 16 GB/s, and the last once more");
        assert_eq!(cross(&mut medium, 0, 2, HOST.0).left, Ps(10_000_000) + ONE, "behind all of it");
        assert_eq!(medium.direction_stats().map(|direction| direction.bytes()), [Bytes(160_100), Bytes(160_000)]);
        assert_eq!(medium.stats(GpuId(1), Direction::In).bytes(), Bytes(160_000));
        assert_eq!(medium.stats(HOST, Direction::In).bytes(), Bytes(100));
    }

    #[test]
    fn what_turns_round_later_holds_up_nothing_that_leaves_sooner() {
        let mut medium = medium();
        for _ in 0..100 {
            cross(&mut medium, 0, 0, HOST.0);
        }
        assert_eq!(cross(&mut medium, 0, 0, 1).left, Ps(102 * ONE.0));
        assert_eq!(cross(&mut medium, 0, HOST.0, 1).left, ONE);
    }

    #[test]
    fn without_limit_nothing_waits() {
        let config = SharedBusConfig { members: 5, host: Some(HOST), rate: Rate::INFINITE, flit: Bytes(4) };
        let mut medium = SharedBus::new(config);
        let crossings: Vec<LinkCrossing> = (0..4).map(|gpu| cross(&mut medium, 50, gpu, (gpu + 1) % 5)).collect();
        assert_eq!(crossings, [LinkCrossing { sent: Ps(50), left: Ps(50) }; 4]);
    }
}
