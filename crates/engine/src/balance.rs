//! Load balancing between threads: assigns partitions to threads in shares with about equal load, and chooses the
//! number of threads.

use std::iter::repeat_n;

/// Minimum gain, in percent, before partitions are redistributed: the busiest thread must have at least this much less
/// work. A smaller gain would not pay for refilling the caches. Source: assumed.
const WORTHWHILE: u64 = 5;

/// Cost for dividing a group of partitions among threads, in percent of the busiest thread's work: the threads then
/// wait for each other more often. Source: assumed.
const DIVIDED: u64 = 10;

/// Cost for a barrier, in events. Source: measured on two cores, some 2 us, and 0.2 us per event.
const BARRIER: u64 = 10;

/// Work done by partitions in some windows.
#[derive(Clone, Copy)]
pub(crate) struct WindowLoads<'a> {
    /// Events per partition.
    pub(crate) loads: &'a [u64],
    /// Group of each partition.
    pub(crate) groups: &'a [u16],
    /// Number of windows.
    pub(crate) windows: u64,
}

/// Smallest number of threads, up to `most`, whose time is close to the best time for any number.
pub(crate) fn fewest(work: WindowLoads<'_>, most: usize) -> usize {
    let times: Vec<u64> = (1..=most).map(|threads| time(work, threads)).collect();
    let least = times.iter().copied().min().unwrap_or(0);
    1 + times.iter().position(|time| time * (100 - WORTHWHILE) <= least * 100).unwrap_or(0)
}

/// Time for the work on `threads` threads, in hundredths of an event.
fn time(WindowLoads { loads, groups, windows }: WindowLoads<'_>, threads: usize) -> u64 {
    let barriers = if threads > 1 { windows * BARRIER * 100 } else { 0 };
    cost(loads, groups, &best(loads, groups, threads), threads) + barriers
}

/// Initial thread for each partition. Partitions go to threads in turn, because neighbours often have similar loads. If
/// whole groups balance equally well, they stay together.
pub(crate) fn initial_owners(groups: &[u16], threads: usize) -> Vec<u16> {
    let count = groups.len();
    let of_partitions: Vec<u16> = (0..count).map(|index| (index % threads) as u16).collect();
    let mut of_groups = Vec::new();
    for members in sizes(groups) {
        let twice_the_middle = 2 * of_groups.len() + members;
        of_groups.extend(repeat_n((twice_the_middle * threads / (2 * count)) as u16, members));
    }
    let cost = |owners: &[u16]| cost(&vec![1; count], groups, owners, threads);
    if cost(&of_groups) < cost(&of_partitions) { of_groups } else { of_partitions }
}

/// Thread for each partition, after the current assignment `owners` produced `loads`. Keeps the assignment unless
/// another one is clearly better.
pub(crate) fn rebalance(loads: &[u64], groups: &[u16], owners: Vec<u16>, threads: usize) -> Vec<u16> {
    let cost = |owners: &Vec<u16>| cost(loads, groups, owners, threads);
    let best = best(loads, groups, threads);
    if cost(&best) * 100 < cost(&owners) * (100 - WORTHWHILE) { best } else { owners }
}

/// Thread for each partition with the given `loads`: whole or divided groups, whichever costs less.
pub(crate) fn best(loads: &[u64], groups: &[u16], threads: usize) -> Vec<u16> {
    let (whole, divided) = (whole_groups(loads, groups, threads), largest_first(loads, threads));
    let cost = |owners: &[u16]| cost(loads, groups, owners, threads);
    if cost(&divided) < cost(&whole) { divided } else { whole }
}

/// Assigns each group, busiest first, to the thread with the least work so far.
fn whole_groups(loads: &[u64], groups: &[u16], threads: usize) -> Vec<u16> {
    let mut rest = loads;
    let of_group = |members| rest.split_off(..members).map_or(0, |loads: &[u64]| loads.iter().sum());
    let of_groups: Vec<u64> = sizes(groups).map(of_group).collect();
    let owners = largest_first(&of_groups, threads);
    sizes(groups).zip(owners).flat_map(|(members, owner)| repeat_n(owner, members)).collect()
}

/// Number of partitions per group.
fn sizes(groups: &[u16]) -> impl Iterator<Item = usize> {
    groups.chunk_by(|a, b| a == b).map(<[u16]>::len)
}

/// True if any group is divided among threads.
pub(crate) fn splits_group(groups: &[u16], owners: &[u16]) -> bool {
    groups.windows(2).zip(owners.windows(2)).any(|(group, owner)| group[0] == group[1] && owner[0] != owner[1])
}

/// Cost for an assignment, in hundredths of a partition's unit of work.
fn cost(loads: &[u64], groups: &[u16], owners: &[u16], threads: usize) -> u64 {
    let percent = if splits_group(groups, owners) { 100 + DIVIDED } else { 100 };
    busiest(loads, owners, threads) * percent
}

/// Assigns each partition, busiest first, to the thread with the least work so far.
fn largest_first(loads: &[u64], threads: usize) -> Vec<u16> {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(loads[index]));
    let mut given = vec![0; threads];
    let mut owners = vec![0; loads.len()];
    for index in order {
        let idlest = (0..threads).min_by_key(|&thread| given[thread]).unwrap_or(0);
        given[idlest] += loads[index];
        owners[index] = idlest as u16;
    }
    owners
}

/// Load on the busiest thread, which determines the duration of a window.
fn busiest(loads: &[u64], owners: &[u16], threads: usize) -> u64 {
    let mut given = vec![0; threads];
    owners.iter().zip(loads).for_each(|(&owner, load)| given[usize::from(owner)] += load);
    given.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Partitions without neighbours.
    const APART: [u16; 6] = [0, 1, 2, 3, 4, 5];
    /// Two GPUs with three partitions each, and a hub.
    const GPUS: [u16; 7] = [0, 0, 0, 1, 1, 1, 2];

    #[test]
    fn threads_take_turns() {
        assert_eq!(initial_owners(&GPUS[..3], 2), [0, 1, 0]);
        assert_eq!(initial_owners(&APART[..3], 3), [0, 1, 2]);
    }

    #[test]
    fn groups_stay_whole_unless_that_is_uneven() {
        assert_eq!(initial_owners(&GPUS, 2), [0, 0, 0, 1, 1, 1, 1]);
        assert!(splits_group(&GPUS, &initial_owners(&GPUS, 4)));
    }

    #[test]
    fn shares_of_which_one_does_all_the_work_are_dealt_anew() {
        let owners = rebalance(&[50, 50, 50, 1, 1, 0], &APART, vec![0, 0, 0, 1, 1, 1], 2);
        assert_eq!(busiest(&[50, 50, 50, 1, 1, 0], &owners, 2), 100);
    }

    #[test]
    fn shares_that_are_nearly_even_stay() {
        let owners = vec![0, 1, 0, 1];
        assert_eq!(rebalance(&[50, 50, 52, 50], &APART[..4], owners.clone(), 2), owners);
        assert_eq!(rebalance(&[0; 4], &APART[..4], owners.clone(), 2), owners, "also without any events");
    }

    #[test]
    fn a_thread_that_cannot_help_is_not_used() {
        let fewest =
            |loads: &[u64], windows| fewest(WindowLoads { loads, groups: &APART[..loads.len()], windows }, loads.len());
        assert_eq!(fewest(&[900; 4], 10), 4);
        assert_eq!(fewest(&[900, 900, 900, 10], 10), 3, "one partition has hardly anything to do");
        assert_eq!(fewest(&[900, 10, 10, 10], 10), 1);
        assert_eq!(fewest(&[90; 4], 100), 1, "fewer events than barriers cost");
        assert_eq!(fewest(&[0; 4], 10), 1);
    }

    #[test]
    fn a_group_is_divided_only_where_that_wins_more_than_it_costs() {
        let whole = vec![0, 0, 0, 1, 1, 1, 0];
        let divided = rebalance(&[50, 50, 50, 1, 1, 0, 1], &GPUS, whole.clone(), 2);
        assert_eq!(busiest(&[50, 50, 50, 1, 1, 0, 1], &divided, 2), 100);
        assert_eq!(rebalance(&[53, 53, 53, 50, 50, 50, 1], &GPUS, whole.clone(), 2), whole);
        let again = rebalance(&[50, 50, 50, 52, 50, 50, 1], &GPUS, vec![0, 1, 0, 1, 0, 1, 0], 2);
        assert!(!splits_group(&GPUS, &again), "{again:?}");
    }
}
