//! miniAMR: a stencil on blocks of cells that split and merge as an object moves through the mesh.
//!
//! A stage fills all blocks' ghost cells, with one kernel per axis, from neighbours at equal, double or half size. It
//! then averages each cell with its six neighbours. The object moves after each time step. After every fifth step the
//! mesh follows it, and two kernels fill the merged and split blocks.
//!
//! Not modelled: miniAMR's checksums.

mod face;
mod octree;
mod reference;

use self::face::{BORDER, COARSER, FINER, GhostCells, KIND, PART, slot_of, words};
use self::octree::{BlockPosition, MeshChange, Octree};
use self::reference::ReferenceMesh;
use crate::prelude::*;

/// Threads per CTA; a CTA handles one variable in one block. Source: assumed, the usual size.
const THREADS: u32 = 256;
/// Radius of the object: a fraction of the root block's side, multiplied by the square root of the number of root
/// blocks in a plane. Source: assumed; a quarter of the mesh is then refined.
const RADIUS: f64 = 0.28;
/// Object motion along x and y per time step, as a fraction of the mesh. Source: assumed; in five steps the object
/// leaves and enters blocks even if four blocks span the mesh. Examples in miniAMR's README have 0.025 to 0.04.
const MOTION: [f64; 2] = [0.026, 0.014];
/// Words per entry in the change list: a large block and its eight parts.
const CHANGE: i32 = 9;

program! {
    /// stencil on an adaptive mesh of blocks: ghost cells from neighbours of other sizes, splits and merges
    pub(crate) static MINIAMR = "miniamr", "miniAMR (Mantevo), seven-point stencil; HMG Table III (HPC_MiniAMR-test2)";
    parameters {
        /// blocks that storage has room for, at scale 1, at least the coarsest; scales
        blocks: count(1..=1 << 20) = 3392, "HMG Table III: MiniAMR-test2, 1.80 GB; miniAMR's `max_blocks`";
        /// cells along each side of a block
        side: one_of(4, 6, 8, 10, 12, 16) = 10, "miniAMR, `nx`, `ny`, `nz`";
        /// variables of a cell
        variables: count(1..=100) = 40, "miniAMR, `num_vars`";
        /// coarsest blocks along x, at scale 1; scales by the root
        x: count(1..=256) = 16, "assumed: with y, z and the object, blocks in use come near what storage has room for";
        /// coarsest blocks along y, at scale 1; scales by the root
        y: count(1..=256) = 16, "assumed, as x";
        /// coarsest blocks along z; does not scale
        z: count(1..=256) = 4, "assumed, as x";
        /// times that a block may split (miniAMR's `num_refine`)
        levels: count(0..=4) = 1, "assumed: more levels leave too few coarse blocks in the storage of HMG Table III";
        /// time steps; the object moves behind each
        steps: count(1..=1000) = 20, "miniAMR, `num_tsteps`";
        /// stages of a time step
        stages: count(1..=1000) = 20, "miniAMR, `stages_per_ts`";
        /// time steps from one change of the mesh to the next
        period: count(1..=1000) = 5, "miniAMR, `refine_freq`";
    }
    lay_out(name, request, memory) {
        let along = |name| request.scale.side_of(request.values.count(name)) as i32;
        let roots = CellGrid { x: along("x"), y: along("y"), z: z as i32 };
        let room = request.scale.of(blocks);
        let blocks = request.fit("blocks", room, room.max(roots.count() as u64), "as many as the coarsest, at least");
        let cells = blocks * variables * (side + 2).pow(3);
        check_indices(name, cells, "cells")?;
    }
    struct AmrBlocks {
        /// Cell values, `[slot][variable][z][y][x]`, with one ghost cell on each side.
        cells: Array<f64>[cells],
        /// Slots in use, ascending.
        active: Array<u32>[blocks],
        /// `[slot][face][4]`: neighbour kinds and slots.
        neighbours: Array<u32>[blocks * 6 * 4],
        /// Slots for blocks that split or merge, and for their parts.
        changes: Array<u32>[blocks.div_ceil(8) * CHANGE as u64],
        roots: CellGrid,
        side, variables: i32,
        levels: u32,
        steps, stages, period: u64,
        seed: u64 = request.seed,
    }
}

type RecordResult = Result<(), RecordError>;

impl AmrBlocks {
    /// Cells per variable in a block, with ghosts.
    fn padded(&self) -> CellGrid {
        let side = self.side + 2;
        CellGrid { x: side, y: side, z: side }
    }

    /// Cells per variable in a block, without ghosts.
    fn inner(&self) -> CellGrid {
        CellGrid { x: self.side, y: self.side, z: self.side }
    }

    /// Index in `cells` for the first cell of a block's variable.
    fn base(&self, warp: &mut Warp<'_>, slot: Lanes<u32>, variable: i32) -> Lanes<i32> {
        let first = (slot.cast::<i32>() * self.variables + variable) * self.padded().count();
        warp.compute(ComputeClass::Int, 2, first)
    }

    /// Runs `body(warp, item)` for the warp's share among `count` items, a CTA width at a time.
    fn each(warp: &mut Warp<'_>, count: i32, mut body: impl FnMut(&mut Warp<'_>, Lanes<i32>)) {
        for start in (0..count).step_by(THREADS as usize) {
            let item = warp.compute(ComputeClass::Int, 1, warp.thread() + start);
            warp.when(item.lt(count), |warp| body(warp, item));
        }
    }

    /// Fills the ghost cells on both faces across `axis`, for one variable in one block.
    fn exchange(&self, cta: &mut Cta<'_>, axis: usize) {
        let (entry, variable) = self.share(cta);
        let face_cells = self.side * self.side;
        cta.each_warp(|warp| {
            let slot = warp.load(self.active, Lanes::all(entry));
            Self::each(warp, 2 * face_cells, |warp, thread| {
                let (high, at) = (thread / face_cells, thread % face_cells);
                let [high, u, v] = warp.compute(ComputeClass::Int, 6, [high, at % self.side, at / self.side]);
                let row = slot.cast::<i32>() * 6 + high + 2 * axis as i32;
                let words = warp.load_vector(self.neighbours, row * 4);
                let ghost = GhostCells { axis, variable, slot, low: high.eq(0), at: [u, v], words };
                let beyond = ghost.low.select(Lanes::all(0), Lanes::all(self.side + 1));
                let to = self.cell(warp, slot, variable, ghost.place(beyond, ghost.at));
                let kind = warp.compute(ComputeClass::Int, 1, words[0].map(|word| word >> KIND));
                warp.when_else(
                    kind.ne(FINER),
                    |warp| self.copy_ghost(warp, &ghost, kind, to),
                    |warp| self.mean_ghost(warp, &ghost, to),
                );
            });
        });
    }

    /// Index for a cell in a block's variable; coordinates include the ghost offset.
    fn cell(&self, warp: &mut Warp<'_>, slot: Lanes<u32>, variable: i32, place: [Lanes<i32>; 3]) -> Lanes<i32> {
        self.padded().indices(warp, place) + self.base(warp, slot, variable)
    }

    /// Layer in the neighbour's cells that touches the face.
    fn facing(&self, ghost: &GhostCells) -> Lanes<i32> {
        ghost.low.select(Lanes::all(self.side), Lanes::all(1))
    }

    /// Copies a ghost cell's value from the neighbour's cell around it, or at the border from the block's own cell.
    fn copy_ghost(&self, warp: &mut Warp<'_>, ghost: &GhostCells, kind: Lanes<u32>, to: Lanes<i32>) {
        let border = kind.eq(BORDER);
        let own = ghost.low.select(Lanes::all(1), Lanes::all(self.side));
        let half = |which: usize| {
            let part = ghost.words[0].map(|word| (word >> (PART + which as u32) & 1) as i32);
            kind.eq(COARSER).select(ghost.at[which] / 2 + part * (self.side / 2), ghost.at[which])
        };
        let [along, u, v] =
            warp.compute(ComputeClass::Int, 6, [border.select(own, self.facing(ghost)), half(0), half(1)]);
        let source = border.select(ghost.slot, slot_of(ghost.words[0]));
        let from = self.cell(warp, source, ghost.variable, ghost.place(along, [u, v]));
        let value = warp.load(self.cells, from);
        warp.store(self.cells, to, value);
    }

    /// Sets a ghost cell to the mean over four cells in a finer neighbour.
    fn mean_ghost(&self, warp: &mut Warp<'_>, ghost: &GhostCells, to: Lanes<i32>) {
        let half = self.side / 2;
        let [u, v] = ghost.at;
        let which = warp.compute(ComputeClass::Int, 5, u / half + (v / half) * 2);
        let [first, second, third, fourth] = ghost.words;
        let upper = which.eq(2).select(third, fourth);
        let source = which.eq(0).select(slot_of(first), which.eq(1).select(second, upper));
        let mut sum = Lanes::all(0.0);
        for (right, up) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let place = ghost.place(self.facing(ghost), [u % half * 2 + right, v % half * 2 + up]);
            let from = self.cell(warp, source, ghost.variable, place);
            sum = sum + warp.load(self.cells, from);
        }
        let mean = warp.compute(ComputeClass::Fp64, 4, sum * 0.25);
        warp.store(self.cells, to, mean);
    }

    /// List entry and variable that a CTA handles.
    fn share(&self, cta: &Cta<'_>) -> (i32, i32) {
        let index = cta.index() as i32;
        (index / self.variables, index % self.variables)
    }

    /// Replaces each cell by the mean over itself and its six neighbours.
    fn stencil(&self, cta: &mut Cta<'_>) {
        let (entry, variable) = self.share(cta);
        let (row, plane) = (self.padded().x, self.padded().x * self.padded().y);
        let mut means = Vec::new();
        cta.each_warp(|warp| {
            let slot = warp.load(self.active, Lanes::all(entry));
            let base = self.base(warp, slot, variable);
            Self::each(warp, self.inner().count(), |warp, cell| {
                let at = self.inside(warp, cell) + base;
                let mut sum = warp.load(self.cells, at);
                for offset in [-1, 1, -row, row, -plane, plane] {
                    sum = sum + warp.load(self.cells, at + offset);
                }
                means.push((at, warp.compute(ComputeClass::Fp64, 7, sum.map(|sum| sum / 7.0))));
            });
        });
        cta.barrier();
        let mut means = means.into_iter();
        cta.each_warp(|warp| {
            Self::each(warp, self.inner().count(), |warp, _| {
                if let Some((at, mean)) = means.next() {
                    warp.store(self.cells, at, mean);
                }
            });
        });
    }

    /// Position in a padded variable for a cell counted without ghosts.
    fn inside(&self, warp: &mut Warp<'_>, cell: Lanes<i32>) -> Lanes<i32> {
        let place = self.inner().lane_coordinates(warp, cell).map(|at| at + 1);
        self.padded().indices(warp, place)
    }

    /// Fills one part after a split: each cell gets the value from the large cell around it.
    fn split(&self, cta: &mut Cta<'_>) {
        let (entry, variable) = self.share(cta);
        let (change, octant) = (entry / 8, entry % 8);
        let half = self.side / 2;
        cta.each_warp(|warp| {
            let whole = warp.load(self.changes, Lanes::all(change * CHANGE));
            let part = warp.load(self.changes, Lanes::all(change * CHANGE + 1 + octant));
            let (whole, part) = (self.base(warp, whole, variable), self.base(warp, part, variable));
            Self::each(warp, self.inner().count(), |warp, cell| {
                let place = self.inner().lane_coordinates(warp, cell);
                let around = [0, 1, 2].map(|axis| place[axis] / 2 + (1 + (octant >> axis & 1) * half));
                let from = self.padded().indices(warp, around) + whole;
                let value = warp.load(self.cells, from);
                let to = self.inside(warp, cell) + part;
                warp.store(self.cells, to, value);
            });
        });
    }

    /// Fills a block merged from eight: each cell gets the mean over the eight small cells inside it.
    fn merge(&self, cta: &mut Cta<'_>) {
        let (change, variable) = self.share(cta);
        let half = self.side / 2;
        cta.each_warp(|warp| {
            let whole = warp.load(self.changes, Lanes::all(change * CHANGE));
            let whole = self.base(warp, whole, variable);
            Self::each(warp, self.inner().count(), |warp, cell| {
                let place = self.inner().lane_coordinates(warp, cell);
                let octant = place[0] / half + place[1] / half * 2 + place[2] / half * 4;
                let octant = warp.compute(ComputeClass::Int, 5, octant);
                let part = warp.load(self.changes, octant + (change * CHANGE + 1));
                let part = self.base(warp, part, variable);
                let mut sum = Lanes::all(0.0);
                for inside in 0..8 {
                    let there = [0, 1, 2].map(|axis| place[axis] % half * 2 + (1 + (inside >> axis & 1)));
                    let from = self.padded().indices(warp, there) + part;
                    sum = sum + warp.load(self.cells, from);
                }
                let mean = warp.compute(ComputeClass::Fp64, 8, sum * 0.125);
                let to = self.inside(warp, cell) + whole;
                warp.store(self.cells, to, mean);
            });
        });
    }

    /// Runs a kernel with a CTA for each variable in each of the list's `count` entries.
    fn launch(
        &self,
        host: &mut Host<'_>,
        name: &str,
        count: usize,
        kernel: impl Fn(&mut Cta<'_>) + Sync,
    ) -> RecordResult {
        if count == 0 {
            return Ok(());
        }
        host.launch(Grid::new(name, count as u64 * self.variables as u64, THREADS), kernel)
    }

    /// Writes the change list, and copies it to the device.
    fn copy_changes(&self, host: &mut Host<'_>, changes: &[MeshChange]) {
        for (entry, change) in (0..).zip(changes) {
            for (word, slot) in (0..).zip([change.whole].into_iter().chain(change.parts)) {
                host.memory().write(self.changes, entry * CHANGE as u64 + word, slot);
            }
        }
        host.copy_to_device(self.changes);
    }

    /// Adapts the mesh to the object's position after `step`.
    fn adapt(&self, host: &mut Host<'_>, mesh: &mut Octree, step: u64) -> RecordResult {
        let [merges, splits] = mesh.adapt(|place| self.wanted(place, step));
        self.copy_changes(host, &merges);
        self.launch(host, "merge", merges.len(), |cta| self.merge(cta))?;
        self.copy_changes(host, &splits);
        self.launch(host, "split", 8 * splits.len(), |cta| self.split(cta))?;
        self.write_lists(host.memory(), mesh);
        host.copy_to_device(self.active);
        host.copy_to_device(self.neighbours);
        Ok(())
    }

    /// Writes the block list and the neighbour list.
    fn write_lists(&self, memory: &Memory, mesh: &Octree) {
        for (entry, slot) in (0..).zip(mesh.active()) {
            memory.write(self.active, entry, slot);
        }
        for (place, slot) in mesh.blocks() {
            for face in 0..6 {
                let words = words(place, face, mesh.neighbour(place, face));
                for (word, value) in (0..).zip(words) {
                    memory.write(self.neighbours, (u64::from(slot) * 6 + face as u64) * 4 + word, value);
                }
            }
        }
    }

    /// Mesh before the first step: adapted once per refinement level.
    fn first_mesh(&self) -> Octree {
        let mut mesh = Octree::new(self.roots, self.levels, self.active.len() as u32);
        (0..self.levels).for_each(|_| _ = mesh.adapt(|place| self.wanted(place, 0)));
        mesh
    }

    /// True if a block's middle lies in the object after `step` steps. The object is a cylinder along z that moves
    /// around in the mesh.
    fn wanted(&self, place: BlockPosition, step: u64) -> bool {
        let sides = [self.roots.x, self.roots.y].map(f64::from);
        let apart = [0, 1].map(|axis| {
            let middle = (f64::from(place.along(axis)) + 0.5) / f64::from(1 << place.level);
            let object = (0.5 + MOTION[axis] * step as f64).fract() * sides[axis];
            middle - object
        });
        apart[0].powi(2) + apart[1].powi(2) < RADIUS.powi(2) * sides[0] * sides[1]
    }

    /// Initial value for a cell in the first mesh, by storage index.
    fn start(&self, index: u64) -> f64 {
        1.0 + f64::from(noise::unit(self.seed, index))
    }

    /// Storage index for a cell counted without ghosts.
    fn storage_index(&self, slot: u32, variable: i32, cell: i32) -> u64 {
        let inside = self.padded().index(self.inner().coordinates(cell).map(|at| at + 1));
        (u64::from(slot) * self.variables as u64 + variable as u64) * self.padded().count() as u64 + inside as u64
    }
}

impl Instance for AmrBlocks {
    fn fill(&self, memory: &Memory) {
        let mesh = self.first_mesh();
        self.write_lists(memory, &mesh);
        for slot in mesh.active() {
            for variable in 0..self.variables {
                for at in (0..self.inner().count()).map(|cell| self.storage_index(slot, variable, cell)) {
                    memory.write(self.cells, at, self.start(at));
                }
            }
        }
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.cells);
        host.copy_to_device(self.active);
        host.copy_to_device(self.neighbours);
        let mut mesh = self.first_mesh();
        for step in 1..=self.steps {
            let active = mesh.active().len();
            for _ in 0..self.stages {
                (0..3).try_for_each(|axis| self.launch(host, "exchange", active, |cta| self.exchange(cta, axis)))?;
                self.launch(host, "stencil", active, |cta| self.stencil(cta))?;
            }
            if step.is_multiple_of(self.period) {
                self.adapt(host, &mut mesh, step)?;
            }
        }
        host.copy_to_host(self.cells);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        for variable in 0..self.variables {
            let mesh = self.first_mesh();
            let cells = 0..self.inner().count();
            let first = |slot| cells.clone().map(|cell| self.start(self.storage_index(slot, variable, cell))).collect();
            let values = mesh.active().into_iter().map(|slot| (slot, first(slot))).collect();
            let mut reference = ReferenceMesh { blocks: self, mesh, values };
            for step in 1..=self.steps {
                (0..self.stages).for_each(|_| reference.stage());
                if step.is_multiple_of(self.period) {
                    reference.adapt(step);
                }
            }
            for (slot, expected) in &reference.values {
                let found: Vec<f64> = cells
                    .clone()
                    .map(|cell| memory.read(self.cells, self.storage_index(*slot, variable, cell)))
                    .collect();
                compare_f64(&format!("variable {variable} of slot {slot}: cell"), &found, expected)?;
            }
        }
        Ok(())
    }
}
