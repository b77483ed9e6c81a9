//! Common parts of plain references: comparison with sums in a different order, and algorithms shared by several
//! programs.

use std::collections::VecDeque;
use std::ops::Add;
use tombolo_workload::graph::Graph;

/// Largest difference, relative to the larger of the value and 1. Source: assumed; far above the rounding errors of
/// some thousand operations (2^-53 each) and far below any wrong term.
const TOLERANCE: f64 = 1e-10;

/// Compares two arrays within [`TOLERANCE`]; `Err` names the first differing element in `what`.
pub(crate) fn compare_f64(what: &str, found: &[f64], expected: &[f64]) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{} elements of {what}, expected {}", found.len(), expected.len()));
    }
    let wrong = |(found, expected): (&f64, &f64)| {
        let near = (found - expected).abs() <= TOLERANCE * expected.abs().max(1.0);
        !near
    };
    match found.iter().zip(expected).position(wrong) {
        Some(at) => Err(format!("{what} {at} is {}, expected {}", found[at], expected[at])),
        None => Ok(()),
    }
}

/// Compares a single-precision sum with a reference, relative to the sum of all term magnitudes.
pub(crate) fn compare(what: &str, found: f32, expected: f64, magnitude: f64) -> Result<(), String> {
    let tolerance = 1e-5 * magnitude.max(1.0);
    if (f64::from(found) - expected).abs() <= tolerance {
        return Ok(());
    }
    Err(format!("{what} is {found}, expected {expected} within {tolerance}"))
}

/// Levels in a breadth-first search from `source`: number of arcs on the shortest path to each node, `far` for an
/// unreachable node.
pub(crate) fn levels<T: Copy + PartialEq + Add<Output = T>>(
    graph: &Graph,
    source: u32,
    [zero, one, far]: [T; 3],
) -> Vec<T> {
    let mut levels = vec![far; graph.nodes() as usize];
    levels[source as usize] = zero;
    let mut queue = VecDeque::from([source]);
    while let Some(node) = queue.pop_front() {
        for &neighbour in &graph.target()[graph.row(node)] {
            if levels[neighbour as usize] == far {
                levels[neighbour as usize] = levels[node as usize] + one;
                queue.push_back(neighbour);
            }
        }
    }
    levels
}

/// Floyd and Warshall's pass `k` over a matrix with `nodes` by `nodes` distances: stores `mark` if the path through `k`
/// is shorter.
pub(crate) fn floyd_warshall_pass<T: Copy + PartialOrd + Add<Output = T>, M: Copy>(
    (distance, through): (&mut [T], &mut [M]),
    nodes: usize,
    k: usize,
    mark: M,
) {
    let middle = distance[k * nodes..(k + 1) * nodes].to_vec();
    for (row, through) in distance.chunks_mut(nodes).zip(through.chunks_mut(nodes)) {
        let first = row[k];
        for ((direct, through), rest) in row.iter_mut().zip(through).zip(&middle) {
            if first + *rest < *direct {
                (*direct, *through) = (first + *rest, mark);
            }
        }
    }
}

/// Compares two arrays exactly; `Err` names the first differing element in `what`.
pub(crate) fn equal<T: PartialEq + std::fmt::Display>(what: &str, found: &[T], expected: &[T]) -> Result<(), String> {
    match expected.iter().zip(found).position(|(expected, found)| expected != found) {
        Some(at) => Err(format!("{what} {at} is {}, expected {}", found[at], expected[at])),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_beyond_rounding_is_named() {
        assert!(compare_f64("sum", &[1.0, 1e6], &[1.0, 1e6 + 1e-5]).is_ok());
        assert_eq!(compare_f64("sum", &[1.0, 2.0], &[1.0, 2.5]).unwrap_err(), "sum 1 is 2, expected 2.5");
        assert!(compare_f64("sum", &[f64::NAN], &[1.0]).is_err());
        assert!(compare_f64("sum", &[1.0], &[]).is_err());
    }
}
