//! Reference update in plain loops, with sums in the kernels' order: single precision then gives equal bits.

use super::hermitian::LAMBDA;
use super::ratings::RatingMatrix;
use super::solve::{GROUP, SMALL, STEPS};

/// Solves for all factors `to` in the rows, from the factors referenced by their ratings. If `adds` is true, the change
/// of a factor is rounded, and added.
pub(super) fn update(rows: &RatingMatrix, features: usize, adds: bool, from: &[f32], to: &mut [f32]) {
    for (row, own) in to.chunks_mut(features).enumerate() {
        let mut right = vec![0.0; features];
        let mut left = vec![vec![0.0; features]; features];
        for rating in rows.row(row) {
            let other = rows.other[rating] as usize;
            let factors = &from[other * features..(other + 1) * features];
            for a in 0..features {
                right[a] += factors[a] * rows.value[rating];
                (0..features).for_each(|b| left[a][b] += factors[a] * factors[b]);
            }
        }
        (0..features).for_each(|a| left[a][a] += rows.row(row).len() as f32 * LAMBDA);
        let before = own.to_vec();
        solve(&left, &right, own);
        if adds {
            own.iter_mut().zip(before).for_each(|(own, before)| *own = before + (*own - before));
        }
    }
}

fn times(left: &[Vec<f32>], vector: &[f32]) -> Vec<f32> {
    let sum = |row: &Vec<f32>| row.iter().zip(vector).fold(0.0, |sum, (a, b)| sum + a * b);
    left.iter().map(sum).collect()
}

/// Dot product of two vectors, in the GPU's summation order.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let products: Vec<f32> = a.iter().zip(b).map(|(a, b)| a * b).collect();
    let mut sum = 0.0;
    for group in products.chunks(GROUP as usize) {
        let mut tree = group.to_vec();
        tree.resize(GROUP as usize, 0.0);
        while tree.len() > 1 {
            let (low, high) = tree.split_at(tree.len() / 2);
            tree = low.iter().zip(high).map(|(low, high)| low + high).collect();
        }
        sum += tree[0];
    }
    sum
}

/// Runs conjugate gradients from the initial guess `x`.
fn solve(left: &[Vec<f32>], right: &[f32], x: &mut [f32]) {
    let mut r: Vec<f32> = right.iter().zip(times(left, x)).map(|(right, left)| right - left).collect();
    let mut p = r.clone();
    let mut squared = dot(&r, &r);
    if squared == 0.0 {
        return;
    }
    for _ in 0..STEPS {
        let ap = times(left, &p);
        let length = squared / dot(&p, &ap);
        for at in 0..x.len() {
            x[at] += p[at] * length;
            r[at] -= ap[at] * length;
        }
        let before = squared;
        squared = dot(&r, &r);
        if squared < SMALL {
            break;
        }
        p.iter_mut().zip(&r).for_each(|(p, r)| *p = r + *p * (squared / before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_solved_in_as_many_steps_as_it_has_unknowns() {
        let left = [vec![4.0, 1.0, 0.0], vec![1.0, 3.0, 1.0], vec![0.0, 1.0, 5.0]];
        let mut x = [0.5, 0.0, 0.0];
        solve(&left, &times(&left, &[1.0, -2.0, 3.0]), &mut x);
        assert!(x.iter().zip([1.0, -2.0, 3.0]).all(|(found, expected)| (found - expected).abs() < 1e-2), "{x:?}");
    }

    #[test]
    fn updates_bring_products_of_factors_near_the_ratings() {
        // Four rows and three columns; each rating is a product of two single factors, 2 or 4 by 1 or 2.
        let full = |rows: usize, columns: usize, value: &dyn Fn(usize, usize) -> f32| RatingMatrix {
            first: (0..=rows).map(|row| (row * columns) as i32).collect(),
            other: (0..rows).flat_map(|_| 0..columns as i32).collect(),
            value: (0..rows).flat_map(|row| (0..columns).map(move |column| value(row, column))).collect(),
        };
        let rating = |row: usize, column: usize| ((1 + row % 2) * (1 + column % 2) * 2) as f32;
        let (by_row, by_column) = (full(4, 3, &rating), full(3, 4, &|column, row| rating(row, column)));
        let (mut x, mut theta) = (vec![0.0; 4], vec![0.1; 3]);
        for _ in 0..6 {
            update(&by_row, 1, false, &theta, &mut x);
            update(&by_column, 1, false, &x, &mut theta);
        }
        for (row, x) in x.iter().enumerate() {
            for (column, theta) in theta.iter().enumerate() {
                assert!((x * theta - rating(row, column)).abs() < 0.3, "{row} {column}: {}", x * theta);
            }
        }
    }
}
