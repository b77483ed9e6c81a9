//! cuSolver: Cholesky factorisation for a dense matrix by panels, in one cooperative kernel.
//!
//! The lower triangle is cut into square tiles, each owned by one CTA. For each panel, a tile's owner waits for the
//! flags on its input tiles. The diagonal tile is factored, and the tiles below are divided by it. Every tile to the
//! right loses the product between the two panel tiles in its row and column.

use crate::prelude::*;

/// Threads per CTA: with tiles 64 wide, each thread holds 16 elements in registers. Source: assumed.
const THREADS: u32 = 256;
/// Rows and columns per tile, and columns per panel. Source: assumed, the usual block size in dense solvers.
const TILE: u32 = 64;
/// Columns per slab: the part from both factors that a CTA holds in its scratchpad at a time. Source: assumed, 16 KB
/// out of 96.
const DEPTH: u32 = 16;
/// Rows of tiles in the largest matrix whose elements 32-bit signed integers can count.
const MOST_TILES: u64 = 724;

program! {
    /// dense Cholesky factorisation by panels: tiles wait for each other through scoped flags
    pub(crate) static CUSOLVER = "cusolver",
        "cuSolver's dense factorisations (the routine is assumed: potrf); HMG Table III (cuSolver)";
    properties: nonlinear;
    parameters {
        /// rows and columns of the matrix, at scale 1; scales by the root, to whole tiles of 64
        size: count(64..=MOST_TILES * TILE as u64) = 14_592,
            "HMG Table III: 1.60 GB, as a square matrix of 8-byte floats";
        /// panels that are factored, at most all
        panels: count(1..=MOST_TILES) = 2,
            "assumed: all panels do the same to a shrinking matrix, and the second waits for the first";
        /// CTAs, at scale 1; scales with the SMs
        ctas: count(1..=1 << 14) = 512, "one for each of the 512 SMs of HMG's machine (Table II)";
        SCOPE;
    }
    lay_out(name, request, memory) {
        let tile = u64::from(TILE);
        let size = request.fit_multiple("size", request.scale.side_of(size), tile);
        let factored = request.fit_most("panels", panels, size / tile);
        check_indices(name, size * size, "elements of the matrix")?;
    }
    struct Factorisation {
        /// Column-major matrix, with only the lower triangle in use.
        matrix: Array<f64>[size * size],
        /// `[panel][row of tiles]`: flag set once the panel's tile is final.
        ready: Array<u32> = memory.flags("ready", panels * MOST_TILES, Scaling::Fixed),
        size: u32,
        panels: u32 = factored as u32,
        ctas: u32 = request.scale.of(ctas) as u32,
        scope: Scope = scope(&request.values, "scope"),
        seed: u64 = request.seed,
    }
}

/// Elements per tile.
const ELEMENTS: usize = (TILE * TILE) as usize;

impl Factorisation {
    /// Number of tile rows.
    fn tiles(&self) -> u32 {
        self.size / TILE
    }

    /// Flag index for row `row` in panel `panel`.
    fn flag(&self, panel: u32, row: u32) -> u64 {
        u64::from(panel * self.tiles() + row)
    }

    /// Lower-triangle tiles owned by a CTA, from column `first` on, column by column.
    fn owned(&self, cta: u32, first: u32) -> impl Iterator<Item = (u32, u32)> {
        let (tiles, ctas) = (self.tiles(), self.ctas);
        let all = (0..tiles).flat_map(move |column| (column..tiles).map(move |row| (row, column)));
        (0_u32..).zip(all).filter_map(move |(index, tile)| (index % ctas == cta && tile.1 >= first).then_some(tile))
    }

    async fn kernel(&self, cta: &mut Cta<'_>) {
        for panel in 0..self.panels {
            let owned: Vec<_> = self.owned(cta.index(), panel).collect();
            for (row, column) in owned {
                if row == panel {
                    self.factor(cta, panel);
                    self.publish(cta, panel, row);
                } else if column == panel {
                    self.wait(cta, panel, &[panel]).await;
                    self.divide(cta, row, panel);
                    self.publish(cta, panel, row);
                } else {
                    self.wait(cta, panel, &[row, column]).await;
                    self.update(cta, row, column, panel);
                }
            }
        }
    }

    /// Waits until the given panel rows are final. One warp polls for the CTA, and acquires once for all rows.
    async fn wait(&self, cta: &mut Cta<'_>, panel: u32, rows: &[u32]) {
        for &row in rows {
            cta.wait_until(0, self.ready, self.flag(panel, row), Order::relaxed(self.scope), |flag| flag == 1).await;
        }
        cta.warp(0, |warp| warp.fence(Order::acquire(self.scope)));
        cta.barrier();
    }

    /// Publishes that a panel row is final.
    fn publish(&self, cta: &mut Cta<'_>, panel: u32, row: u32) {
        cta.barrier();
        cta.warp(0, |warp| {
            let flag = Lanes::all(self.flag(panel, row) as i64);
            warp.single(|warp| warp.store_ordered(self.ready, flag, 1, Order::release(self.scope)));
        });
    }

    /// Matrix index for each lane in a tile's column, `part` warp widths down.
    fn place(&self, warp: &Warp<'_>, (row, column): (u32, u32), inner: u32, part: u32) -> Lanes<i32> {
        let first = (column * TILE + inner) * self.size + row * TILE + part * warp.width();
        warp.lane() + first as i32
    }

    /// Runs `body(warp, column in the tile, part)` for a warp's share in a tile: whole columns, a lane per row.
    fn each_column(cta: &mut Cta<'_>, mut body: impl FnMut(&mut Warp<'_>, u32, u32)) {
        let columns = TILE / cta.warps();
        cta.each_warp(|warp| {
            for column in warp.index() * columns..(warp.index() + 1) * columns {
                (0..TILE / warp.width()).for_each(|part| body(warp, column, part));
            }
        });
    }

    /// Loads a tile from memory into the scratchpad, column-major.
    fn load(&self, cta: &mut Cta<'_>, tile: (u32, u32)) -> Shared<f64> {
        let mut values = cta.shared::<f64>(ELEMENTS);
        Self::each_column(cta, |warp, column, part| {
            let value = warp.load(self.matrix, self.place(warp, tile, column, part));
            let at = warp.lane() + (column * TILE + part * warp.width()) as i32;
            warp.store_shared(&mut values, at, value);
        });
        cta.barrier();
        values
    }

    /// Stores a finished tile back to memory.
    fn store(&self, cta: &mut Cta<'_>, tile: (u32, u32), values: &[f64]) {
        cta.barrier();
        Self::each_column(cta, |warp, column, part| {
            warp.shared(1);
            let at = warp.lane() + (column * TILE + part * warp.width()) as i32;
            warp.store(self.matrix, self.place(warp, tile, column, part), at.pick(values));
        });
    }

    /// Factors the diagonal tile, column after column: a square root, a division, an update for all columns to the
    /// right.
    fn factor(&self, cta: &mut Cta<'_>, panel: u32) {
        let tile = self.load(cta, (panel, panel));
        let mut values = tile.values().to_vec();
        let side = TILE as usize;
        for column in 0..side {
            let root = values[column * side + column].sqrt();
            values[column * side + column] = root;
            (column + 1..side).for_each(|row| values[column * side + row] /= root);
            for right in column + 1..side {
                let factor = values[column * side + right];
                (right..side).for_each(|row| values[right * side + row] -= factor * values[column * side + row]);
            }
            let rest = (side - column).pow(2).div_ceil(2 * THREADS as usize) as u16;
            cta.warp(0, |warp| warp.compute(ComputeClass::Special, 2, ()));
            cta.barrier();
            cta.each_warp(|warp| {
                warp.shared(2 * rest);
                // The tile's remaining elements are updated independently.
                warp.compute_wide(ComputeClass::Fp64, rest, rest, ());
            });
            cta.barrier();
        }
        self.store(cta, (panel, panel), &values);
    }

    /// Divides a panel tile by the diagonal tile, with a row per thread.
    fn divide(&self, cta: &mut Cta<'_>, row: u32, panel: u32) {
        let diagonal = self.load(cta, (panel, panel));
        let tile = self.load(cta, (row, panel));
        let mut values = tile.values().to_vec();
        let (side, divisor) = (TILE as usize, diagonal.values());
        for column in 0..side {
            for before in 0..column {
                let factor = divisor[before * side + column];
                (0..side).for_each(|row| values[column * side + row] -= factor * values[before * side + row]);
            }
            (0..side).for_each(|row| values[column * side + row] /= divisor[column * side + column]);
        }
        let products = (TILE * (TILE - 1) / 2) as u16;
        cta.each_warp(|warp| {
            if warp.index() * warp.width() < TILE {
                warp.shared(products);
                warp.compute(ComputeClass::Fp64, products, ());
                warp.compute(ComputeClass::Special, TILE as u16, ());
            }
        });
        self.store(cta, (row, panel), &values);
    }

    /// Subtracts from a tile the product between the panel tiles in its row and its column, slab by slab.
    fn update(&self, cta: &mut Cta<'_>, row: u32, column: u32, panel: u32) {
        let mut product = vec![0.0; ELEMENTS];
        let slab = (DEPTH * TILE) as usize;
        let (mut left, mut right) = (cta.shared::<f64>(slab), cta.shared::<f64>(slab));
        for first in (0..TILE).step_by(DEPTH as usize) {
            cta.each_warp(|warp| {
                self.fetch(warp, (row, panel), first, &mut left);
                self.fetch(warp, (column, panel), first, &mut right);
            });
            cta.barrier();
            // A thread multiplies four rows by four columns: eight words from the scratchpad for 16 products.
            let products = TILE * TILE * DEPTH / THREADS;
            cta.each_warp(|warp| {
                warp.shared((products / 2) as u16);
                warp.compute_wide(ComputeClass::Fp64, products as u16, (products / DEPTH) as u16, ());
            });
            accumulate(left.values(), right.values(), &mut product);
            cta.barrier();
        }
        Self::each_column(cta, |warp, inner, part| {
            let place = self.place(warp, (row, column), inner, part);
            let at = warp.lane() + (inner * TILE + part * warp.width()) as i32;
            let difference = warp.load(self.matrix, place) - at.pick(&product);
            let difference = warp.compute(ComputeClass::Fp64, 1, difference);
            warp.store(self.matrix, place, difference);
        });
    }

    /// Loads a warp's part in `DEPTH` columns from a panel tile, two rows per lane.
    fn fetch(&self, warp: &mut Warp<'_>, (row, panel): (u32, u32), first: u32, into: &mut Shared<f64>) {
        let pairs = (TILE / 2) as i32;
        for start in (0..DEPTH as i32 * pairs).step_by(THREADS as usize) {
            let pair = warp.thread() + start;
            let (column, inner) = (pair / pairs, pair % pairs * 2);
            let place = column * self.size as i32 + inner;
            let place = place + ((panel * TILE + first) * self.size + row * TILE) as i32;
            let place = warp.compute(ComputeClass::Int, 3, place);
            let values: [Lanes<f64>; 2] = warp.load_vector(self.matrix, place);
            warp.store_shared_vector(into, column * TILE as i32 + inner, values);
        }
    }

    fn start(&self, row: u64, column: u64) -> f64 {
        let (low, high) = (row.min(column), row.max(column));
        let bent = f64::from(noise::unit(self.seed, high * u64::from(self.size) + low));
        if row == column { f64::from(self.size) } else { bent }
    }
}

/// Adds the product between two slabs, both column by column, to a tile in column order.
fn accumulate(left: &[f64], right: &[f64], product: &mut [f64]) {
    let side = TILE as usize;
    for (rows, columns) in left.chunks(side).zip(right.chunks(side)) {
        for (factor, sums) in columns.iter().zip(product.chunks_mut(side)) {
            sums.iter_mut().zip(rows).for_each(|(sum, row)| *sum += factor * row);
        }
    }
}

impl Instance for Factorisation {
    fn fill(&self, memory: &Memory) {
        let size = u64::from(self.size);
        memory.fill(self.matrix, |index| self.start(index % size, index / size));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.matrix);
        let grid = Grid::new("potrf", u64::from(self.ctas), THREADS).shared_bytes(2 * 8 * TILE * TILE);
        host.launch_cooperative(grid, async |cta: &mut Cta<'_>| self.kernel(cta).await)?;
        host.copy_to_host(self.matrix);
        Ok(())
    }

    /// Factors column by column with the textbook algorithm, as far as the panels reach.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let size = self.size as usize;
        let mut columns: Vec<Vec<f64>> =
            (0..size).map(|column| (0..size).map(|row| self.start(row as u64, column as u64)).collect()).collect();
        for column in 0..(self.panels * TILE) as usize {
            let root = columns[column][column].sqrt();
            columns[column][column..].iter_mut().for_each(|value| *value /= root);
            let (done, rest) = columns.split_at_mut(column + 1);
            for (right, values) in (column + 1..).zip(rest) {
                let factor = done[column][right];
                (right..size).for_each(|row| values[row] -= factor * done[column][row]);
            }
        }
        let found = memory.to_vec(self.matrix);
        for (column, expected) in columns.iter().enumerate() {
            let below = &found[column * size + column..(column + 1) * size];
            compare_f64(&format!("below the diagonal of column {column}: element"), below, &expected[column..])?;
        }
        Ok(())
    }
}
