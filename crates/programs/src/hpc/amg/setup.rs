//! The setup phase on the host: values for every operator, by Galerkin's product from level to level.

use super::hierarchy::{AmgLevel, Hierarchy};
use super::operator::Operator;

/// Diagonal and neighbour values in the finest operator. Source: AMG (CORAL), problem 1: a Laplacian with 27 points.
const DIAGONAL: f64 = 26.0;
const NEIGHBOUR: f64 = -1.0;

/// Values for one level's operators, entry by entry.
pub(super) struct OperatorValues {
    pub(super) matrix: Vec<f64>,
    /// Sum over the absolute values in each row, by which the smoother divides.
    pub(super) norms: Vec<f64>,
    pub(super) prolongation: Vec<f64>,
    pub(super) restriction: Vec<f64>,
}

/// Computes `value(row, column)` for every entry.
fn entries(operator: &Operator, value: impl Fn(i32, i32) -> f64) -> Vec<f64> {
    let of = |index: i32| {
        let row = operator.row(index);
        (0..row.count()).map(move |entry| (index, operator.column(&row, entry)))
    };
    (0..operator.rows()).flat_map(of).map(|(row, column)| value(row, column)).collect()
}

/// Weight between a coarse unknown and a fine one: a hat function along each axis.
fn hat(fine: [i32; 3], coarse: [i32; 3], factor: i32) -> f64 {
    let along = |axis: usize| 1.0 - f64::from((fine[axis] - factor * coarse[axis]).abs()) / f64::from(factor);
    (0..3).map(along).product()
}

/// Iterates over row `index` in `operator` as pairs (column, value).
fn row_of<'a>(operator: &'a Operator, values: &'a [f64], index: i32) -> impl Iterator<Item = (i32, f64)> + 'a {
    let row = operator.row(index);
    let first = (row.first - operator.row(0).first) as usize;
    (0..row.count()).map(move |entry| (operator.column(&row, entry), values[first + entry as usize]))
}

/// Coarse-level operator: restriction times matrix times prolongation.
fn product(fine: &AmgLevel, values: &OperatorValues, coarse: &Operator) -> Vec<f64> {
    let Some(transfer) = &fine.transfer else { return Vec::new() };
    let mut result = Vec::with_capacity(coarse.entries() as usize);
    for index in 0..coarse.rows() {
        let row = coarse.row(index);
        let mut sums: Vec<(i32, f64)> = (0..row.count()).map(|entry| (coarse.column(&row, entry), 0.0)).collect();
        for (from, weight) in row_of(&transfer.restriction, &values.restriction, index) {
            for (to, value) in row_of(&fine.matrix, &values.matrix, from) {
                for (column, share) in row_of(&transfer.prolongation, &values.prolongation, to) {
                    // Columns ascend, so a binary search works.
                    if let Ok(at) = sums.binary_search_by_key(&column, |(column, _)| *column) {
                        sums[at].1 += weight * value * share;
                    }
                }
            }
        }
        result.extend(sums.into_iter().map(|(_, sum)| sum));
    }
    result
}

/// Values for all levels, the finest first.
pub(super) fn setup(hierarchy: &Hierarchy) -> Vec<OperatorValues> {
    let mut all: Vec<OperatorValues> = Vec::new();
    for (depth, level) in hierarchy.levels.iter().enumerate() {
        let matrix = match all.last() {
            None => entries(&level.matrix, |row, column| if row == column { DIAGONAL } else { NEIGHBOUR }),
            Some(values) => product(&hierarchy.levels[depth - 1], values, &level.matrix),
        };
        let norm = |index| row_of(&level.matrix, &matrix, index).map(|(_, value)| value.abs()).sum();
        let norms = (0..level.matrix.rows()).map(norm).collect();
        let (mut prolongation, mut restriction) = (Vec::new(), Vec::new());
        if let Some(transfer) = &level.transfer {
            let to_fine = &transfer.prolongation;
            prolongation = entries(to_fine, |row, column| {
                let [fine, coarse] = to_fine.places(row, column);
                hat(fine, coarse, transfer.factor)
            });
            let to_coarse = &transfer.restriction;
            restriction = entries(to_coarse, |row, column| {
                let [coarse, fine] = to_coarse.places(row, column);
                hat(fine, coarse, transfer.factor)
            });
        }
        all.push(OperatorValues { matrix, norms, prolongation, restriction });
    }
    all
}

/// Plain host solver, the reference for the kernels' results.
pub(super) struct ReferenceSolver<'a> {
    hierarchy: &'a Hierarchy,
    values: Vec<OperatorValues>,
}

impl ReferenceSolver<'_> {
    pub(super) fn new(hierarchy: &Hierarchy) -> ReferenceSolver<'_> {
        ReferenceSolver { hierarchy, values: setup(hierarchy) }
    }

    /// Computes `right` minus the matrix times `x`.
    pub(super) fn residual(&self, depth: usize, x: &[f64], right: &[f64]) -> Vec<f64> {
        let matrix = &self.hierarchy.levels[depth].matrix;
        let product = |index| -> f64 {
            row_of(matrix, &self.values[depth].matrix, index).map(|(column, value)| value * x[column as usize]).sum()
        };
        (0..).zip(right).map(|(index, right)| right - product(index)).collect()
    }

    fn smooth(&self, depth: usize, x: &mut [f64], right: &[f64]) {
        let residual = self.residual(depth, x, right);
        for ((x, residual), norm) in x.iter_mut().zip(residual).zip(&self.values[depth].norms) {
            *x += residual / norm;
        }
    }

    /// Runs one V-cycle that starts from `x`.
    pub(super) fn cycle(&self, depth: usize, x: &mut [f64], right: &[f64], bottom: u64) {
        let Some(transfer) = &self.hierarchy.levels[depth].transfer else {
            (0..bottom).for_each(|_| self.smooth(depth, x, right));
            return;
        };
        self.smooth(depth, x, right);
        let residual = self.residual(depth, x, right);
        let restricted = |index| {
            let row = row_of(&transfer.restriction, &self.values[depth].restriction, index);
            row.map(|(column, weight)| weight * residual[column as usize]).sum()
        };
        let coarse_right: Vec<f64> = (0..transfer.restriction.rows()).map(restricted).collect();
        let mut coarse = vec![0.0; coarse_right.len()];
        self.cycle(depth + 1, &mut coarse, &coarse_right, bottom);
        for (index, x) in (0..).zip(x.iter_mut()) {
            let row = row_of(&transfer.prolongation, &self.values[depth].prolongation, index);
            *x += row.map(|(column, weight)| weight * coarse[column as usize]).sum::<f64>();
        }
        self.smooth(depth, x, right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell_grid::CellGrid;
    use tombolo_workload::noise;

    #[test]
    fn a_cycle_takes_a_quarter_of_the_residual_away() {
        let hierarchy = Hierarchy::new(CellGrid { x: 21, y: 18, z: 23 });
        let reference = ReferenceSolver::new(&hierarchy);
        let right: Vec<f64> = (0..21 * 18 * 23).map(|index| f64::from(noise::unit(7, index))).collect();
        let norm = |residual: &[f64]| residual.iter().map(|part| part * part).sum::<f64>().sqrt();
        let mut x = vec![0.0; right.len()];
        let mut before = norm(&right);
        for _ in 0..4 {
            reference.cycle(0, &mut x, &right, 24);
            let after = norm(&reference.residual(0, &x, &right));
            assert!(after < 0.75 * before, "{before} to {after}");
            before = after;
        }
    }

    #[test]
    fn coarse_operators_are_symmetric() {
        let hierarchy = Hierarchy::new(CellGrid { x: 11, y: 9, z: 12 });
        let (level, values) = (&hierarchy.levels[1], &setup(&hierarchy)[1]);
        let find =
            |row: i32, column: i32| row_of(&level.matrix, &values.matrix, row).find(|(other, _)| *other == column);
        for row in 0..level.matrix.rows() {
            for (column, value) in row_of(&level.matrix, &values.matrix, row) {
                let (_, turned) = find(column, row).unwrap();
                assert!((turned - value).abs() < 1e-12);
            }
        }
    }
}
