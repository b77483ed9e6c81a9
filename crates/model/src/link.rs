//! One direction of a link: bytes serialise at a rate, then fly for a latency.
//!
//! What is sent by [`Link::send`] arrives in the order it was sent. Not modelled: credits of the link layer, replay of
//! damaged packets.

use crate::departure::Departure;
use tombolo_types::{Bytes, Ps, Rate, Serializer};

/// What a packet is for, in the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Traffic {
    /// It carries bytes of memory.
    Data {
        /// How many grains of a line.
        grains: u32,
    },
    /// A request, an acknowledgment, an invalidation.
    Control,
}

/// Shape of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Bandwidth; [`Rate::INFINITE`] where nothing queues.
    pub rate: Rate,
    /// From the last byte's departure to its arrival.
    pub latency: Ps,
}

/// What one kind of traffic sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficStats {
    /// Packets.
    pub packets: u64,
    /// Bytes, headers included where the sender counts them.
    pub bytes: u64,
}

/// Counters of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets that carry memory.
    pub data: TrafficStats,
    /// All others.
    pub control: TrafficStats,
    /// Grains of memory carried.
    pub grains: u64,
    /// How long it was sending: divided by the run's length, its utilisation.
    pub busy: Ps,
    /// Longest wait of a packet before its first byte left.
    pub worst_queueing: Ps,
}

impl LinkStats {
    /// Bytes of every kind.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.data.bytes + self.control.bytes)
    }

    /// Counts a packet.
    pub fn count(&mut self, traffic: Traffic, bytes: Bytes) {
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

    /// Adds the counters of another link, or of the same link at another time.
    pub fn merge(&mut self, other: &LinkStats) {
        for (mine, theirs) in [(&mut self.data, other.data), (&mut self.control, other.control)] {
            mine.packets += theirs.packets;
            mine.bytes += theirs.bytes;
        }
        self.grains += other.grains;
        self.busy += other.busy;
        self.worst_queueing = self.worst_queueing.max(other.worst_queueing);
    }
}

/// One direction of a link.
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

    /// Sends `bytes` at `now`, behind everything sent before; returns when the last byte arrives, never
    /// before the packet ahead.
    #[inline]
    pub fn send(&mut self, now: Ps, traffic: Traffic, bytes: Bytes) -> Ps {
        let arrival = self.pass(now, Departure::at(now), traffic, bytes).time();
        self.last_arrival = self.last_arrival.max(arrival);
        self.last_arrival
    }

    /// Sends `bytes` of what departs as told, behind everything sent before `now`, the time of the event; returns when
    /// the last byte arrives. A packet that is looked up for longer than the next one may arrive after it.
    #[inline]
    pub fn pass(&mut self, now: Ps, departure: Departure, traffic: Traffic, bytes: Bytes) -> Departure {
        let start = now.max(self.serializer.free_at());
        let passed = departure.through(now, &mut self.serializer, bytes);
        self.stats.count(traffic, bytes);
        self.stats.busy += self.serializer.free_at().saturating_sub(start);
        self.stats.worst_queueing = self.stats.worst_queueing.max(start - now);
        passed.after(self.latency)
    }

    /// When everything sent so far has left.
    pub fn free_at(&self) -> Ps {
        self.serializer.free_at()
    }

    /// From departure to arrival.
    pub fn latency(&self) -> Ps {
        self.latency
    }

    /// Counters so far.
    pub fn stats(&self) -> &LinkStats {
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
