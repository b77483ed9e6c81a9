//! Who runs which partition: shares of about equal load, and how many of them.

use std::iter::repeat_n;

/// How much less the busiest thread must have to do for the shares to be dealt anew, in percent: less would
/// not pay for the caches that have to be filled again. Source: assumed.
const WORTHWHILE: u64 = 5;

/// What it costs to divide a group of partitions among threads, which then wait for each other more often, in percent of
/// the work of the busiest. Source: assumed.
const DIVIDED: u64 = 10;

/// What a barrier costs, in events. Source: measured on two cores, some 2 us, and 0.2 us an event.
const BARRIER: u64 = 10;

/// What partitions had to do in some windows.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    /// Events of each partition.
    pub(crate) loads: &'a [u64],
    /// The group of each partition.
    pub(crate) groups: &'a [u16],
    /// Windows.
    pub(crate) windows: u64,
}

/// The fewest threads, up to `most`, that take hardly longer for work than any other number of them.
pub(crate) fn fewest(work: Work<'_>, most: usize) -> usize {
    let times: Vec<u64> = (1..=most).map(|threads| time(work, threads)).collect();
    let least = times.iter().copied().min().unwrap_or(0);
    1 + times.iter().position(|time| time * (100 - WORTHWHILE) <= least * 100).unwrap_or(0)
}

/// What work takes on so many threads, in hundredths of an event.
fn time(Work { loads, groups, windows }: Work<'_>, threads: usize) -> u64 {
    let barriers = if threads > 1 { windows * BARRIER * 100 } else { 0 };
    cost(loads, groups, &best(loads, groups, threads), threads) + barriers
}

/// Partitions to threads in turn, for neighbours are often of one kind, or where that is as good whole groups; by partition.
pub(crate) fn first_dealing(groups: &[u16], threads: usize) -> Vec<u16> {
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

/// The thread of each partition, after each partition had `loads` to do and belonged to `owners`: as before,
/// unless another dealing would have been clearly better.
pub(crate) fn deal(loads: &[u64], groups: &[u16], owners: Vec<u16>, threads: usize) -> Vec<u16> {
    let cost = |owners: &Vec<u16>| cost(loads, groups, owners, threads);
    let best = best(loads, groups, threads);
    if cost(&best) * 100 < cost(&owners) * (100 - WORTHWHILE) { best } else { owners }
}

/// The thread of each partition, where each has `loads` to do: whole groups or not, whichever costs less.
pub(crate) fn best(loads: &[u64], groups: &[u16], threads: usize) -> Vec<u16> {
    let (whole, divided) = (whole_groups(loads, groups, threads), largest_first(loads, threads));
    let cost = |owners: &[u16]| cost(loads, groups, owners, threads);
    if cost(&divided) < cost(&whole) { divided } else { whole }
}

/// Each group, the busiest first, to the thread that has least to do so far.
fn whole_groups(loads: &[u64], groups: &[u16], threads: usize) -> Vec<u16> {
    let mut rest = loads;
    let of_group = |members| rest.split_off(..members).map_or(0, |loads: &[u64]| loads.iter().sum());
    let of_groups: Vec<u64> = sizes(groups).map(of_group).collect();
    let owners = largest_first(&of_groups, threads);
    sizes(groups).zip(owners).flat_map(|(members, owner)| repeat_n(owner, members)).collect()
}

/// How many partitions each group has.
fn sizes(groups: &[u16]) -> impl Iterator<Item = usize> {
    groups.chunk_by(|a, b| a == b).map(<[u16]>::len)
}

/// Whether a group is divided among threads.
pub(crate) fn splits(groups: &[u16], owners: &[u16]) -> bool {
    groups.windows(2).zip(owners.windows(2)).any(|(group, owner)| group[0] == group[1] && owner[0] != owner[1])
}

/// What a dealing costs, in hundredths of the work of a partition.
fn cost(loads: &[u64], groups: &[u16], owners: &[u16], threads: usize) -> u64 {
    let percent = if splits(groups, owners) { 100 + DIVIDED } else { 100 };
    busiest(loads, owners, threads) * percent
}

/// Each partition, the busiest first, to the thread that has least to do so far.
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

/// The load of the thread that has most to do.
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
    /// Two GPUs of three partitions, and a hub.
    const GPUS: [u16; 7] = [0, 0, 0, 1, 1, 1, 2];

    #[test]
    fn threads_take_turns() {
        assert_eq!(first_dealing(&GPUS[..3], 2), [0, 1, 0]);
        assert_eq!(first_dealing(&APART[..3], 3), [0, 1, 2]);
    }

    #[test]
    fn groups_stay_whole_unless_that_is_uneven() {
        assert_eq!(first_dealing(&GPUS, 2), [0, 0, 0, 1, 1, 1, 1]);
        assert!(splits(&GPUS, &first_dealing(&GPUS, 4)));
    }

    #[test]
    fn shares_of_which_one_does_all_the_work_are_dealt_anew() {
        let owners = deal(&[50, 50, 50, 1, 1, 0], &APART, vec![0, 0, 0, 1, 1, 1], 2);
        assert_eq!(busiest(&[50, 50, 50, 1, 1, 0], &owners, 2), 100);
    }

    #[test]
    fn shares_that_are_nearly_even_stay() {
        let owners = vec![0, 1, 0, 1];
        assert_eq!(deal(&[50, 50, 52, 50], &APART[..4], owners.clone(), 2), owners);
        assert_eq!(deal(&[0; 4], &APART[..4], owners.clone(), 2), owners, "also when nothing has happened");
    }

    #[test]
    fn a_thread_that_cannot_help_is_not_used() {
        let fewest =
            |loads: &[u64], windows| fewest(Work { loads, groups: &APART[..loads.len()], windows }, loads.len());
        assert_eq!(fewest(&[900; 4], 10), 4);
        assert_eq!(fewest(&[900, 900, 900, 10], 10), 3, "one partition has hardly anything to do");
        assert_eq!(fewest(&[900, 10, 10, 10], 10), 1);
        assert_eq!(fewest(&[90; 4], 100), 1, "fewer events than barriers cost");
        assert_eq!(fewest(&[0; 4], 10), 1);
    }

    #[test]
    fn a_group_is_divided_only_where_that_wins_more_than_it_costs() {
        let whole = vec![0, 0, 0, 1, 1, 1, 0];
        let divided = deal(&[50, 50, 50, 1, 1, 0, 1], &GPUS, whole.clone(), 2);
        assert_eq!(busiest(&[50, 50, 50, 1, 1, 0, 1], &divided, 2), 100);
        assert_eq!(deal(&[53, 53, 53, 50, 50, 50, 1], &GPUS, whole.clone(), 2), whole);
        let again = deal(&[50, 50, 50, 52, 50, 50, 1], &GPUS, vec![0, 1, 0, 1, 0, 1, 0], 2);
        assert!(!splits(&GPUS, &again), "{again:?}");
    }
}
