//! A link with turning lanes: both directions between a GPU and the switch, and the policy that assigns lanes to
//! directions. Source: NUMA-GPU, section 4, row by row in [`TurningLink::sample`] and [`TurningLink::launch`].
//!
//! Bytes are striped over the lanes in a direction, so a packet is sent at the combined rate of all lanes. A packet in
//! transmission ends at its initial rate: a turning lane must still drain this packet. From this moment on, the
//! direction continues without the lane, which carries nothing until it has turned. Packets wait in order of arrival
//! and use the lanes available when their turn comes.
//!
//! Not modelled: lanes with different lengths, lane training beyond the switch time.

use crate::fabric::link::{LinkStats, Traffic};
use std::collections::VecDeque;
use tombolo_types::{Bytes, Ps, Rate, Serializer};

/// Percentage of a sample's time spent sending in a saturated direction. Source: NUMA-GPU, section 4.
const SATURATED_PERCENT: u64 = 99;

/// Direction on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the GPU to the switch.
    Out,
    /// From the switch to the GPU.
    In,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Direction; 2] = [Direction::Out, Direction::In];

    fn other(self) -> Direction {
        match self {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
        }
    }
}

/// Shape of a link whose lanes turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurningConfig {
    /// Bandwidth for a direction with `lanes` lanes; finite.
    pub(crate) rate: Rate,
    /// Lanes per direction when both have equally many; at least 1.
    pub(crate) lanes: u32,
    /// Time from the end of a lane's drain until the lane carries the opposite direction.
    pub(crate) switch_time: Ps,
}

/// Lane counters for one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneStats {
    /// Lanes turned to this direction.
    pub turned: u64,
    /// Sum over lanes of the time spent in this direction, in picoseconds.
    pub lane_time: u64,
}

/// A packet in the queue or in transmission.
#[derive(Clone, Debug)]
struct QueuedPacket<P> {
    packet: P,
    traffic: Traffic,
    bytes: Bytes,
    since: Ps,
}

/// State of one direction.
#[derive(Clone, Debug)]
struct DirectionState<P> {
    /// Queued packets; the first is in transmission.
    queue: VecDeque<QueuedPacket<P>>,
    serializer: Serializer,
    /// Value of `stats.busy` at the last sample.
    sampled: Ps,
    lanes: u32,
    /// Start time for the current lane count.
    lanes_since: Ps,
    lane_stats: LaneStats,
    stats: LinkStats,
}

impl<P> DirectionState<P> {
    fn new(config: &TurningConfig) -> DirectionState<P> {
        DirectionState {
            queue: VecDeque::new(),
            serializer: Serializer::new(config.rate),
            sampled: Ps::ZERO,
            lanes: config.lanes,
            lanes_since: Ps::ZERO,
            lane_stats: LaneStats::default(),
            stats: LinkStats::default(),
        }
    }

    /// Starts the packet at the head; returns the last byte's departure time.
    fn start(&mut self, now: Ps) -> Option<Ps> {
        let QueuedPacket { traffic, bytes, since, .. } = self.queue.front()?;
        let until = self.serializer.send(now, *bytes);
        self.stats.count(*traffic, *bytes);
        self.stats.busy += until - now;
        self.stats.worst_queueing = self.stats.worst_queueing.max(now - *since);
        Some(until)
    }

    /// Sending time up to `now`: a packet in transmission counts only up to its present progress.
    fn busy(&self, now: Ps) -> Ps {
        self.stats.busy.saturating_sub(self.serializer.free_at().saturating_sub(now))
    }

    fn set_lanes(&mut self, now: Ps, lanes: u32, config: &TurningConfig) {
        self.lane_stats.lane_time += u64::from(self.lanes) * (now - self.lanes_since).0;
        self.lane_stats.turned += u64::from(lanes.saturating_sub(self.lanes));
        (self.lanes, self.lanes_since) = (lanes, now);
        let rate = u128::from(config.rate.0) * u128::from(lanes) / u128::from(config.lanes);
        // A packet in transmission keeps its initial rate.
        let free_at = self.serializer.free_at();
        self.serializer = Serializer::new(Rate(u64::try_from(rate).expect("lanes are at most a few dozen")));
        self.serializer.send(free_at, Bytes(0));
    }
}

/// Lanes in transition from one direction to the opposite direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PendingTurn {
    /// Time when the lanes carry data again.
    due: Ps,
    /// Lanes gained, by [`Direction`].
    gains: [u32; 2],
}

/// Both directions on a GPU's link. `P`: packet type.
#[derive(Clone, Debug)]
pub(crate) struct TurningLink<P> {
    config: TurningConfig,
    /// Directions by [`Direction`].
    directions: [DirectionState<P>; 2],
    turn: Option<PendingTurn>,
    sampled_at: Ps,
}

impl<P> TurningLink<P> {
    /// An idle link with equally many lanes in each direction.
    pub(crate) fn new(config: TurningConfig) -> TurningLink<P> {
        assert!(!config.rate.is_infinite() && config.lanes > 0, "a link that turns has lanes of some rate");
        let directions = [DirectionState::new(&config), DirectionState::new(&config)];
        TurningLink { config, directions, turn: None, sampled_at: Ps::ZERO }
    }

    /// Queues a packet at `now`. If the direction was idle, returns the last byte's departure time:
    /// [`TurningLink::sent`] must be called then.
    #[inline]
    pub(crate) fn push(
        &mut self,
        now: Ps,
        direction: Direction,
        packet: P,
        traffic: Traffic,
        bytes: Bytes,
    ) -> Option<Ps> {
        let state = &mut self.directions[direction as usize];
        state.queue.push_back(QueuedPacket { packet, traffic, bytes, since: now });
        if state.queue.len() == 1 { state.start(now) } else { None }
    }

    /// Removes the packet whose last byte leaves at `now`. Also returns the time for the next call, if another packet
    /// waits.
    #[inline]
    pub(crate) fn sent(&mut self, now: Ps, direction: Direction) -> (P, Option<Ps>) {
        let state = &mut self.directions[direction as usize];
        let gone = state.queue.pop_front().expect("a packet ends that was being sent");
        (gone.packet, state.start(now))
    }

    /// Resets the link at a kernel launch: all lanes necessary for equal directions turn at once. Returns the time to
    /// call [`TurningLink::turned`], if lanes turn. Sampling begins anew.
    pub(crate) fn launch(&mut self, now: Ps) -> Option<Ps> {
        self.forget_sample(now, now);
        let half = self.config.lanes;
        // Lanes already turning just carry later, like all others.
        self.turn = None;
        self.start_turn(
            now,
            Direction::BOTH.map(|direction| self.directions[direction as usize].lanes.min(half)),
            [half; 2],
        )
    }

    /// Evaluates the time since the last sample, or since [`TurningLink::launch`]. Returns the time to call
    /// [`TurningLink::turned`], if a lane turns.
    ///
    /// If only one direction is saturated, a lane in the opposite direction turns, unless this is the last lane. If
    /// both are saturated, a lane turns towards equal numbers. If neither is saturated, or a lane is still turning,
    /// nothing changes.
    pub(crate) fn sample(&mut self, now: Ps) -> Option<Ps> {
        let window = now - self.sampled_at;
        let saturated = Direction::BOTH.map(|direction| {
            let state = &self.directions[direction as usize];
            (state.busy(now) - state.sampled).0 * 100 >= window.0 * SATURATED_PERCENT && window > Ps::ZERO
        });
        self.forget_sample(now, now);
        let lanes = Direction::BOTH.map(|direction| self.directions[direction as usize].lanes);
        let gains = match saturated {
            [true, false] => Direction::Out,
            [false, true] => Direction::In,
            [true, true] if lanes[0] < lanes[1] => Direction::Out,
            [true, true] if lanes[0] > lanes[1] => Direction::In,
            [true, true] | [false, false] => return None,
        };
        let loses = gains.other();
        if self.turn.is_some() || lanes[loses as usize] == 1 {
            return None;
        }
        let mut kept = lanes;
        kept[loses as usize] -= 1;
        let mut wanted = kept;
        wanted[gains as usize] += 1;
        self.start_turn(now, kept, wanted)
    }

    /// Lanes begin to carry their new direction if their turn is due at `now`. A turn that a launch has replaced is
    /// ignored.
    pub(crate) fn turned(&mut self, now: Ps) {
        let Some(turn) = self.turn.take_if(|turn| turn.due == now) else { return };
        for direction in Direction::BOTH {
            let (state, gain) = (&mut self.directions[direction as usize], turn.gains[direction as usize]);
            if gain > 0 {
                state.set_lanes(now, state.lanes + gain, &self.config);
            }
        }
    }

    /// True if no byte was sent since the last sample, and no packet waits.
    pub(crate) fn is_quiet(&self, now: Ps) -> bool {
        self.directions.iter().all(|state| state.queue.is_empty() && state.busy(now) == state.sampled)
    }

    /// Restarts the sample at `at`, which is at most `now`. Nothing was sent between both times.
    pub(crate) fn forget_sample(&mut self, now: Ps, at: Ps) {
        self.sampled_at = at;
        self.directions.iter_mut().for_each(|state| state.sampled = state.busy(now));
    }

    /// Current number of lanes in `direction`.
    pub(crate) fn lanes(&self, direction: Direction) -> u32 {
        self.directions[direction as usize].lanes
    }

    /// Counters for a direction until now.
    pub(crate) fn stats(&self, direction: Direction) -> &LinkStats {
        &self.directions[direction as usize].stats
    }

    /// Lane counters for a direction up to `end`.
    pub(crate) fn lane_stats(&self, direction: Direction, end: Ps) -> LaneStats {
        let state = &self.directions[direction as usize];
        let last = u64::from(state.lanes) * end.saturating_sub(state.lanes_since).0;
        LaneStats { lane_time: state.lane_stats.lane_time + last, ..state.lane_stats }
    }

    /// Leaves each direction `kept` lanes now, and `wanted` lanes when the remaining ones have drained and turned.
    fn start_turn(&mut self, now: Ps, kept: [u32; 2], wanted: [u32; 2]) -> Option<Ps> {
        if kept == wanted {
            return None;
        }
        let mut drained = now;
        for direction in Direction::BOTH {
            let (state, kept) = (&mut self.directions[direction as usize], kept[direction as usize]);
            if state.lanes != kept {
                drained = drained.max(state.serializer.free_at());
                state.set_lanes(now, kept, &self.config);
            }
        }
        let gains = Direction::BOTH.map(|direction| wanted[direction as usize] - kept[direction as usize]);
        let due = drained + self.config.switch_time;
        self.turn = Some(PendingTurn { due, gains });
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight lanes with 1 GB/s in each direction: all together take 125 ps per byte.
    fn link() -> TurningLink<u32> {
        let config = TurningConfig { rate: Rate(8_000_000_000), lanes: 8, switch_time: Ps(100_000) };
        TurningLink::new(config)
    }

    fn push(link: &mut TurningLink<u32>, now: u64, direction: Direction, packet: u32) -> Option<Ps> {
        link.push(Ps(now), direction, packet, Traffic::Data { grains: 1 }, Bytes(160))
    }

    /// Sends without a pause on `directions`, from time `from` to `to`, when a sample ends.
    fn saturate(link: &mut TurningLink<u32>, directions: &[Direction], from: u64, to: u64) -> Option<Ps> {
        for &direction in directions {
            let mut next = push(link, from, direction, 0);
            while let Some(at) = next.filter(|at| at.0 < to) {
                push(link, at.0, direction, 0);
                next = link.sent(at, direction).1;
            }
            while link.directions[direction as usize].queue.len() > 1 {
                link.directions[direction as usize].queue.pop_back();
            }
        }
        let turned = link.sample(Ps(to));
        for &direction in directions {
            let until = link.directions[direction as usize].serializer.free_at();
            link.sent(until, direction);
        }
        turned
    }

    fn lanes(link: &TurningLink<u32>) -> [u32; 2] {
        Direction::BOTH.map(|direction| link.lanes(direction))
    }

    #[test]
    fn packets_leave_one_after_the_other_at_the_rate_of_all_lanes() {
        let mut link = link();
        assert_eq!(push(&mut link, 0, Direction::Out, 1), Some(Ps(20_000)));
        assert_eq!(push(&mut link, 5, Direction::Out, 2), None, "it waits");
        assert_eq!(push(&mut link, 5, Direction::In, 3), Some(Ps(20_005)), "the other way is free");
        assert_eq!(link.sent(Ps(20_000), Direction::Out), (1, Some(Ps(40_000))));
        assert_eq!(link.sent(Ps(40_000), Direction::Out), (2, None));
        assert_eq!(link.stats(Direction::Out).worst_queueing, Ps(19_995));
    }

    #[test]
    fn a_lane_of_the_idle_way_turns_when_the_other_is_saturated() {
        let mut link = link();
        assert_eq!(saturate(&mut link, &[Direction::In], 0, 5_000_000), Some(Ps(5_100_000)), "nothing to drain");
        assert_eq!(lanes(&link), [7, 8], "it carries nothing while it turns");
        link.turned(Ps(5_100_000));
        assert_eq!(lanes(&link), [7, 9]);
        // 160 B over 9 GB/s.
        assert_eq!(push(&mut link, 6_000_000, Direction::In, 1), Some(Ps(6_017_777)));
    }

    #[test]
    fn a_way_just_below_saturation_gets_no_lane() {
        let mut link = link();
        let busy = saturate(&mut link, &[Direction::In], 60_000, 5_000_000);
        assert_eq!(busy, None, "4.94 of 5 us are 98.8 %");
        assert_eq!(saturate(&mut link, &[Direction::In], 5_040_000, 10_000_000), Some(Ps(10_100_000)), "99.2 %");
    }

    #[test]
    fn a_lane_turns_after_the_packet_on_it_has_drained() {
        let mut link = link();
        push(&mut link, 4_990_000, Direction::Out, 1);
        assert_eq!(saturate(&mut link, &[Direction::In], 0, 5_000_000), Some(Ps(5_010_000 + 100_000)));
        push(&mut link, 5_000_000, Direction::Out, 2);
        // The packet in transmission keeps its rate; the next packet has seven lanes.
        assert_eq!(link.sent(Ps(5_010_000), Direction::Out), (1, Some(Ps(5_010_000 + 22_857))));
    }

    #[test]
    fn one_lane_stays_and_fifteen_carry_the_other_way() {
        let mut link = link();
        for window in 0..20_u64 {
            let end = (window + 1) * 5_000_000;
            let turned = saturate(&mut link, &[Direction::In], window * 5_000_000, end);
            assert_eq!(turned.is_some(), window < 7, "window {window}");
            turned.into_iter().for_each(|at| link.turned(at));
        }
        assert_eq!(lanes(&link), [1, 15]);
        assert_eq!(link.lane_stats(Direction::In, Ps(100_000_000)).turned, 7);
    }

    #[test]
    fn two_saturated_ways_become_equal_again() {
        let mut link = link();
        for (window, directions) in
            [&[Direction::Out][..], &[Direction::Out], &Direction::BOTH, &Direction::BOTH, &Direction::BOTH]
                .iter()
                .enumerate()
        {
            let start = window as u64 * 5_000_000;
            let turned = saturate(&mut link, directions, start, start + 5_000_000);
            assert_eq!(turned.is_some(), window < 4, "window {window}");
            turned.into_iter().for_each(|at| link.turned(at));
        }
        assert_eq!(lanes(&link), [8, 8]);
    }

    #[test]
    fn a_launch_makes_both_ways_equal_whatever_is_turning() {
        let mut link = link();
        for window in 0..3 {
            let turned = saturate(&mut link, &[Direction::Out], window * 5_000_000, (window + 1) * 5_000_000);
            turned.filter(|_| window < 2).into_iter().for_each(|at| link.turned(at));
        }
        assert_eq!(lanes(&link), [10, 5]);
        assert_eq!(link.launch(Ps(15_050_000)), Some(Ps(15_150_000)));
        assert_eq!(lanes(&link), [8, 5]);
        link.turned(Ps(15_100_000));
        assert_eq!(lanes(&link), [8, 5], "the turn that the launch overtook is over");
        link.turned(Ps(15_150_000));
        assert_eq!(lanes(&link), [8, 8]);
        assert_eq!(link.launch(Ps(16_000_000)), None);
    }

    #[test]
    fn lanes_times_time_leaves_out_what_is_turning() {
        let mut link = link();
        saturate(&mut link, &[Direction::In], 0, 5_000_000).into_iter().for_each(|at| link.turned(at));
        let time = |direction| link.lane_stats(direction, Ps(10_000_000)).lane_time;
        assert_eq!(time(Direction::Out), 8 * 5_000_000 + 7 * 5_000_000);
        assert_eq!(time(Direction::In), 8 * 5_100_000 + 9 * 4_900_000);
    }

    #[test]
    fn a_link_is_quiet_until_something_is_sent() {
        let mut link = link();
        assert!(link.is_quiet(Ps(100)));
        push(&mut link, 100, Direction::In, 1);
        assert!(!link.is_quiet(Ps(100)));
        link.sent(Ps(20_100), Direction::In);
        assert!(!link.is_quiet(Ps(30_000)), "since the last sample");
        link.sample(Ps(30_000));
        assert!(link.is_quiet(Ps(40_000)));
    }
}
