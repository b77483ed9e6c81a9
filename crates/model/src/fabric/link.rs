//! A link in a single direction: bytes are serialised at a rate, then travel for a latency.
//!
//! Packets sent by [`Link::send`] arrive in their sending order. Not modelled: link-layer credits, replay of damaged
//! packets. Fractions of a picosecond are carried from packet to packet, so a saturated link delivers exactly its rate.

use crate::l2::departure::Departure;
use tombolo_types::{Bytes, Ps, Rate, Serializer};

/// A packet's purpose, for the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Traffic {
    /// A packet that carries bytes of memory.
    Data {
        /// Number of grains carried.
        grains: u32,
    },
    /// A request, an acknowledgment, or an invalidation.
    Control,
}

/// Shape of a link direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Bandwidth; [`Rate::INFINITE`] if nothing queues.
    pub rate: Rate,
    /// Latency from the last byte's departure to its arrival.
    pub latency: Ps,
}

/// Counters for a kind of traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrafficStats {
    /// Packets.
    pub(crate) packets: u64,
    /// Bytes, including headers if the sender counts them.
    pub(crate) bytes: u64,
}

/// Counters for a link direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets with memory data.
    pub(crate) data: TrafficStats,
    /// All other packets.
    pub(crate) control: TrafficStats,
    /// Grains of memory carried.
    pub grains: u64,
    /// Total sending time: divided by the run's length, it gives the utilisation.
    pub busy: Ps,
    /// Longest wait by a packet before its first byte left.
    pub(crate) worst_queueing: Ps,
}

impl LinkStats {
    /// Total bytes in both kinds together.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.data.bytes + self.control.bytes)
    }

    /// Counts a packet.
    pub(crate) fn count(&mut self, traffic: Traffic, bytes: Bytes) {
        let kind = match traffic {
            Traffic::Data { grains } => {
                self.grains += u64::from(grains);
                &mut self.data
            }
            Traffic::Control => &mut self.control,
        };
        kind.packets += 1;
        kind.bytes += bytes.0;
    }

    /// Adds the counters from another link, or from the same link at another time.
    pub(crate) fn merge(&mut self, other: &LinkStats) {
        for (mine, theirs) in [(&mut self.data, other.data), (&mut self.control, other.control)] {
            mine.packets += theirs.packets;
            mine.bytes += theirs.bytes;
        }
        self.grains += other.grains;
        self.busy += other.busy;
        self.worst_queueing = self.worst_queueing.max(other.worst_queueing);
    }
}

/// A link direction.
#[derive(Clone, Debug)]
pub struct Link {
    serializer: Serializer,
    latency: Ps,
    last_arrival: Ps,
    stats: LinkStats,
}

impl Link {
    /// An idle link.
    pub fn new(config: LinkConfig) -> Link {
        Link {
            serializer: Serializer::new(config.rate),
            latency: config.latency,
            last_arrival: Ps::ZERO,
            stats: LinkStats::default(),
        }
    }

    /// Sends `bytes` at `now`, after all earlier packets; returns the last byte's arrival time, never before the
    /// previous packet's arrival.
    #[inline]
    pub fn send(&mut self, now: Ps, traffic: Traffic, bytes: Bytes) -> Ps {
        let arrival = self.pass(now, Departure::at(now), traffic, bytes).time();
        self.last_arrival = self.last_arrival.max(arrival);
        self.last_arrival
    }

    /// Sends `bytes` with departure `departure`, after all packets sent before `now`, the time of the event. Returns
    /// the last byte's arrival. A packet with a long lookup may arrive after the next one.
    #[inline]
    pub(crate) fn pass(&mut self, now: Ps, departure: Departure, traffic: Traffic, bytes: Bytes) -> Departure {
        let start = now.max(self.serializer.free_at());
        let passed = departure.through(now, &mut self.serializer, bytes);
        self.stats.count(traffic, bytes);
        self.stats.busy += self.serializer.free_at().saturating_sub(start);
        self.stats.worst_queueing = self.stats.worst_queueing.max(start - now);
        passed.after(self.latency)
    }

    /// Latency from departure to arrival.
    pub(crate) fn latency(&self) -> Ps {
        self.latency
    }

    /// Counters so far.
    pub(crate) fn stats(&self) -> &LinkStats {
        &self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(gigabytes: u64, latency_ns: u64) -> Link {
        Link::new(LinkConfig { rate: Rate(gigabytes * 1_000_000_000), latency: Ps::from_ns(latency_ns) })
    }

    #[test]
    fn an_idle_link_costs_serialisation_and_latency() {
        assert_eq!(link(200, 300).send(Ps(50), Traffic::Data { grains: 1 }, Bytes(128)), Ps(50 + 640 + 300_000));
    }

    #[test]
    fn a_packet_waits_for_those_ahead() {
        let mut link = link(200, 300);
        link.send(Ps::ZERO, Traffic::Data { grains: 1 }, Bytes(128));
        assert_eq!(link.send(Ps(100), Traffic::Control, Bytes(32)), Ps(640 + 160 + 300_000));
        assert_eq!(link.stats().worst_queueing, Ps(540));
    }

    #[test]
    fn a_saturated_link_delivers_exactly_its_rate() {
        let mut link = link(450, 0);
        let last = (0..45_000).map(|_| link.send(Ps::ZERO, Traffic::Data { grains: 1 }, Bytes(64))).last();
        assert_eq!(last, Some(Ps(6_400_000)));
        assert_eq!(link.stats().busy, Ps(6_400_000));
    }

    #[test]
    fn traffic_is_counted_by_kind() {
        let mut link = link(1, 0);
        link.send(Ps::ZERO, Traffic::Data { grains: 1 }, Bytes(128));
        link.send(Ps::ZERO, Traffic::Control, Bytes(16));
        link.send(Ps::ZERO, Traffic::Control, Bytes(16));
        assert_eq!(link.stats().data, TrafficStats { packets: 1, bytes: 128 });
        assert_eq!(link.stats().control, TrafficStats { packets: 2, bytes: 32 });
        assert_eq!((link.stats().bytes(), link.stats().grains), (Bytes(160), 1));
    }

    #[test]
    fn packets_arrive_in_order_at_an_infinite_rate() {
        let mut link = Link::new(LinkConfig { rate: Rate::INFINITE, latency: Ps(10) });
        assert_eq!(link.send(Ps(100), Traffic::Data { grains: 1 }, Bytes(1 << 30)), Ps(110));
        assert_eq!(link.send(Ps(90), Traffic::Data { grains: 1 }, Bytes(1)), Ps(110), "not ahead of the packet before");
        assert_eq!(link.stats().busy, Ps::ZERO);
    }
}
