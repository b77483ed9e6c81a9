//! The product of two matrices in device memory, as computed by the libraries under a recurrent layer.

use super::gemm::{FactorSide, FetchedPiece, FetchedValues, TileShape};
use crate::prelude::*;

/// A factor in device memory. A *line* is a row in the left factor and a column in the right factor.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    array: Array<f32>,
    /// Index of the first element.
    first: u32,
    /// Elements between consecutive lines or terms.
    pitch: u32,
    /// Memory order of the elements.
    order: FactorLayout,
}

#[derive(Clone, Copy)]
enum FactorLayout {
    /// The terms of a line are contiguous.
    Terms,
    /// The lines of a term are contiguous.
    Lines,
}

impl Factor {
    /// Lines with a distance of `pitch` elements, each with contiguous terms. `first` and `pitch` are multiples of 4.
    pub(super) fn by_line(array: Array<f32>, first: u32, pitch: u32) -> Factor {
        Factor { array, first, pitch, order: FactorLayout::Terms }
    }

    /// Terms with a distance of `pitch` elements, each with contiguous lines. `first` and `pitch` are multiples of 4.
    pub(super) fn by_term(array: Array<f32>, first: u32, pitch: u32) -> Factor {
        Factor { array, first, pitch, order: FactorLayout::Lines }
    }
}

/// A product `left × right`, stored column by column without gaps.
#[derive(Clone, Copy)]
pub(super) struct Product {
    /// Row count, a multiple of 4.
    pub(super) rows: u32,
    pub(super) columns: u32,
    /// Terms per sum, a multiple of 4 if contiguous in memory.
    pub(super) terms: u32,
    pub(super) left: Factor,
    pub(super) right: Factor,
    pub(super) output: Array<f32>,
    /// First output element, for the first part of the terms.
    pub(super) first: u32,
    /// True if the product is added to the output; false if the product replaces the output.
    pub(super) adds: bool,
    /// Number of parts into which the terms are divided, at most the number of slabs. Each part has separate CTAs and a
    /// separate output after the preceding part's output.
    pub(super) splits: u32,
    pub(super) tile: TileShape,
}

impl Product {
    /// Launches the kernel: neighbouring CTAs share columns; the CTAs for each part of the terms follow the CTAs for
    /// the preceding part.
    pub(super) fn launch(&self, host: &mut Host<'_>, name: &str) -> Result<(), RecordError> {
        let [row_tiles, column_tiles] = self.tiles();
        let ctas = u64::from(row_tiles) * u64::from(column_tiles) * u64::from(self.splits);
        host.launch(self.tile.grid(name, ctas), |cta| self.kernel(cta))
    }

    /// Number of tiles along the rows and along the columns.
    fn tiles(&self) -> [u32; 2] {
        [self.rows.div_ceil(self.tile.rows), self.columns.div_ceil(self.tile.columns)]
    }

    fn kernel(&self, cta: &mut Cta<'_>) {
        let tile = self.tile;
        let [row_tiles, column_tiles] = self.tiles();
        let (at, split) = (cta.index() % (row_tiles * column_tiles), cta.index() / (row_tiles * column_tiles));
        let row = at % row_tiles * tile.rows;
        let column = at / row_tiles * tile.columns;
        let slabs = u64::from(self.terms.div_ceil(tile.depth));
        let [first, end] = [split, split + 1].map(|part| (slabs * u64::from(part) / u64::from(self.splits)) as u32);
        let product = tile.multiply(cta, end - first, |warp, slab| {
            let mut pieces = Vec::with_capacity(tile.words() / 4);
            let term = (first + slab) * tile.depth;
            self.fetch(warp, FactorSide::Left, (row, term), &mut pieces);
            self.fetch(warp, FactorSide::Right, (column, term), &mut pieces);
            pieces
        });
        let first = self.first + split * self.rows * self.columns;
        cta.each_warp(|warp| self.store(warp, (row, column), first, &product));
    }

    /// Fetches a warp's part of a factor's slab starting at (line, term), four elements per load.
    fn fetch(&self, warp: &mut Warp<'_>, side: FactorSide, (line, term): (u32, u32), pieces: &mut Vec<FetchedPiece>) {
        let (tile, lines) = (self.tile, self.tile.lines(side) as i32);
        let (factor, extent) = match side {
            FactorSide::Left => (self.left, self.rows),
            FactorSide::Right => (self.right, self.columns),
        };
        for part in 0..lines as u32 * tile.depth / (4 * tile.threads) {
            let at = (warp.thread() + (part * tile.threads) as i32) * 4;
            let (in_line, in_term) = match factor.order {
                FactorLayout::Terms => (at / tile.depth as i32, at % tile.depth as i32),
                FactorLayout::Lines => (at % lines, at / lines),
            };
            let (line, term) = (in_line + line as i32, in_term + term as i32);
            let exists = line.lt(extent as i32) & term.lt(self.terms as i32);
            let (far, near) = match factor.order {
                FactorLayout::Terms => (line, term),
                FactorLayout::Lines => (term, line),
            };
            let index = far * factor.pitch as i32 + near + factor.first as i32;
            let index = warp.compute(ComputeClass::Int, 2, index);
            let values = warp.load_vector_if(exists, factor.array, index);
            let values = match factor.order {
                FactorLayout::Terms => FetchedValues::Terms(values),
                FactorLayout::Lines => FetchedValues::Lines(values),
            };
            pieces.push(FetchedPiece { side, line: in_line, term: in_term, values });
        }
    }

    fn store(&self, warp: &mut Warp<'_>, (row, column): (u32, u32), first: u32, product: &[f32]) {
        let tile = self.tile;
        for round in 0..tile.rounds(tile.rows) {
            let at = warp.thread() + (round * tile.threads) as i32;
            let (in_row, in_column) = (at % tile.rows as i32, at / tile.rows as i32);
            let sum = (in_row * tile.columns as i32 + in_column).pick(product);
            let (row, column) = (in_row + row as i32, in_column + column as i32);
            let exists = row.lt(self.rows as i32) & column.lt(self.columns as i32);
            let place = column * self.rows as i32 + row + first as i32;
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
