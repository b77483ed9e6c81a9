//! The levels, from the finest to the coarsest, and how they lie in the arrays.

use super::operator::{Operator, coarsened};
use crate::bench::cells::Cells;

/// Unknowns along each axis from one kept on the next level to the other: of the finest level, and of the others.
/// Source: hypre's manual (BoomerAMG): one or two levels of aggressive coarsening reduce the complexity; the distance is
/// assumed.
const AGGRESSIVE: i32 = 4;
const STANDARD: i32 = 2;
/// Unknowns of the coarsest level at most, unless one side is 1. Source: assumed; hypre stops at 9 by default.
const COARSEST: i32 = 64;

/// The way from a level to the next and back.
pub(super) struct Transfer {
    pub(super) prolongation: Operator,
    pub(super) restriction: Operator,
    /// Distance of coarse unknowns in fine ones.
    pub(super) factor: i32,
}

/// One level.
pub(super) struct Level {
    pub(super) matrix: Operator,
    /// None on the coarsest.
    pub(super) transfer: Option<Transfer>,
}

/// All levels.
pub(super) struct Hierarchy {
    pub(super) levels: Vec<Level>,
}

/// Rows and entries of the operators laid out so far.
#[derive(Default)]
struct Laid {
    rows: i32,
    entries: i32,
}

impl Laid {
    fn place(&mut self, operator: Operator) -> Operator {
        let (rows, entries) = (self.rows, self.entries);
        // Each operator's list of first entries has one more than it has rows.
        self.rows += operator.rows() + 1;
        self.entries += operator.entries() as i32;
        operator.behind(rows, entries)
    }
}

impl Hierarchy {
    /// Coarsens a box of unknowns.
    pub(super) fn new(finest: Cells) -> Hierarchy {
        let [mut matrices, mut prolongations, mut restrictions] = [(); 3].map(|()| Laid::default());
        let (mut levels, mut cells) = (Vec::new(), finest);
        loop {
            let matrix = matrices.place(Operator::neighbours(cells));
            let factor = if levels.is_empty() { AGGRESSIVE } else { STANDARD };
            let coarse = coarsened(cells, factor);
            if cells.count() <= COARSEST || coarse == cells {
                levels.push(Level { matrix, transfer: None });
                return Hierarchy { levels };
            }
            let transfer = Transfer {
                prolongation: prolongations.place(Operator::prolongation(cells, factor)),
                restriction: restrictions.place(Operator::restriction(cells, factor)),
                factor,
            };
            levels.push(Level { matrix, transfer: Some(transfer) });
            cells = coarse;
        }
    }

    /// Ends of the lists of all operators of a kind: rows (one more an operator) and entries.
    pub(super) fn extent<'a>(operators: impl Iterator<Item = &'a Operator>) -> (u64, u64) {
        operators
            .fold((0, 0), |(rows, entries), operator| (rows + operator.rows() as u64 + 1, entries + operator.entries()))
    }
}
