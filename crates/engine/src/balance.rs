//! Who runs which partition: shares of about equal load.

/// How much less the busiest thread must have to do for the shares to be dealt anew, in percent: less would
/// not pay for the caches that have to be filled again. Source: assumed.
const WORTHWHILE: u64 = 5;

/// Adjacent partitions to the same thread, about as many to each; by partition.
pub(crate) fn blocks(partitions: usize, threads: usize) -> Vec<u16> {
    (0..partitions).map(|index| (index * threads / partitions) as u16).collect()
}

/// The thread of each partition, after each partition had `loads` to do and belonged to `owners`: as before,
/// unless another dealing would have been clearly better.
pub(crate) fn deal(loads: &[u64], owners: Vec<u16>, threads: usize) -> Vec<u16> {
    let even = largest_first(loads, threads);
    let (before, after) = (busiest(loads, &owners, threads), busiest(loads, &even, threads));
    if after * 100 < before * (100 - WORTHWHILE) { even } else { owners }
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

    #[test]
    fn blocks_are_adjacent_and_even() {
        assert_eq!(blocks(5, 2), [0, 0, 0, 1, 1]);
        assert_eq!(blocks(3, 3), [0, 1, 2]);
    }

    #[test]
    fn shares_of_which_one_does_all_the_work_are_dealt_anew() {
        let owners = deal(&[50, 50, 50, 1, 1, 0], blocks(6, 2), 2);
        assert_eq!(busiest(&[50, 50, 50, 1, 1, 0], &owners, 2), 100);
    }

    #[test]
    fn shares_that_are_nearly_even_stay() {
        let owners = vec![0, 1, 0, 1];
        assert_eq!(deal(&[50, 50, 52, 50], owners.clone(), 2), owners);
        assert_eq!(deal(&[0; 4], owners.clone(), 2), owners, "also when nothing has happened");
    }
}
