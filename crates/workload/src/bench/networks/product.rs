//! The product of two matrices in device memory, as the libraries under a recurrent layer compute it.

use super::gemm::{Piece, Side, Tile, Values};
use crate::record::{Host, RecordError};
use crate::simt::{Array, ComputeClass, Cta, Warp};

/// A factor in device memory. A *line* is a row of the left factor and a column of the right one.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    array: Array<f32>,
    /// Its first element.
    first: u32,
    /// Elements from one line or term to the next.
    pitch: u32,
    /// Which elements lie side by side.
    order: Order,
}

#[derive(Clone, Copy)]
enum Order {
    /// The terms of a line.
    Terms,
    /// The lines of a term.
    Lines,
}

impl Factor {
    /// Lines `pitch` elements apart, each with its terms side by side. `first` and `pitch` are multiples of 4.
    pub(super) fn by_line(array: Array<f32>, first: u32, pitch: u32) -> Factor {
        Factor { array, first, pitch, order: Order::Terms }
    }

    /// Terms `pitch` elements apart, each with its lines side by side. `first` and `pitch` are multiples of 4.
    pub(super) fn by_term(array: Array<f32>, first: u32, pitch: u32) -> Factor {
        Factor { array, first, pitch, order: Order::Lines }
    }
}

/// A product `left × right`, stored column by column without gaps.
#[derive(Clone, Copy)]
pub(super) struct Product {
    /// Rows, a multiple of 4.
    pub(super) rows: u32,
    pub(super) columns: u32,
    /// Terms of each sum, a multiple of 4 where they lie side by side.
    pub(super) terms: u32,
    pub(super) left: Factor,
    pub(super) right: Factor,
    pub(super) output: Array<f32>,
    /// First element of the output.
    pub(super) first: u32,
    /// Whether the product is added to the output instead of replacing it.
    pub(super) adds: bool,
    pub(super) tile: Tile,
}

impl Product {
    /// Launches the kernel: CTAs side by side share columns.
    pub(super) fn launch(&self, host: &mut Host<'_>, name: &str) -> Result<(), RecordError> {
        let ctas = u64::from(self.rows.div_ceil(self.tile.rows)) * u64::from(self.columns.div_ceil(self.tile.columns));
        host.launch(self.tile.grid(name, ctas), |cta| self.kernel(cta))
    }

    fn kernel(&self, cta: &mut Cta<'_>) {
        let tile = self.tile;
        let row_tiles = self.rows.div_ceil(tile.rows);
        let row = cta.index() % row_tiles * tile.rows;
        let column = cta.index() / row_tiles * tile.columns;
        let product = tile.multiply(cta, self.terms.div_ceil(tile.depth), |warp, slab| {
            let mut pieces = Vec::with_capacity(tile.words() / 4);
            self.fetch(warp, Side::Left, (row, slab * tile.depth), &mut pieces);
            self.fetch(warp, Side::Right, (column, slab * tile.depth), &mut pieces);
            pieces
        });
        cta.each_warp(|warp| self.store(warp, (row, column), &product));
    }

    /// A warp's part of a factor's slab from (line, term) on, four elements a load.
    fn fetch(&self, warp: &mut Warp<'_>, side: Side, (line, term): (u32, u32), pieces: &mut Vec<Piece>) {
        let (tile, lines) = (self.tile, self.tile.lines(side) as i32);
        let (factor, extent) = match side {
            Side::Left => (self.left, self.rows),
            Side::Right => (self.right, self.columns),
        };
        for part in 0..lines as u32 * tile.depth / (4 * tile.threads) {
            let at = (warp.thread() + (part * tile.threads) as i32) * 4;
            let (in_line, in_term) = match factor.order {
                Order::Terms => (at / tile.depth as i32, at % tile.depth as i32),
                Order::Lines => (at % lines, at / lines),
            };
            let (line, term) = (in_line + line as i32, in_term + term as i32);
            let exists = line.lt(extent as i32) & term.lt(self.terms as i32);
            let (far, near) = match factor.order {
                Order::Terms => (line, term),
                Order::Lines => (term, line),
            };
            let index = far * factor.pitch as i32 + near + factor.first as i32;
            let index = warp.compute(ComputeClass::Int, 2, index);
            let values = warp.load_vector_if(exists, factor.array, index);
            let values = match factor.order {
                Order::Terms => Values::Terms(values),
                Order::Lines => Values::Lines(values),
            };
            pieces.push(Piece { side, line: in_line, term: in_term, values });
        }
    }

    fn store(&self, warp: &mut Warp<'_>, (row, column): (u32, u32), product: &[f32]) {
        let tile = self.tile;
        for round in 0..tile.rounds(tile.rows) {
            let at = warp.thread() + (round * tile.threads) as i32;
            let (in_row, in_column) = (at % tile.rows as i32, at / tile.rows as i32);
            let sum = (in_row * tile.columns as i32 + in_column).pick(product);
            let (row, column) = (in_row + row as i32, in_column + column as i32);
            let exists = row.lt(self.rows as i32) & column.lt(self.columns as i32);
            let place = column * self.rows as i32 + row + self.first as i32;
            let place = warp.compute(ComputeClass::Int, 2, place);
            let sum = if self.adds {
                let [before] = warp.load_vector_if(exists, self.output, place);
                warp.compute(ComputeClass::Fp32, 1, before + sum)
            } else {
                sum
            };
            warp.store_if(exists, self.output, place, sum);
        }
    }
}
