//! Links between some GPUs: a ring, a torus, or listed links. The GPUs between two others pass packets on.
//!
//! A packet is stored and forwarded at each GPU on its path, and takes no time there. Each link is modelled as a switch
//! output ([`crate::fabric::switch`]): a packet known before its arrival does not delay packets with an earlier arrival.
//! Packets of a pair take one path, and stay in order. Not modelled: cut-through, finite buffers, deadlock avoidance by
//! virtual channels, adaptive paths, the forwarding GPUs' own resources.

use crate::fabric::link::{LinkStats, Traffic};
use crate::fabric::shared_bus::LinkCrossing;
use crate::fabric::switch::OutputPort;
use crate::fabric::turning_link::Direction;
use tombolo_machine::Routes;
use tombolo_types::{Bytes, GpuId, Ps};

/// Links with their paths.
#[derive(Clone, Debug)]
pub(crate) struct RoutedLinks {
    routes: Routes,
    /// Latency between two GPUs that the fabric adds to every crossing.
    latency: Ps,
    /// Links, by index in `routes`.
    links: Vec<OutputPort>,
}

impl RoutedLinks {
    /// Idle links. `flit`: packet size granularity. `latency`: the part of a path's latency that the caller adds, which no
    /// link is shorter than.
    pub(crate) fn new(routes: Routes, flit: Bytes, latency: Ps) -> RoutedLinks {
        let sources = routes.links().iter().map(|link| usize::from(link.from.0) + 1).max().unwrap_or(0);
        let links = routes.links().iter().map(|link| OutputPort::new(link.rate, flit, sources)).collect();
        RoutedLinks { routes, latency, links }
    }

    /// Carries `bytes` from one GPU to another. Calls must be in `now` order.
    #[inline]
    pub(crate) fn cross(
        &mut self,
        now: Ps,
        (from, to): (GpuId, GpuId),
        traffic: Traffic,
        bytes: Bytes,
    ) -> LinkCrossing {
        let (mut at, mut sent) = (now, None);
        for (index, link) in self.routes.path(from, to) {
            let left = self.links[index].send(now, at, from, traffic, bytes);
            sent.get_or_insert(left);
            at = left + link.latency;
        }
        LinkCrossing { sent: sent.unwrap_or(now), left: at - self.latency }
    }

    /// Sum over the counters for all links at a GPU in one direction; the busy time is the average.
    pub(crate) fn stats(&self, gpu: GpuId, direction: Direction) -> LinkStats {
        let (mut all, mut count) = (LinkStats::default(), 0);
        for ((from, to), stats) in self.hops() {
            let end = match direction {
                Direction::Out => from,
                Direction::In => to,
            };
            if end == gpu {
                all.merge(&stats);
                count += 1;
            }
        }
        all.busy = Ps(all.busy.0 / count.max(1));
        all
    }

    /// Counters for each link, by its ends.
    pub(crate) fn hops(&self) -> impl Iterator<Item = ((GpuId, GpuId), LinkStats)> {
        let ends = self.routes.links().iter().map(|link| (link.from, link.to));
        ends.zip(self.links.iter().map(|link| *link.stats()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: Traffic = Traffic::Data { grains: 1 };
    /// Serialisation time for 100 bytes at 100 GB/s.
    const ONE: u64 = 1000;
    const LATENCY: Ps = Ps(500_000);

    fn links(settings: &[(&str, &str)]) -> RoutedLinks {
        let mut machine = tombolo_machine::machine("dgx-h100").expect("it ships");
        let base = [("gpu_link.rate", "100GB/s"), ("gpu_link.latency", "500ns"), ("messages.flit_bytes", "10B")];
        [&base, settings].concat().iter().for_each(|(key, value)| machine.set(key, value).expect("a key"));
        let machine = machine.check().expect("it fits");
        RoutedLinks::new(machine.routes().expect("GPUs pass packets on"), Bytes(10), LATENCY)
    }

    /// Departure of a packet sent at time zero.
    fn send(links: &mut RoutedLinks, from: u8, to: u8, bytes: u64) -> Ps {
        links.cross(Ps::ZERO, (GpuId(from), GpuId(to)), DATA, Bytes(bytes)).left
    }

    #[test]
    fn each_hop_costs_a_serialisation_and_a_latency() {
        let mut links = links(&[("fabric.shape", "ring")]);
        for (to, hops) in [(1, 1), (2, 2), (3, 3), (7, 1), (6, 2)] {
            let left = send(&mut links.clone(), 0, to, 100);
            assert_eq!(left + LATENCY, Ps(hops * (ONE + LATENCY.0)), "0 to {to}");
        }
        assert_eq!(links.cross(Ps::ZERO, (GpuId(0), GpuId(2)), DATA, Bytes(100)).sent, Ps(ONE));
    }

    #[test]
    fn neighbours_of_a_ring_use_each_link_at_its_rate_and_distant_pairs_share_them() {
        let mut links = links(&[("fabric.shape", "ring")]);
        let ends: Vec<Ps> = (0..1000)
            .flat_map(|_| (0..8).map(|gpu| (gpu, (gpu + 1) % 8)).collect::<Vec<_>>())
            .map(|(from, to)| send(&mut links, from, to, 100))
            .collect();
        assert_eq!(ends.last(), Some(&Ps(1000 * ONE)), "100 KB at 100 GB/s");
        let sum: u64 = links.hops().map(|(_, stats)| stats.bytes().0).sum();
        assert_eq!(sum, 8 * 100_000);
        assert_eq!(links.stats(GpuId(0), Direction::Out).busy, Ps(500 * ONE), "one of its two links");
    }

    #[test]
    fn all_to_all_on_a_torus_takes_what_its_bisection_allows() {
        /// Packets for each ordered pair, and their size: the latencies of four hops are a hundredth of the time.
        const PACKETS: u64 = 1000;
        const BYTES: u64 = 2000;
        let four_by_four = [("topology.gpus", "16"), ("fabric.shape", "torus"), ("fabric.columns", "4")];
        let mut links = links(&four_by_four);
        let mut last = Ps::ZERO;
        for _ in 0..PACKETS {
            for shift in 1..16 {
                (0..16).for_each(|from| last = last.max(send(&mut links, from, (from + shift) % 16, BYTES)));
            }
        }
        // 64 ordered pairs cross the middle in each direction, over eight links: two of the ring in each of four rows.
        let least = PACKETS * 64 / 8 * BYTES / 100 * ONE;
        assert!((least..=least + least / 50).contains(&last.0), "{last}: {least} ps by the bisection");
    }
}
