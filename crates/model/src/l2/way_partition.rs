//! Partition of the ways in a module's caches between local lines, from its own memory, and remote lines; and the
//! controller that shifts ways between both sides (NUMA-GPU, section 5.1).
//!
//! A split restricts only the choice of a fill's victim. Lookups search every way, so lines left on the wrong side by a
//! shift stay until they are replaced. An empty way has no victim and accepts any line, unless the policy is strict. A
//! [`CapacityPolicy`] from crate `design` makes the decisions; this file measures the inputs per window.
//!
//! Each module has a controller, followed by the L2 and all L1s. The controller runs at the first event after each
//! sample time, with the state before this event, and therefore needs no separate event. Incoming traffic is estimated
//! from the module's own reads; writes by remote modules do not count. A window is judged by the link's lanes at its
//! end.

use crate::l2::cache::Ways;
use std::sync::Arc;
use tombolo_design::capacity::{CacheLevel, CapacityPolicy, Window};
use tombolo_types::{Bytes, Ps, Rate};

/// Percentage of a window from which a resource counts as saturated. Source: NUMA-GPU, section 5.1.
const SATURATED: u128 = 99;

/// Shape of the way partition in a module.
#[derive(Clone, Debug)]
pub(crate) struct WayPartitionConfig {
    /// Sharing policy for the ways.
    pub(crate) policy: Arc<dyn CapacityPolicy>,
    /// Time between samples; `None` if nothing shifts.
    pub(crate) sample: Option<Ps>,
    /// Ways in an L1.
    pub(crate) l1_ways: u32,
    /// Ways in the L2.
    pub(crate) l2_ways: u32,
    /// Rate at which replies arrive while no lane has turned.
    pub(crate) incoming: Rate,
}

/// Ways in a cache available to lines on either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaySplit {
    /// For lines in the module's own memory.
    pub(crate) local: Ways,
    /// For all other lines.
    pub(crate) remote: Ways,
}

impl WaySplit {
    /// Any line may use any way.
    pub(crate) const WHOLE: WaySplit = WaySplit { local: Ways::ALL, remote: Ways::ALL };

    /// Gives the first `local` of `ways` ways to local lines, and the rest to remote lines. `side` converts a mask into
    /// the allowed ways.
    fn of(ways: u32, local: u32, side: fn(u32) -> Ways) -> WaySplit {
        let first = (1 << local) - 1;
        let all = u32::MAX >> (u32::BITS - ways);
        WaySplit { local: side(first), remote: side(all & !first) }
    }

    /// True if the split has no effect.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        *self == WaySplit::WHOLE
    }
}

/// Number of local ways, from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalWays {
    /// Start time.
    pub since: Ps,
    /// Local ways in an L1; 0 if it is not split.
    pub l1: u32,
    /// Local ways in the L2.
    pub l2: u32,
}

/// Way partition in one module.
#[derive(Clone, Debug)]
pub struct WayPartition {
    config: WayPartitionConfig,
    l1: WaySplit,
    l2: WaySplit,
    local: LocalWays,
    next_sample: Ps,
    /// Current arrival rate for replies.
    incoming: Rate,
    /// Reply bytes for reads to other modules' lines sent in this window.
    answers: u64,
    /// Value of [`WayPartition::sample`]'s argument `queued` at the window's start.
    queued: Ps,
    /// Changes so far, the first at the first kernel's launch.
    history: Vec<LocalWays>,
    /// Number of samples with a move to remote lines, and with a move to local lines.
    moves: [u64; 2],
}

impl WayPartition {
    /// A partition before the first kernel.
    pub(crate) fn new(config: WayPartitionConfig) -> WayPartition {
        let mut partition = WayPartition {
            l1: WaySplit::WHOLE,
            l2: WaySplit::WHOLE,
            local: LocalWays { since: Ps::ZERO, l1: 0, l2: 0 },
            next_sample: Ps::NEVER,
            incoming: config.incoming,
            config,
            answers: 0,
            queued: Ps::ZERO,
            history: Vec::new(),
            moves: [0; 2],
        };
        partition.start(Ps::ZERO);
        partition
    }

    /// Way split for each L1.
    #[inline]
    pub(crate) fn l1(&self) -> &WaySplit {
        &self.l1
    }

    /// Way split for the L2.
    #[inline]
    pub(crate) fn l2(&self) -> &WaySplit {
        &self.l2
    }

    /// True if the splits never change.
    pub(crate) fn is_fixed(&self) -> bool {
        self.config.sample.is_none()
    }

    /// Time for the next sample; [`Ps::NEVER`] if nothing shifts.
    #[inline]
    pub(crate) fn next_sample(&self) -> Ps {
        self.next_sample
    }

    /// A read for another module's line was sent. The reply has `answer` bytes, including the header.
    #[inline]
    pub(crate) fn read_sent(&mut self, answer: Bytes) {
        self.answers += answer.0;
    }

    /// Link lanes have turned: from now on, replies arrive at `rate`.
    pub(crate) fn set_incoming(&mut self, rate: Rate) {
        self.incoming = rate;
    }

    /// A kernel starts here. `queued`: see [`WayPartition::sample`].
    pub(crate) fn launch(&mut self, now: Ps, queued: Ps) {
        let Some(sample) = self.config.sample else { return };
        if self.config.policy.resets() || self.history.is_empty() {
            self.start(now);
            self.record();
        }
        (self.next_sample, self.answers, self.queued) = (now + sample, 0, queued);
    }

    /// The kernel has ended here.
    pub(crate) fn stop(&mut self) {
        self.next_sample = Ps::NEVER;
    }

    /// Ends the window at [`WayPartition::next_sample`]. `queued`: total time up to then during which requests waited
    /// at a memory channel, averaged over all channels.
    pub(crate) fn sample(&mut self, queued: Ps) {
        let Some(sample) = self.config.sample else { return };
        let came_in = u128::from(self.answers) * 1_000_000_000_000;
        let could = u128::from(self.incoming.0) * u128::from(sample.0);
        let window = Window {
            link: !self.incoming.is_infinite() && came_in * 100 >= could * SATURATED,
            memory: u128::from((queued - self.queued).0) * 100 >= u128::from(sample.0) * SATURATED,
        };
        self.shift(window);
        (self.answers, self.queued) = (0, queued);
        self.next_sample += sample;
    }

    /// Changes so far: local way counts, each with its start time.
    pub fn history(&self) -> &[LocalWays] {
        &self.history
    }

    /// Number of samples with a move to remote lines, and with a move to local lines.
    pub fn moves(&self) -> (u64, u64) {
        (self.moves[0], self.moves[1])
    }

    fn shift(&mut self, window: Window) {
        let WayPartitionConfig { policy, l1_ways, l2_ways, .. } = &self.config;
        let next = |local: u32, ways: u32| if local == 0 { 0 } else { policy.shift(local, ways, window) };
        let before = self.local;
        let (l1, l2) = (next(before.l1, *l1_ways), next(before.l2, *l2_ways));
        self.set(LocalWays { since: self.next_sample, l1, l2 });
        if (l1, l2) != (before.l1, before.l2) {
            self.moves[usize::from(l1 > before.l1 || l2 > before.l2)] += 1;
            self.record();
        }
    }

    /// Sets the split at a kernel's start.
    fn start(&mut self, since: Ps) {
        let policy = &self.config.policy;
        let local = |level, ways| policy.start(level, ways).unwrap_or(0);
        let (l1, l2) = (local(CacheLevel::L1, self.config.l1_ways), local(CacheLevel::L2, self.config.l2_ways));
        self.set(LocalWays { since, l1, l2 });
    }

    fn set(&mut self, local: LocalWays) {
        // With a strict policy, the two sides are separate caches. Otherwise a split does not restrict empty ways.
        let side = if self.config.policy.is_strict() { Ways::only } else { Ways::replacing };
        let split = |local, ways| if local == 0 { WaySplit::WHOLE } else { WaySplit::of(ways, local, side) };
        self.l1 = split(local.l1, self.config.l1_ways);
        self.l2 = split(local.l2, self.config.l2_ways);
        self.local = local;
    }

    fn record(&mut self) {
        self.history.push(self.local);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_design::capacity::{NumaAware, Shared, StaticHalves};

    const SAMPLE: Ps = Ps::from_ns(5_000);
    const BUSY: Ps = SAMPLE;
    const IDLE: Ps = Ps::ZERO;

    /// A line with its header.
    const ANSWER: Bytes = Bytes(144);

    /// 64 GB/s and 144 bytes: 2200 reads are 99 % of a window.
    fn partition(policy: impl CapacityPolicy + 'static) -> WayPartition {
        of_ways(policy, 4, 16)
    }

    fn of_ways(policy: impl CapacityPolicy + 'static, l1_ways: u32, l2_ways: u32) -> WayPartition {
        let sample = policy.sample_cycles().map(|_| SAMPLE);
        let (policy, incoming) = (Arc::new(policy), Rate(64_000_000_000));
        WayPartition::new(WayPartitionConfig { policy, sample, l1_ways, l2_ways, incoming })
    }

    fn numa_aware(reset: bool) -> NumaAware {
        NumaAware { sample_time: 5_000, reset }
    }

    fn shifting() -> WayPartition {
        let mut partition = partition(numa_aware(true));
        partition.launch(Ps::ZERO, Ps::ZERO);
        partition
    }

    /// A window with `reads` reads, in which requests waited at memory for `queued`.
    fn window(partition: &mut WayPartition, reads: u64, queued: Ps) -> (u32, u32) {
        (0..reads).for_each(|_| partition.read_sent(ANSWER));
        partition.sample(partition.queued + queued);
        (partition.local.l1, partition.local.l2)
    }

    #[test]
    fn every_rule_moves_one_way_or_none() {
        let mut it = shifting();
        assert_eq!((it.local.l1, it.local.l2), (2, 8));
        assert_eq!(window(&mut it, 2200, IDLE), (1, 7), "only the link is saturated");
        assert_eq!(window(&mut it, 2199, IDLE), (1, 7), "neither: 99 % is not reached");
        assert_eq!(window(&mut it, 2200, BUSY), (2, 8), "both: toward half");
        assert_eq!(window(&mut it, 2200, BUSY), (2, 8), "both, at half");
        assert_eq!(window(&mut it, 0, BUSY), (3, 9), "only memory is saturated");
        assert_eq!(window(&mut it, 0, Ps(SAMPLE.0 * 99 / 100)), (3, 10), "99 % of the window is enough");
        assert_eq!(window(&mut it, 0, Ps(SAMPLE.0 * 98 / 100)), (3, 10));
        assert_eq!(window(&mut it, 2200, BUSY), (2, 9), "both: toward half from the other side");
        assert_eq!(it.moves(), (2, 3));
    }

    #[test]
    fn each_side_keeps_a_way() {
        let mut it = shifting();
        assert_eq!((0..20).map(|_| window(&mut it, 3000, IDLE)).last(), Some((1, 1)));
        assert_eq!((it.l2().local, it.l2().remote), (Ways::replacing(1), Ways::replacing(0xfffe)));
        assert_eq!((0..40).map(|_| window(&mut it, 0, BUSY)).last(), Some((3, 15)));
        assert_eq!((it.l1().local, it.l1().remote), (Ways::replacing(7), Ways::replacing(8)));
        assert_eq!((it.l2().local, it.l2().remote), (Ways::replacing(0x7fff), Ways::replacing(0x8000)));
    }

    #[test]
    fn a_kernel_starts_with_halves_unless_told_to_go_on() {
        for reset in [true, false] {
            let mut it = partition(numa_aware(reset));
            it.launch(Ps::ZERO, Ps::ZERO);
            window(&mut it, 3000, IDLE);
            it.stop();
            assert_eq!(it.next_sample(), Ps::NEVER);
            it.launch(Ps::from_ns(7_000), Ps::ZERO);
            assert_eq!(it.local.l2, if reset { 8 } else { 7 });
            assert_eq!(it.next_sample(), Ps::from_ns(12_000));
        }
    }

    #[test]
    fn halves_stay_and_leave_the_l1_whole() {
        let mut it = partition(StaticHalves {});
        it.launch(Ps::ZERO, Ps::ZERO);
        assert_eq!((it.next_sample(), it.l1().is_whole()), (Ps::NEVER, true));
        assert_eq!((it.l2().local, it.l2().remote), (Ways::only(0xff), Ways::only(0xff00)));
        assert!(partition(Shared {}).l2().is_whole());
    }

    #[test]
    fn answers_of_part_of_a_line_count_as_that_part() {
        let mut it = shifting();
        (0..2200).for_each(|_| it.read_sent(Bytes(48)));
        it.sample(IDLE);
        assert_eq!(it.local.l2, 8, "a third of the window");
        (0..6600).for_each(|_| it.read_sent(Bytes(48)));
        it.sample(IDLE);
        assert_eq!(it.local.l2, 7);
    }

    #[test]
    fn an_infinite_link_is_never_saturated() {
        let mut it = shifting();
        it.set_incoming(Rate::INFINITE);
        assert_eq!(window(&mut it, 1_000_000, IDLE), (2, 8));
    }

    #[test]
    fn a_window_is_held_to_the_lanes_of_its_end() {
        let mut it = shifting();
        it.set_incoming(Rate(120_000_000_000));
        assert_eq!(window(&mut it, 2200, IDLE), (2, 8), "15 of 16 lanes are incoming: 4125 reads are 99 %");
        assert_eq!(window(&mut it, 4125, IDLE), (1, 7));
        it.set_incoming(Rate(8_000_000_000));
        assert_eq!(window(&mut it, 275, IDLE), (1, 6), "one lane");
    }

    #[test]
    fn a_cache_of_one_way_is_not_split() {
        let mut it = of_ways(numa_aware(true), 1, 32);
        it.launch(Ps::ZERO, Ps::ZERO);
        assert_eq!(window(&mut it, 3000, IDLE), (0, 15));
        assert!(it.l1().is_whole());
        assert_eq!(it.l2().remote, Ways::replacing(0xffff_8000));
    }
}
