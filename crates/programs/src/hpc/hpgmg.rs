//! HPGMG-FV: finite-volume geometric multigrid, in the version that NVIDIA's CUDA port runs on one GPU.
//!
//! A level is cut into boxes. Each box has a layer with ghost cells around it in memory. One kernel copies ghost cells
//! from neighbouring boxes, and another sets them at the domain's border, ahead of every half sweep, residual and
//! interpolation. Full multigrid starts on the coarsest level, and runs a V-cycle on each finer one. The host computes
//! levels with few cells.
//!
//! Not modelled: the kernels that set up coefficients on coarse levels; the lists from which CTAs read their tiles, and
//! the colour table, because both follow from indices; the bottom solver's iterations.

mod host_solver;
mod kernels;
mod level;

use crate::prelude::*;
use host_solver::{HostSolver, coefficient, inverse};
use kernels::Ghosts;
use level::{GridLevel, Reach};

/// Divisor for all box sides, in cells, so that at least two levels exist.
const MULTIPLE: u64 = 4;
/// Number of vectors touched by a solve.
const TOUCHED: u64 = 8;
/// Names for a level's other vectors, in this order. Source: hpgmg-cuda, `defines.h`.
const OTHERS: [&str; 4] = ["alpha", "l1_inverse", "exact", "valid"];

program! {
    // The number of levels below the finest, and hence the number of launches, grows with the logarithm of the side.
    /// geometric multigrid: boxes exchange ghost cells ahead of each stencil, on large levels and on tiny ones
    pub(crate) static HPGMG = "hpgmg",
        "HPGMG-FV (Adams et al., LBNL-6630E), second order, with the kernels of NVIDIA's hpgmg-cuda; HMG Table III \
        (HPC_HPGMG); NUMA-GPU, Table 2 (HPC-HPGMG, -UVM)";
    properties: nonlinear, data_independent;
    parameters {
        /// cells of a box along x, at scale 1; z, y and x are halved in turn until their product is scaled
        x: count(4..=512) = 128, "HPGMG-FV, `log2_box_dim` 7; eight such boxes reach the footprints of the papers";
        /// cells of a box along y, at scale 1; scales as x
        y: count(4..=512) = 128, "HPGMG-FV, boxes are cubes";
        /// cells of a box along z, at scale 1; scales as x
        z: count(4..=512) = 128, "HPGMG-FV, boxes are cubes";
        /// boxes along each axis
        boxes: count(1..=8) = 2, "HPGMG-FV, `target_boxes_per_rank` 8, as its example jobs have";
        /// doubles that a row of a box is padded to a multiple of
        align: one_of(4, 32) = 4, "`BOX_ALIGN_JSTRIDE`: 4 in HPGMG-FV, 32 in hpgmg-cuda with unified memory";
        /// vectors of a level: eight that a solve touches, and others of the set-up
        vectors: count(8..=12) = 8,
            "`VECTORS_RESERVED`: 10 in HPGMG-FV, 12 in hpgmg-cuda; eight reach the 1.32 GB of HMG Table III";
        /// red-black sweeps before and after each correction
        smooths: count(1..=100) = 3, "HPGMG-FV, Gauss-Seidel (`NUM_SMOOTHS`), the default smoother";
        /// a solve: full multigrid, or one V-cycle
        cycle: choice("F", "V") = "F", "HPGMG-FV, `--fv-cycle` (F)";
        /// solves, each from zero
        solves: count(1..=1000) = 1, "assumed: all are alike";
        /// cells of a level that the host still computes, at scale 1
        host: count(1..=1 << 30) = 10_000, "hpgmg-cuda, `build.sh` (`HOST_LEVEL_SIZE_THRESHOLD`)";
    }
    lay_out: lay_out;
}

arrays! {
    lay_out(memory, name: &'static str, request: &mut Request) {
        let sides = ["x", "y", "z"].map(|name| request.fit_multiple(name, request.values.count(name), MULTIPLE));
        let wanted = request.scale.of(sides.iter().product());
        let sides = scaled(sides, wanted);
        let rule = "sides are halved or doubled, in multiples of 4";
        request.fit("z", wanted.div_ceil(sides[0] * sides[1]), sides[2], rule);
        let count = |name| request.values.count(name);
        let (boxes, align) = (count("boxes"), request.values.text("align") == "32");
        let align = if align { 32 } else { 4 };
        let padded = [sides[0].next_multiple_of(align) + align, sides[1] + 2, sides[2] + 3];
        check_indices(name, padded.iter().product::<u64>() * boxes.pow(3) * 2, "elements of a vector")?;
        let threshold = request.scale.of(count("host"));
        let levels = GridLevel::all(sides.map(|side| side as i32), boxes as i32, align as i32, threshold as i32);
        require(name, levels.len() > 1, || "a level of boxes that cannot be halved".to_owned())?;
        let elements = levels.last().map_or(0, |level| level.end() as u64);
    }
    /// Vectors for all levels, the finest first; the last level is computed by the host.
    struct Multigrid {
        /// Solution, and the temporary vector for half sweeps and residuals.
        u: [Array<f64>; 2]["u", "temporary"; elements],
        /// Right-hand side on the finest level.
        rhs: Array<f64>[elements],
        /// Right-hand side for a cycle.
        remainder: Array<f64>[elements],
        /// Coefficient at the face below each cell along each axis.
        beta: [Array<f64>; 3]["beta_x", "beta_y", "beta_z"; elements],
        /// Inverse diagonal for the operator.
        inverse: Array<f64>[elements],
        /// Largest magnitude, in the bit pattern for a double.
        norm: Array<u64>[1, fixed],
        /// Ghost-cell lists per level, indexed by reach.
        ghosts: Vec<[Ghosts; 2]> =
            levels.iter().map(|level| [Reach::Faces, Reach::Box].map(|reach| Ghosts::new(level, reach))).collect(),
        levels: Vec<GridLevel>,
        smooths: u64 = count("smooths"),
        full: bool = request.values.text("cycle") == "F",
        solves: u64 = count("solves"),
        seed: u64 = request.seed,
    }
}

/// Box sides at the scale: z, y and x in turn are halved, or doubled, until their product is nearest to `wanted`.
fn scaled(sides: [u64; 3], wanted: u64) -> [u64; 3] {
    let mut scaled = sides;
    for step in 0.. {
        let [cells, axis] = [scaled.iter().product::<u64>(), 2 - step % 3].map(u128::from);
        let side = &mut scaled[axis as usize];
        let square = u128::from(wanted) * u128::from(wanted);
        if cells * cells > 2 * square && step < 64 {
            *side = (*side / 2).next_multiple_of(MULTIPLE);
        } else if 2 * cells * cells < square {
            *side *= 2;
        } else {
            break;
        }
    }
    scaled
}

fn lay_out(name: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let grids = Multigrid::lay_out(memory, name, request)?;
    for name in OTHERS.iter().take((request.values.count("vectors") - TOUCHED) as usize) {
        memory.array::<f64>(name, grids.rhs.len(), Scaling::Scales);
    }
    Ok(Box::new(grids))
}

type RecordResult = Result<(), RecordError>;

impl Multigrid {
    /// Index for the level computed by the host.
    fn last(&self) -> usize {
        self.levels.len() - 1
    }

    fn smooth(&self, host: &mut Host<'_>, depth: usize) -> RecordResult {
        let [u, temporary] = self.u;
        (0..2 * self.smooths as i32).try_for_each(|half| {
            let [from, to] = if half % 2 == 0 { [u, temporary] } else { [temporary, u] };
            self.fill_ghosts(host, depth, Reach::Faces, from)?;
            self.half_sweep(host, depth, half, [from, to])
        })
    }

    fn residual(&self, host: &mut Host<'_>, depth: usize, rhs: Array<f64>) -> RecordResult {
        self.fill_ghosts(host, depth, Reach::Faces, self.u[0])?;
        self.find_residual(host, depth, rhs)
    }

    /// Adds the coarser level's correction to a level. `kept` scales the old solution; with 0 the level starts anew.
    fn correct(&self, host: &mut Host<'_>, depth: usize, kept: f64) -> RecordResult {
        if depth + 1 < self.last() {
            self.fill_ghosts(host, depth + 1, Reach::Box, self.u[0])?;
        }
        self.interpolate(host, depth, kept)
    }

    /// Runs a V-cycle from level `depth` down.
    fn cycle(&self, host: &mut Host<'_>, depth: usize) -> RecordResult {
        if depth == self.last() {
            self.solve_on_host(host, |plain| plain.cycle(0));
            return Ok(());
        }
        self.smooth(host, depth)?;
        self.residual(host, depth, self.remainder)?;
        self.restrict(host, depth, self.u[1])?;
        if depth + 1 < self.last() {
            self.clear(host, depth + 1, self.u[0])?;
        }
        self.cycle(host, depth + 1)?;
        self.correct(host, depth, 1.0)?;
        self.smooth(host, depth)
    }

    fn solve(&self, host: &mut Host<'_>) -> RecordResult {
        self.clear(host, 0, self.u[0])?;
        self.find_norm(host, self.rhs)?;
        self.copy_rhs(host)?;
        if self.full {
            (0..self.last()).try_for_each(|depth| self.restrict(host, depth, self.remainder))?;
            self.solve_on_host(host, HostSolver::full);
            for depth in (0..self.last()).rev() {
                self.correct(host, depth, 0.0)?;
                self.cycle(host, depth)?;
            }
        } else {
            self.cycle(host, 0)?;
        }
        self.residual(host, 0, self.rhs)?;
        self.find_norm(host, self.u[1])
    }

    /// Solves the last level on the host: reads the right-hand side, and leaves the solution with its ghost cells.
    fn solve_on_host(&self, host: &mut Host<'_>, solve: impl Fn(&mut HostSolver)) {
        let (level, memory) = (self.levels[self.last()], host.memory());
        let mut plain = HostSolver::new(level.cells(), level.scale, self.smooths);
        let elements = level.elements();
        let rhs: Vec<f64> = elements.clone().map(|index| memory.read(self.remainder, index)).collect();
        plain.set_rhs(|place| {
            let (block, place) = level.owner(place);
            rhs[level.index(block, place) as usize - elements.start as usize]
        });
        solve(&mut plain);
        memory.fill_part(self.u[0], elements, |index| {
            let cell = level.cell(index as i32);
            cell.map_or(0.0, |(block, place)| plain.at(add(level.low(block), place)))
        });
    }

    fn start(&self, place: [i32; 3]) -> f64 {
        f64::from(noise::unit(self.seed, self.levels[0].cells().index(place) as u64))
    }

    /// Sets a vector on every level to `value(level, place in the level, true for a box's own cell)`.
    fn fill_levels(&self, memory: &Memory, vector: Array<f64>, value: impl Fn(&GridLevel, [i32; 3], bool) -> f64) {
        for level in &self.levels {
            memory.fill_part(vector, level.elements(), |index| {
                let cell = level.cell(index as i32);
                cell.map_or(0.0, |(block, place)| value(level, add(level.low(block), place), level.is_own_cell(place)))
            });
        }
    }

    /// Solution on the finest level, in cell order.
    fn solution(&self, memory: &Memory) -> Vec<f64> {
        let (level, u) = (&self.levels[0], memory.to_vec(self.u[0]));
        let cells = level.cells();
        let at = |index| {
            let (block, place) = level.owner(cells.coordinates(index));
            u[level.index(block, place) as usize]
        };
        (0..cells.count()).map(at).collect()
    }
}

fn add(a: [i32; 3], b: [i32; 3]) -> [i32; 3] {
    [0, 1, 2].map(|axis| a[axis] + b[axis])
}

impl Instance for Multigrid {
    fn fill(&self, memory: &Memory) {
        let level = self.levels[0];
        memory.fill_part(self.rhs, level.elements(), |index| {
            let cell = level.cell(index as i32).filter(|(_, place)| level.is_own_cell(*place));
            cell.map_or(0.0, |(block, place)| self.start(add(level.low(block), place)))
        });
        for (axis, beta) in self.beta.into_iter().enumerate() {
            self.fill_levels(memory, beta, |level, place, _| coefficient(level.cells(), place, axis));
        }
        self.fill_levels(
            memory,
            self.inverse,
            |level, place, own| {
                if own { inverse(level.cells(), place, level.scale) } else { 0.0 }
            },
        );
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        for vector in [self.rhs, self.inverse].into_iter().chain(self.beta) {
            host.copy_to_device(vector);
        }
        (0..self.solves).try_for_each(|_| self.solve(host))?;
        host.copy_first_to_host(self.u[0], self.levels[0].elements().end);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let finest = self.levels[0];
        let mut plain = HostSolver::new(finest.cells(), finest.scale, self.smooths);
        plain.set_rhs(|place| self.start(place));
        if self.full {
            plain.full()
        } else {
            plain.cycle(0)
        }
        compare_f64("solution", &self.solution(memory), plain.solution())?;
        let norm = f64::from_bits(memory.read(self.norm, 0));
        compare_f64("norm", &[norm], &[plain.norm()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_halved_and_doubled_axis_by_axis() {
        let cube = 1 << 21;
        assert_eq!(scaled([128; 3], cube), [128; 3]);
        assert_eq!(scaled([128; 3], cube / 16), [64, 64, 32]);
        assert_eq!(scaled([128; 3], cube / 32), [64, 32, 32]);
        // A quarter is nearer to a third than a half is.
        assert_eq!(scaled([128; 3], cube / 3), [128, 64, 64]);
        assert_eq!(scaled([128; 3], cube * 4), [128, 256, 256]);
        assert_eq!(scaled([4; 3], 1), [4; 3]);
    }
}
