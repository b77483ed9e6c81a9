//! Point-to-point links from every GPU to every other GPU, and to a host that belongs to the fabric.
//!
//! A packet is serialised once and meets no packet from another pair.

use crate::fabric::link::{Link, LinkConfig, LinkStats, Traffic};
use crate::fabric::turning_link::Direction;
use tombolo_types::{Bytes, GpuId, Ps, Rate};

/// Links in both directions between any two members.
#[derive(Clone, Debug)]
pub(crate) struct Pairs {
    members: usize,
    /// Links by sender, then receiver; a member's link to itself stays idle.
    links: Vec<Link>,
}

impl Pairs {
    /// Idle links with rate `rate` per direction between any two of `members`.
    pub(crate) fn new(members: u32, rate: Rate) -> Pairs {
        let members = members as usize;
        Pairs { members, links: vec![Link::new(LinkConfig { rate, latency: Ps::ZERO }); members * members] }
    }

    /// Sends `bytes` from one member to another; returns the last byte's departure time. Calls must be in `now` order.
    #[inline]
    pub(crate) fn send(&mut self, now: Ps, (from, to): (GpuId, GpuId), traffic: Traffic, bytes: Bytes) -> Ps {
        self.links[usize::from(from.0) * self.members + usize::from(to.0)].send(now, traffic, bytes)
    }

    /// Sum over the counters for all links at a member in one direction; the busy time is the average.
    pub(crate) fn stats(&self, member: GpuId, direction: Direction) -> LinkStats {
        let own = usize::from(member.0);
        let index = |other: usize| match direction {
            Direction::Out => own * self.members + other,
            Direction::In => other * self.members + own,
        };
        let mut all = LinkStats::default();
        let others = (0..self.members).filter(|other| *other != own);
        others.for_each(|other| all.merge(self.links[index(other)].stats()));
        all.busy = Ps(all.busy.0 / (self.members as u64 - 1).max(1));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate(80_000_000_000);
    /// Serialisation time for 100 bytes at 80 GB/s.
    const ONE: Ps = Ps(1250);
    const DATA: Traffic = Traffic::Data { grains: 1 };

    fn send(pairs: &mut Pairs, now: u64, from: u8, to: u8) -> Ps {
        pairs.send(Ps(now), (GpuId(from), GpuId(to)), DATA, Bytes(100))
    }

    #[test]
    fn each_ordered_pair_has_the_full_rate() {
        let mut pairs = Pairs::new(5, RATE);
        let mut ends = Vec::new();
        for _ in 0..800 {
            let ordered = (0..5_u8).flat_map(|from| (0..5).filter(move |to| *to != from).map(move |to| (from, to)));
            ends = ordered.map(|(from, to)| send(&mut pairs, 0, from, to)).collect();
        }
        assert_eq!(ends, [Ps(1_000_000); 20], "80 KB at 80 GB/s, twenty times side by side");
    }

    #[test]
    fn a_link_disturbs_no_other_nor_its_own_other_way() {
        let mut pairs = Pairs::new(3, RATE);
        (0..100).for_each(|_| _ = send(&mut pairs, 0, 0, 1));
        assert_eq!(send(&mut pairs, 0, 0, 1), Ps(101 * ONE.0));
        assert_eq!([(0, 2), (1, 0), (2, 1)].map(|(from, to)| send(&mut pairs, 7, from, to)), [Ps(7) + ONE; 3]);
    }

    #[test]
    fn a_member_counts_all_its_links_and_is_busy_on_the_mean() {
        let mut pairs = Pairs::new(3, RATE);
        (0..4).for_each(|_| _ = send(&mut pairs, 0, 0, 1));
        (0..2).for_each(|_| _ = send(&mut pairs, 0, 0, 2));
        let (out, into) = (pairs.stats(GpuId(0), Direction::Out), pairs.stats(GpuId(1), Direction::In));
        assert_eq!((out.bytes(), out.busy), (Bytes(600), Ps(3 * ONE.0)));
        assert_eq!((into.bytes(), into.busy), (Bytes(400), Ps(2 * ONE.0)));
        assert_eq!(pairs.stats(GpuId(0), Direction::In).bytes(), Bytes(0));
        assert_eq!(Pairs::new(1, RATE).stats(GpuId(0), Direction::Out).busy, Ps::ZERO, "one alone has no link");
    }
}
