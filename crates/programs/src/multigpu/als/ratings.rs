//! Synthetic ratings that resemble a data set with equal size: by item and by user, in rows with very different
//! lengths.
//!
//! Each user's rating count, and each item's popularity, are drawn from log-normal distributions. A user's items are
//! spread over equally popular stretches, with one item from each, and none occurs twice.

use crate::prelude::*;

/// Standard deviation for the logarithm of a user's rating count. Source: 209 ratings per user on average (KONECT,
/// Netflix), and less than ten from 16,419 among 480,189 users (C. Chan, "Netflix, While I Am Waiting", 2007).
const ACTIVITY: f64 = 1.24;
/// Standard deviation for the logarithm of an item's popularity. Source: KONECT, Netflix: 5654 ratings per item on
/// average, 232,944 for the most popular item.
const POPULARITY: f64 = 1.13;
/// Number of stars in the best rating; the worst has one. Source: the Netflix Prize.
const STARS: u64 = 5;
/// Resolution for a random number between 0 and 1.
const STEPS: u64 = 1 << 20;

/// A sparse matrix by rows.
#[derive(Debug, PartialEq)]
pub(super) struct RatingMatrix {
    /// First rating per row, followed by the total rating count.
    pub(super) first: Vec<i32>,
    /// Column per rating.
    pub(super) other: Vec<i32>,
    /// Value per rating.
    pub(super) value: Vec<f32>,
}

/// Ratings in both orders.
pub(super) struct Ratings {
    pub(super) by_item: RatingMatrix,
    pub(super) by_user: RatingMatrix,
}

/// Numbers of items, users and ratings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) items: u64,
    pub(super) users: u64,
    /// Number of ratings: not fewer than users, not more than half the pairs.
    pub(super) ratings: u64,
}

impl Ratings {
    pub(super) fn new(sizes: Sizes, seed: u64) -> Ratings {
        let by_user = draw(sizes, seed);
        Ratings { by_item: by_user.transposed(sizes.items), by_user }
    }
}

impl RatingMatrix {
    /// Rating range for a row.
    pub(super) fn row(&self, row: usize) -> std::ops::Range<usize> {
        self.first[row] as usize..self.first[row + 1] as usize
    }

    /// Transposes the matrix to `columns` rows; within each, the old rows ascend.
    fn transposed(&self, columns: u64) -> RatingMatrix {
        let mut first = vec![0; columns as usize + 1];
        self.other.iter().for_each(|column| first[*column as usize + 1] += 1);
        (0..columns as usize).for_each(|column| first[column + 1] += first[column]);
        let mut next: Vec<i32> = first.clone();
        let (mut other, mut value) = (vec![0; self.other.len()], vec![0.0; self.other.len()]);
        for row in 0..self.first.len() - 1 {
            for rating in self.row(row) {
                let column = self.other[rating] as usize;
                let at = next[column] as usize;
                next[column] += 1;
                (other[at], value[at]) = (row as i32, self.value[rating]);
            }
        }
        RatingMatrix { first, other, value }
    }
}

/// Draws a number from 0 (inclusive) to 1 (exclusive).
fn part(seed: u64, position: u64) -> f64 {
    noise::below(seed, position, STEPS) as f64 / STEPS as f64
}

/// Exponential of a normally distributed number, approximated by the sum over twelve uniform numbers, less their mean.
fn weight(seed: u64, index: u64, deviation: f64) -> f64 {
    let sum: f64 = (0..12).map(|draw| part(seed, 12 * index + draw)).sum();
    (deviation * (sum - 6.0)).exp()
}

/// Splits `total` into whole numbers from 1 to `most` by weight; the remainder from rounding and the bound is dealt out
/// in turn.
fn apportion(weights: &[f64], total: u64, most: u64) -> Vec<u64> {
    let (all, spare): (f64, _) = (weights.iter().sum(), total - weights.len() as u64);
    let share = |weight: &f64| (1 + (spare as f64 * (weight / all)) as u64).min(most);
    let mut counts: Vec<u64> = weights.iter().map(share).collect();
    let mut left = total.saturating_sub(counts.iter().sum());
    while left > 0 {
        let before = left;
        for count in counts.iter_mut().filter(|count| **count < most).take(before as usize) {
            *count += 1;
            left -= 1;
        }
    }
    counts
}

/// Draws the ratings by user.
fn draw(Sizes { items, users, ratings }: Sizes, seed: u64) -> RatingMatrix {
    let activity: Vec<f64> = (0..users).map(|user| weight(seed, user, ACTIVITY)).collect();
    let mut popular = 0.0;
    let reach = (0..items).map(|item| {
        popular += weight(!seed, item, POPULARITY);
        popular
    });
    let reach: Vec<f64> = reach.collect();
    let (mut first, mut other) = (vec![0], Vec::with_capacity(ratings as usize));
    for count in apportion(&activity, ratings, items) {
        let mut next = 0;
        for turn in 0..count {
            let at = (turn as f64 + part(seed ^ 1, other.len() as u64)) / count as f64 * popular;
            let found = reach.partition_point(|reach| *reach <= at) as u64;
            // Enough items must be left for the remaining turns.
            let item = found.max(next).min(items - (count - turn));
            next = item + 1;
            other.push(item as i32);
        }
        first.push(other.len() as i32);
    }
    let value = (0..ratings).map(|rating| (1 + noise::below(seed ^ 2, rating, STARS)) as f32);
    RatingMatrix { first, other, value: value.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(rows: &RatingMatrix) -> Vec<usize> {
        (0..rows.first.len() - 1).map(|row| rows.row(row).len()).collect()
    }

    #[test]
    fn every_rating_is_there_and_no_pair_twice() {
        let sizes = Sizes { items: 90, users: 400, ratings: 9000 };
        let Ratings { by_item, by_user } = Ratings::new(sizes, 7);
        assert_eq!((by_user.other.len(), by_item.other.len(), by_user.first.len()), (9000, 9000, 401));
        for rows in [&by_item, &by_user] {
            assert!((0..rows.first.len() - 1).all(|row| rows.other[rows.row(row)].is_sorted_by(|a, b| a < b)));
        }
        assert!(lengths(&by_user).into_iter().all(|count| (1..=90).contains(&count)));
        assert_eq!(by_item.transposed(400), by_user);
        assert_eq!(Ratings::new(sizes, 7).by_user, by_user);
    }

    #[test]
    fn rows_are_as_uneven_as_the_sources_say() {
        // A tenth of Netflix's items and users, and as many ratings per user.
        let sizes = Sizes { items: 1777, users: 24_000, ratings: 24_000 * 60 };
        let Ratings { by_item, by_user } = Ratings::new(sizes, 7);
        let few = lengths(&by_user).into_iter().filter(|count| *count < 10).count() as f64 / 24_000.0;
        // At a mean of 60, a share of 0.18 in the log-normal distribution lies below ten.
        assert!((0.15..0.22).contains(&few), "{few}");
        let most = *lengths(&by_item).iter().max().unwrap() as f64 / (24_000.0 * 60.0 / 1777.0);
        assert!((8.0..40.0).contains(&most), "the most rated item has {most} times the mean");
    }

    #[test]
    fn shares_keep_to_their_bound_and_sum_up() {
        assert_eq!(apportion(&[1.0, 100.0, 1.0], 12, 6), [3, 6, 3]);
        assert_eq!(apportion(&[1.0, 1.0], 2, 6), [1, 1]);
    }
}
