//! The solver on plain grids: the reference for the kernels, and the host's solver on levels below the threshold.

use crate::prelude::*;

/// Red-black sweeps on the coarsest grid. Source: assumed, in place of the Krylov solver: each of its roughly ten
/// iterations applies the operator twice; the host takes no time.
const BOTTOM: u64 = 12;
/// Weights for the first two cells inside, in the ghost cell beyond the border; the value at the face is zero. Source:
/// HPGMG-FV, `apply_BCs_v2`.
pub(super) const BORDER: [f64; 2] = [-2.5, 0.5];
/// Interpolation weight for a neighbouring coarse cell in a fine cell, positive on the neighbour's side. Source:
/// HPGMG-FV, `interpolation_v2`.
pub(super) const SLOPE: f64 = 0.125;

/// Coefficient at the face below a cell along `axis`. The function is smooth, and equal on every level at equal points.
pub(super) fn coefficient(cells: CellGrid, place: [i32; 3], axis: usize) -> f64 {
    let sides = [cells.x, cells.y, cells.z];
    let along = |at: usize| {
        let half = if at == axis { 0.0 } else { 0.5 };
        (f64::from(place[at]) + half) / f64::from(sides[at])
    };
    1.0 + 0.5 * along(0) * (1.0 - along(1)) + 0.25 * along(2)
}

/// Inverse of the operator's diagonal at a cell.
pub(super) fn inverse(cells: CellGrid, place: [i32; 3], scale: f64) -> f64 {
    let mut sum = 0.0;
    for (axis, side) in [cells.x, cells.y, cells.z].into_iter().enumerate() {
        let mut above = place;
        above[axis] += 1;
        let weight = |at_border| if at_border { 1.0 - BORDER[0] } else { 1.0 };
        sum += coefficient(cells, place, axis) * weight(place[axis] == 0);
        sum += coefficient(cells, above, axis) * weight(place[axis] == side - 1);
    }
    1.0 / (sum * scale)
}

/// A grid with solution and right-hand side.
struct HostGrid {
    cells: CellGrid,
    /// Inverse square of a cell's side length.
    scale: f64,
    u: Vec<f64>,
    rhs: Vec<f64>,
}

/// Grids from a given level down to the coarsest.
pub(super) struct HostSolver {
    grids: Vec<HostGrid>,
    smooths: u64,
}

impl HostSolver {
    pub(super) fn new(cells: CellGrid, scale: f64, smooths: u64) -> HostSolver {
        let grid = |cells: CellGrid, scale| {
            let zeros = vec![0.0; cells.count() as usize];
            HostGrid { cells, scale, u: zeros.clone(), rhs: zeros }
        };
        let mut grids = vec![grid(cells, scale)];
        while let Some(&HostGrid { cells: CellGrid { x, y, z }, scale, .. }) = grids.last()
            && [x, y, z].iter().all(|side| side % 2 == 0 && *side > 2)
        {
            grids.push(grid(CellGrid { x: x / 2, y: y / 2, z: z / 2 }, scale / 4.0));
        }
        HostSolver { grids, smooths }
    }

    /// Sets the right-hand side on the first grid.
    pub(super) fn set_rhs(&mut self, value: impl Fn([i32; 3]) -> f64) {
        let cells = self.grids[0].cells;
        self.grids[0].rhs = (0..cells.count()).map(|index| value(cells.coordinates(index))).collect();
    }

    /// Solution on the first grid.
    pub(super) fn solution(&self) -> &[f64] {
        &self.grids[0].u
    }

    /// Solution on the first grid, at a cell or beyond the border.
    pub(super) fn at(&self, place: [i32; 3]) -> f64 {
        self.grids[0].at(place)
    }

    /// Largest residual on the first grid.
    pub(super) fn norm(&self) -> f64 {
        let grid = &self.grids[0];
        (0..grid.cells.count()).map(|index| grid.residual(index).abs()).fold(0.0, f64::max)
    }

    /// Full multigrid: solves the coarsest grid first, then runs a V-cycle on every finer grid from the previous
    /// solution.
    pub(super) fn full(&mut self) {
        let coarsest = self.grids.len() - 1;
        for depth in 0..coarsest {
            let rhs = self.grids[depth].coarsened(|index| self.grids[depth].rhs[index as usize]);
            self.grids[depth + 1].rhs = rhs;
        }
        self.grids[coarsest].u.fill(0.0);
        self.smooth(coarsest, BOTTOM);
        for depth in (0..coarsest).rev() {
            self.interpolate(depth, 0.0);
            self.cycle(depth);
        }
    }

    /// Runs a V-cycle from grid `depth` down.
    pub(super) fn cycle(&mut self, depth: usize) {
        if depth + 1 == self.grids.len() {
            return self.smooth(depth, BOTTOM);
        }
        self.smooth(depth, self.smooths);
        let grid = &self.grids[depth];
        self.grids[depth + 1].rhs = grid.coarsened(|index| grid.residual(index));
        self.grids[depth + 1].u.fill(0.0);
        self.cycle(depth + 1);
        self.interpolate(depth, 1.0);
        self.smooth(depth, self.smooths);
    }

    /// Runs red-black sweeps: cells with one colour are updated from all cells' previous values.
    fn smooth(&mut self, depth: usize, sweeps: u64) {
        let grid = &mut self.grids[depth];
        for half in 0..2 * sweeps {
            let step = |index: i32| {
                let place = grid.cells.coordinates(index);
                let moves = (place.iter().sum::<i32>() as u64 + half).is_multiple_of(2);
                let factor = if moves { inverse(grid.cells, place, grid.scale) } else { 0.0 };
                grid.u[index as usize] + factor * grid.residual(index)
            };
            grid.u = (0..grid.cells.count()).map(step).collect();
        }
    }

    /// Adds the next grid's solution, interpolated, to `kept` times this grid's solution.
    fn interpolate(&mut self, depth: usize, kept: f64) {
        let coarse = &self.grids[depth + 1];
        let fine = self.grids[depth].cells;
        let interpolated = |index: i32| {
            let place = fine.coordinates(index);
            let mut sum = 0.0;
            for neighbour in 0..27 {
                let step = [neighbour % 3 - 1, neighbour / 3 % 3 - 1, neighbour / 9 - 1];
                let weight: f64 = (0..3).map(|axis| weight(place[axis], step[axis])).product();
                sum += weight * coarse.at([0, 1, 2].map(|axis| place[axis] / 2 + step[axis]));
            }
            sum
        };
        let sums: Vec<f64> = (0..fine.count()).map(interpolated).collect();
        self.grids[depth].u.iter_mut().zip(sums).for_each(|(u, sum)| *u = kept * *u + sum);
    }
}

/// Weight along an axis for the coarse cell at offset `step` from the coarse cell around a fine one.
fn weight(fine: i32, step: i32) -> f64 {
    let towards = if fine % 2 == 0 { -step } else { step };
    if step == 0 { 1.0 } else { SLOPE * f64::from(towards) }
}

impl HostGrid {
    /// Solution at a cell, or at a ghost cell beyond the border: a product over the border weights.
    fn at(&self, place: [i32; 3]) -> f64 {
        let sides = [self.cells.x, self.cells.y, self.cells.z];
        let Some(axis) = (0..3).find(|axis| !(0..sides[*axis]).contains(&place[*axis])) else {
            return self.u[self.cells.index(place) as usize];
        };
        let inwards = if place[axis] < 0 { 1 } else { -1 };
        let inner = |depth: i32| {
            let mut inner = place;
            inner[axis] += inwards * depth;
            self.at(inner)
        };
        BORDER[0] * inner(1) + BORDER[1] * inner(2)
    }

    fn residual(&self, index: i32) -> f64 {
        let (place, centre) = (self.cells.coordinates(index), self.u[index as usize]);
        let mut flow = 0.0;
        for axis in 0..3 {
            let [mut low, mut high] = [place; 2];
            low[axis] -= 1;
            high[axis] += 1;
            flow += coefficient(self.cells, place, axis) * (self.at(low) - centre);
            flow += coefficient(self.cells, high, axis) * (self.at(high) - centre);
        }
        self.rhs[index as usize] + flow * self.scale
    }

    /// Averages values over eight cells each.
    fn coarsened(&self, value: impl Fn(i32) -> f64) -> Vec<f64> {
        let CellGrid { x, y, z } = self.cells;
        let coarse = CellGrid { x: x / 2, y: y / 2, z: z / 2 };
        let mut means = vec![0.0; coarse.count() as usize];
        for index in 0..self.cells.count() {
            means[coarse.index(self.cells.coordinates(index).map(|at| at / 2)) as usize] += value(index) / 8.0;
        }
        means
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_takes_most_of_the_residual() {
        let cells = CellGrid { x: 16, y: 16, z: 16 };
        let mut plain = HostSolver::new(cells, 1.0, 3);
        plain.set_rhs(|[x, y, z]| f64::from((x * 7 + y * 5 + z * 3) % 11));
        let before = plain.norm();
        plain.full();
        let full = plain.norm();
        plain.cycle(0);
        assert!(full < 0.2 * before && plain.norm() < 0.2 * full, "{before} {full} {}", plain.norm());
    }

    #[test]
    fn the_border_is_where_the_solution_is_zero() {
        let mut plain = HostSolver::new(CellGrid { x: 4, y: 4, z: 4 }, 1.0, 1);
        // Cell averages for the parabola x - x² / 8, which is zero at the lower face.
        let mean = |x: f64| x + 0.5 - (x * x + x + 1.0 / 3.0) / 8.0;
        plain.grids[0].u = (0..64).map(|index| mean(f64::from(index % 4))).collect();
        assert!((plain.at([-1, 2, 2]) - mean(-1.0)).abs() < 1e-12);
    }
}
