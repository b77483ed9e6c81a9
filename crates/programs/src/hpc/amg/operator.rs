//! Sparse operators between boxes with unknowns: each row's columns, in closed form.
//!
//! Along each axis, a row's columns are consecutive. The full set combines the columns for all three coordinates, x
//! fastest. Positions for all entries are therefore known without the arrays in memory.

use crate::prelude::*;

/// Column ranges along an axis in an operator.
struct AxisColumns {
    /// First column per row.
    first: Vec<i32>,
    /// Prefix sum over the rows' column counts; the last element is the total.
    before: Vec<i32>,
}

impl AxisColumns {
    fn new(ranges: impl Iterator<Item = (i32, i32)>) -> AxisColumns {
        let (mut first, mut before) = (Vec::new(), vec![0]);
        for (low, high) in ranges {
            first.push(low);
            before.push(before[before.len() - 1] + high - low);
        }
        AxisColumns { first, before }
    }

    fn count(&self, row: i32) -> i32 {
        self.before[row as usize + 1] - self.before[row as usize]
    }

    fn all(&self) -> i32 {
        self.before[self.before.len() - 1]
    }
}

/// An operator and its position in the arrays shared by all levels.
pub(super) struct Operator {
    axes: [AxisColumns; 3],
    rows: CellGrid,
    columns: CellGrid,
    /// Index in the global row list for this operator's first row.
    first_row: i32,
    /// Index in the global entry list for this operator's first entry.
    first_entry: i32,
}

/// Entry range and column box for one row.
#[derive(Clone, Copy)]
pub(super) struct OperatorRow {
    /// Index in the global entry list for the row's first entry.
    pub(super) first: i32,
    low: [i32; 3],
    counts: [i32; 3],
}

impl OperatorRow {
    /// Number of entries.
    pub(super) fn count(&self) -> i32 {
        self.counts.iter().product()
    }
}

fn sides(cells: CellGrid) -> [i32; 3] {
    [cells.x, cells.y, cells.z]
}

impl Operator {
    /// Builds the operator that couples every unknown to itself and its 26 neighbours.
    pub(super) fn neighbours(cells: CellGrid) -> Operator {
        let axis = |side: i32| AxisColumns::new((0..side).map(|at| ((at - 1).max(0), (at + 2).min(side))));
        Operator { axes: sides(cells).map(axis), rows: cells, columns: cells, first_row: 0, first_entry: 0 }
    }

    /// Builds the operator from coarse unknowns to fine ones. Along each axis a fine unknown lies between two coarse
    /// ones, `factor` fine unknowns apart.
    pub(super) fn prolongation(fine: CellGrid, factor: i32) -> Operator {
        let coarse = coarsened(fine, factor);
        let axis = |side: i32| {
            let last = (side + factor - 1) / factor;
            AxisColumns::new(
                (0..side)
                    .map(move |at| (at / factor, (at + factor - 1) / factor + 1))
                    .map(move |(low, high)| (low, high.min(last))),
            )
        };
        Operator { axes: sides(fine).map(axis), rows: fine, columns: coarse, first_row: 0, first_entry: 0 }
    }

    /// Builds the transpose of [`Operator::prolongation`].
    pub(super) fn restriction(fine: CellGrid, factor: i32) -> Operator {
        let coarse = coarsened(fine, factor);
        let axis = |side: i32| {
            let reach = move |at: i32| ((at * factor - factor + 1).max(0), (at * factor + factor).min(side));
            AxisColumns::new((0..(side + factor - 1) / factor).map(reach))
        };
        Operator { axes: sides(fine).map(axis), rows: coarse, columns: fine, first_row: 0, first_entry: 0 }
    }

    /// Moves the operator behind `rows` rows and `entries` entries that belong to earlier operators.
    pub(super) fn offset_by(self, rows: i32, entries: i32) -> Operator {
        Operator { first_row: rows, first_entry: entries, ..self }
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> i32 {
        self.rows.count()
    }

    /// Index in the global row list for this operator's first row.
    pub(super) fn first_row(&self) -> i32 {
        self.first_row
    }

    /// Number of entries in all rows.
    pub(super) fn entries(&self) -> u64 {
        self.axes.iter().map(|axis| axis.all() as u64).product()
    }

    /// Returns a row; an index beyond the end gives the last row.
    pub(super) fn row(&self, row: i32) -> OperatorRow {
        let place = self.rows.coordinates(row.clamp(0, self.rows() - 1));
        let counts: [i32; 3] = std::array::from_fn(|axis| self.axes[axis].count(place[axis]));
        let before: [i32; 3] = std::array::from_fn(|axis| self.axes[axis].before[place[axis] as usize]);
        let line = before[1] * self.axes[0].all() + counts[1] * before[0];
        let first = before[2] * self.axes[1].all() * self.axes[0].all() + counts[2] * line;
        let low = std::array::from_fn(|axis| self.axes[axis].first[place[axis] as usize]);
        OperatorRow { first: self.first_entry + first, low, counts }
    }

    /// Column for a given entry in a row; an index beyond the row's end gives the last column.
    pub(super) fn column(&self, row: &OperatorRow, entry: i32) -> i32 {
        let entry = entry.clamp(0, row.count() - 1);
        let [x, y, _] = row.counts;
        self.columns.index([row.low[0] + entry % x, row.low[1] + entry / x % y, row.low[2] + entry / x / y])
    }

    /// Coordinates for a row and for a column.
    pub(super) fn places(&self, row: i32, column: i32) -> [[i32; 3]; 2] {
        [self.rows.coordinates(row), self.columns.coordinates(column)]
    }
}

/// Box with every `factor`th unknown along each axis.
pub(super) fn coarsened(fine: CellGrid, factor: i32) -> CellGrid {
    let [x, y, z] = sides(fine).map(|side| (side + factor - 1) / factor);
    CellGrid { x, y, z }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs (row, column) in entry order.
    fn pairs(operator: &Operator) -> Vec<(i32, i32)> {
        let mut pairs = Vec::new();
        for index in 0..operator.rows() {
            let row = operator.row(index);
            assert_eq!(row.first as usize, pairs.len());
            pairs.extend((0..row.count()).map(|entry| (index, operator.column(&row, entry))));
        }
        assert_eq!(pairs.len() as u64, operator.entries());
        pairs
    }

    #[test]
    fn rows_follow_each_other_and_columns_ascend() {
        let cells = CellGrid { x: 5, y: 3, z: 7 };
        for operator in [Operator::neighbours(cells), Operator::prolongation(cells, 4), Operator::restriction(cells, 2)]
        {
            assert!(pairs(&operator).is_sorted());
        }
        assert_eq!(Operator::neighbours(cells).row(0).count(), 8);
    }

    #[test]
    fn restriction_is_the_transpose_of_prolongation() {
        for factor in [2, 4] {
            let cells = CellGrid { x: 5, y: 3, z: 7 };
            let mut turned: Vec<_> =
                pairs(&Operator::prolongation(cells, factor)).into_iter().map(|(a, b)| (b, a)).collect();
            turned.sort_unstable();
            assert_eq!(turned, pairs(&Operator::restriction(cells, factor)));
        }
    }
}
