//! The multigrid levels, from the finest to the coarsest, and their placement in the arrays.

use super::operator::{Operator, coarsened};
use crate::prelude::*;

/// Coarsening distance in unknowns along each axis: `AGGRESSIVE` on the finest level, `STANDARD` on all levels below.
/// Source: hypre's manual (BoomerAMG): one or two levels with aggressive coarsening reduce the complexity; the distance
/// is assumed.
const AGGRESSIVE: i32 = 4;
const STANDARD: i32 = 2;
/// Maximum number of unknowns on the coarsest level, unless one side is 1. Source: assumed; hypre stops at 9 by
/// default.
const COARSEST: i32 = 64;

/// Transfer operators between a level and the next coarser one.
pub(super) struct Transfer {
    pub(super) prolongation: Operator,
    pub(super) restriction: Operator,
    /// Distance between coarse unknowns, in fine unknowns.
    pub(super) factor: i32,
}

/// A multigrid level.
pub(super) struct AmgLevel {
    pub(super) matrix: Operator,
    /// Transfer to the coarser level; `None` on the coarsest.
    pub(super) transfer: Option<Transfer>,
}

/// All multigrid levels, finest first.
pub(super) struct Hierarchy {
    pub(super) levels: Vec<AmgLevel>,
}

/// Total rows and entries over all operators laid out until now.
#[derive(Default)]
struct ArrayExtent {
    rows: i32,
    entries: i32,
}

impl ArrayExtent {
    fn place(&mut self, operator: Operator) -> Operator {
        let (rows, entries) = (self.rows, self.entries);
        // Each operator's list with first entries has one element more than it has rows.
        self.rows += operator.rows() + 1;
        self.entries += operator.entries() as i32;
        operator.offset_by(rows, entries)
    }
}

impl Hierarchy {
    /// Builds the levels by coarsening a box with unknowns.
    pub(super) fn new(finest: CellGrid) -> Hierarchy {
        let [mut matrices, mut prolongations, mut restrictions] = [(); 3].map(|()| ArrayExtent::default());
        let (mut levels, mut cells) = (Vec::new(), finest);
        loop {
            let matrix = matrices.place(Operator::neighbours(cells));
            let factor = if levels.is_empty() { AGGRESSIVE } else { STANDARD };
            let coarse = coarsened(cells, factor);
            if cells.count() <= COARSEST || coarse == cells {
                levels.push(AmgLevel { matrix, transfer: None });
                return Hierarchy { levels };
            }
            let transfer = Transfer {
                prolongation: prolongations.place(Operator::prolongation(cells, factor)),
                restriction: restrictions.place(Operator::restriction(cells, factor)),
                factor,
            };
            levels.push(AmgLevel { matrix, transfer: Some(transfer) });
            cells = coarse;
        }
    }

    /// Total lengths over all operators in an array: rows (plus one per operator) and entries.
    pub(super) fn extent<'a>(operators: impl Iterator<Item = &'a Operator>) -> (u64, u64) {
        operators
            .fold((0, 0), |(rows, entries), operator| (rows + operator.rows() as u64 + 1, entries + operator.entries()))
    }
}
