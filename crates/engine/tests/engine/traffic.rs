//! Random traffic between components: results must be equal for every partitioning and number of threads. A digest over
//! all handled events makes runs comparable.

use tombolo_engine::{Engine, EngineStats, Event, Lookahead, Outbox, Partition, ThreadPool};
use tombolo_types::{ComponentId, Ps};

/// The finest partitioning: component groups with shared state.
const GROUPS: usize = 70;
/// Components, assigned to the groups in turn.
const COMPONENTS: usize = 200;
/// The least delay between groups.
const LOOKAHEAD: Ps = Ps(20_000);
/// Clusters of adjacent groups: a whole number of groups, and a whole number of partitions if the partitioning respects
/// clusters.
const CLUSTERS: usize = 5;
/// Additional delay between groups in different clusters.
const FURTHER: u64 = 45_000;

/// Remaining number of successive events caused by a message.
#[derive(Clone, Copy, Default)]
struct Hops(u32);

/// Components with shared state, like the SMs in a module.
struct Group {
    index: usize,
    random: u64,
    /// Digest over all handled events, in order.
    digest: u64,
}

/// A partition: adjacent groups.
struct GroupPartition {
    groups: Vec<Group>,
}

fn group_of(component: usize) -> usize {
    component % GROUPS
}

fn partition_of(group: usize, partitions: usize) -> usize {
    group * partitions / GROUPS
}

fn cluster_of(group: usize) -> usize {
    group * CLUSTERS / GROUPS
}

fn mix(state: u64, value: u64) -> u64 {
    let mixed = (state ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

impl Group {
    fn below(&mut self, limit: u64) -> u64 {
        self.random = mix(self.random, 0x5851_f42d_4c95_7f2d);
        (self.random >> 16) % limit
    }

    /// A receiver and a delay: the same component, another component in the group, or any component, near or far in
    /// time.
    fn next_hop(&mut self, own: usize) -> (usize, u64) {
        match self.below(8) {
            0 => (own, self.below(3) * 500),
            1 => (own, self.below(6_000_000)),
            2 | 3 => (self.index + GROUPS * self.below(2) as usize, self.below(4) * 300),
            4 => self.any(9_000_000, 1),
            _ => self.any(4, 2_500),
        }
    }

    /// Any component, and a delay with fewer than `steps` steps above the least.
    fn any(&mut self, steps: u64, step: u64) -> (usize, u64) {
        let to = self.below(COMPONENTS as u64) as usize;
        let further = if cluster_of(group_of(to)) == cluster_of(self.index) { 0 } else { FURTHER };
        (to, LOOKAHEAD.0 + further + self.below(steps) * step)
    }

    fn handle(&mut self, event: &Event<Hops>, out: &mut Outbox<'_, Hops>) {
        assert_eq!(out.now(), event.time);
        let (time, tie) = event.key();
        self.digest = mix(mix(mix(self.digest, time), tie), u64::from(event.message.0));
        let Some(hops) = event.message.0.checked_sub(1) else { return };
        let twice = self.below(16) == 0;
        for hops in [Some(hops), twice.then_some(hops / 2)].into_iter().flatten() {
            let (to, delay) = self.next_hop(usize::from(event.to.0));
            out.send(event.time + Ps(delay), event.to, ComponentId(to as u16), Hops(hops));
        }
    }
}

impl Partition for GroupPartition {
    type Message = Hops;
    fn handle(&mut self, event: &Event<Hops>, out: &mut Outbox<'_, Hops>) {
        let first = self.groups[0].index;
        self.groups[group_of(usize::from(event.to.0)) - first].handle(event, out);
    }
}

/// Lookahead for an engine with `partitions` partitions: clusters are further apart, if no partition belongs to two.
fn lookahead(partitions: usize) -> Lookahead {
    if !partitions.is_multiple_of(CLUSTERS) {
        return Lookahead::even(partitions, LOOKAHEAD);
    }
    let groups = (0..partitions).map(|partition| (partition * CLUSTERS / partitions) as u16).collect();
    Lookahead { groups, within: LOOKAHEAD, between: LOOKAHEAD + Ps(FURTHER) }
}

/// An engine with `partitions` partitions and some initial messages.
fn engine(partitions: usize, seed: u64) -> Engine<GroupPartition> {
    let mut parts: Vec<GroupPartition> = (0..partitions).map(|_| GroupPartition { groups: Vec::new() }).collect();
    for index in 0..GROUPS {
        let group = Group { index, random: mix(seed, index as u64), digest: 0 };
        parts[partition_of(index, partitions)].groups.push(group);
    }
    let home = |component| partition_of(group_of(component), partitions) as u16;
    let mut engine = Engine::new(parts, (0..COMPONENTS).map(home).collect(), lookahead(partitions)).ignoring_load();
    start(&mut engine, Ps::ZERO);
    engine
}

fn start(engine: &mut Engine<GroupPartition>, at: Ps) {
    for component in (0..COMPONENTS as u16).step_by(3) {
        engine.schedule(at, ComponentId(0), ComponentId(component), Hops(60));
    }
}

fn digest(engine: &Engine<GroupPartition>) -> u64 {
    let groups = engine.partitions().iter().flat_map(|cut| &cut.groups);
    groups.fold(0, |digest, group| mix(digest, group.digest))
}

/// Runs the engine, schedules more messages, and runs it again.
fn simulate(partitions: usize, threads: usize, seed: u64) -> (u64, [EngineStats; 2]) {
    let mut engine = engine(partitions, seed);
    let first = engine.run(threads);
    start(&mut engine, first.last_event);
    let second = engine.run(threads);
    (digest(&engine), [first, second])
}

#[test]
fn cut_and_threads_change_nothing() {
    simulated_alike(&[1]);
}

#[test]
#[ignore = "deep: more seeds"]
fn cut_and_threads_change_nothing_from_other_seeds() {
    simulated_alike(&[2, 3, 4, 5, 6, 7, 8]);
}

fn simulated_alike(seeds: &[u64]) {
    for &seed in seeds {
        let (expected, [first, second]) = simulate(1, 1, seed);
        assert!(first.events > 5_000 && second.events > 5_000 && first.windows == 1);
        for partitions in [2, CLUSTERS, 10, 17, GROUPS] {
            let (_, alone) = simulate(partitions, 1, seed);
            for threads in [1, 2, 3, 4, 8] {
                let case = format!("seed {seed}, {partitions} partitions, {threads} threads");
                let (digest, stats) = simulate(partitions, threads, seed);
                assert_eq!(digest, expected, "{case}");
                for (stats, (alone, merged)) in stats.iter().zip(alone.iter().zip([first, second])) {
                    assert_eq!((stats.events, stats.last_event), (merged.events, merged.last_event), "{case}");
                    assert!((1..=threads.min(partitions)).contains(&stats.threads), "{case}");
                    if partitions > CLUSTERS && partitions.is_multiple_of(CLUSTERS) {
                        // More windows are possible if threads share a group.
                        assert!(stats.windows >= alone.windows, "{case}");
                    } else {
                        assert_eq!(stats.windows, alone.windows, "{case}");
                    }
                }
            }
        }
    }
}

#[test]
fn threads_that_come_and_go_change_nothing() {
    for partitions in [10, 17] {
        let busy = || {
            let mut engine = engine(partitions, 4);
            (0..60).for_each(|_| start(&mut engine, Ps::ZERO));
            engine
        };
        let mut alone = busy();
        let expected = alone.run(1);
        for threads in [1, 3, 7] {
            let spare = ThreadPool::new(threads);
            let mut joined = busy();
            let stats = joined.run_beside(&spare);
            let case = format!("{partitions} partitions, {threads} spare threads");
            assert_eq!(digest(&joined), digest(&alone), "{case}");
            assert_eq!((stats.events, stats.last_event), (expected.events, expected.last_event), "{case}");
            assert!((2..=1 + threads).contains(&stats.threads), "{case}: {stats:?}");
            assert_eq!(spare.count(), threads, "{case}");
        }
    }
}

#[test]
fn a_digest_notices_another_seed() {
    assert_ne!(simulate(17, 1, 1).0, simulate(17, 1, 2).0, "otherwise the digest tests nothing");
}

#[test]
fn partitions_come_back_after_the_run() {
    let mut engine = engine(17, 1);
    engine.run(4);
    engine.partitions_mut()[3].groups[0].digest = 9;
    assert_eq!(engine.into_partitions()[3].groups[0].digest, 9);
}
