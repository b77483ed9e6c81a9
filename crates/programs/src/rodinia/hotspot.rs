//! Rodinia hotspot: the temperatures on a chip, with several steps per launch.
//!
//! A CTA loads a grid tile, advances it in the scratchpad by as many steps as the pyramid is high, and writes the cells
//! that remain valid: one row and column fewer on each side for each step.

use crate::prelude::*;

/// Sides of a CTA's tile, in cells and in threads. Source: Rodinia 3.1 hotspot has 16 unless built with `RD_WG_SIZE`;
/// 32 reconciles the 7396 CTAs (86 × 86 tiles) in NUMA-GPU, Table 2 with its 64 MB.
const SIDE: i32 = 32;
/// Temperature around the chip, °C. Source: Rodinia 3.1 hotspot (`amb_temp`).
const AMBIENT: f32 = 80.0;
/// Side of the chip, m. Source: Rodinia 3.1 hotspot (`chip_height`, `chip_width`).
const CHIP: f32 = 0.016;
/// Thickness of the chip, m. Source: Rodinia 3.1 hotspot (`t_chip`).
const THICKNESS: f32 = 0.0005;
/// Largest power density, W/m². Source: Rodinia 3.1 hotspot (`MAX_PD`).
const POWER_DENSITY: f32 = 3.0e6;
/// Precision per step, K. Source: Rodinia 3.1 hotspot (`PRECISION`).
const PRECISION: f32 = 0.001;
/// Largest temperature rise per step from a cell's own power, K. Source: assumed, a thousand times the [`PRECISION`]
/// that results from the [`POWER_DENSITY`]: large enough for the check to detect a wrong cell's power.
const HEATING: f32 = 1.0;
/// Heat capacity of silicon, J/(m³ K). Source: Rodinia 3.1 hotspot (`SPEC_HEAT_SI`).
const HEAT: f32 = 1.75e6;
/// Conductivity of silicon, W/(m K). Source: Rodinia 3.1 hotspot (`K_SI`).
const CONDUCTIVITY: f32 = 100.0;
/// Fitting factor for the capacity. Source: Rodinia 3.1 hotspot (`FACTOR_CHIP`).
const FACTOR: f32 = 0.5;

program! {
    /// heat flow in a chip: a five-point stencil, some steps a launch in the scratchpad
    pub(crate) static HOTSPOT = "hotspot", "Rodinia 3.1 hotspot; NUMA-GPU, Table 2 (Rodinia-Hotspot)";
    properties: data_independent;
    parameters {
        /// columns of the grid, at scale 1; scales
        columns: count(2..=1 << 15) = 2384, "NUMA-GPU, Table 2: 64 MB in three arrays of 4-byte floats";
        /// rows of the grid; does not scale, because modules share rows
        rows: count(2..=1 << 15) = 2384, "NUMA-GPU, Table 2, as columns: Rodinia's grids are square";
        /// steps a launch
        pyramid: count(1..=15) = 2, "Rodinia 3.1 hotspot (`run`: 512 2 2)";
        /// steps
        steps: count(1..=100_000) = 8, "assumed: four launches, all alike; Rodinia 3.1 hotspot runs 2";
    }
    lay_out(name, request, memory) {
        let columns = request.scale.of(columns);
        check_indices(name, columns * rows, "cells")?;
        require(name, columns > 1, || "a grid of one column has no neighbours".to_owned())?;
    }
    struct Chip {
        power: Array<f32>[columns * rows],
        temperatures: [Array<f32>; 2]["temperature0", "temperature1"; columns * rows],
        columns, rows, pyramid, steps: i32,
        seed: u64 = request.seed,
    }
}

/// Coupling between a cell and its neighbours: inverse resistances, and the step over the capacity.
#[derive(Clone, Copy)]
struct Physics {
    step: f32,
    across: f32,
    down: f32,
    out: f32,
}

impl Physics {
    /// Computes the coefficients for square cells, `rows` along the chip.
    fn new(rows: i32) -> Physics {
        let side = CHIP / rows as f32;
        let capacity = FACTOR * HEAT * THICKNESS * side * side;
        let sideways = 1.0 / (2.0 * CONDUCTIVITY * THICKNESS);
        let slope = POWER_DENSITY / (FACTOR * THICKNESS * HEAT);
        let step = PRECISION / slope / capacity;
        Physics { step, across: 1.0 / sideways, down: 1.0 / sideways, out: CONDUCTIVITY * side * side / THICKNESS }
    }

    /// Next temperature for a cell between neighbours to the north, south, west and east.
    fn next(self, own: f32, power: f32, [north, south, west, east]: [f32; 4]) -> f32 {
        let flow = power
            + (south + north - 2.0 * own) * self.down
            + (east + west - 2.0 * own) * self.across
            + (AMBIENT - own) * self.out;
        own + self.step * flow
    }
}

/// Parameters for one launch.
struct StepLaunch<'a> {
    chip: &'a Chip,
    from: Array<f32>,
    to: Array<f32>,
    steps: i32,
    physics: Physics,
}

impl StepLaunch<'_> {
    /// Number of rows and columns written by a CTA.
    fn owned(&self) -> i32 {
        SIDE - 2 * self.steps
    }

    /// Corner of the tile; it may lie outside the grid.
    fn corner(&self, cta: u32) -> [i32; 2] {
        let across = (self.chip.columns as u32).div_ceil(self.owned() as u32);
        [cta % across, cta / across].map(|tile| tile as i32 * self.owned() - self.steps)
    }

    /// True for cells at least `margin` inside the tile's edge that belong to the grid.
    fn inside(&self, [x, y]: [Lanes<i32>; 2], [left, top]: [i32; 2], margin: i32) -> Lanes<bool> {
        let (right, bottom) = ((self.chip.columns - 1 - left).min(SIDE - 1), (self.chip.rows - 1 - top).min(SIDE - 1));
        let [low_x, low_y] = [left, top].map(|edge| (-edge).max(margin));
        let (high_x, high_y) = (right.min(SIDE - 1 - margin), bottom.min(SIDE - 1 - margin));
        x.ge(low_x) & x.le(high_x) & y.ge(low_y) & y.le(high_y)
    }

    fn kernel(&self, cta: &mut Cta<'_>) {
        let corner @ [left, top] = self.corner(cta.index());
        let cells = (SIDE * SIDE) as usize;
        let [mut before, mut after, mut power] = std::array::from_fn(|_| cta.shared::<f32>(cells));
        cta.each_warp(|warp| {
            let place @ [x, y] = place(warp);
            warp.when(self.inside(place, corner, 0), |warp| {
                let at = (y + top) * self.chip.columns + x + left;
                let at = warp.compute(ComputeClass::Int, 3 + ADDRESS, at);
                let temperature = warp.load(self.from, at);
                let watts = warp.load(self.chip.power, at);
                warp.store_shared(&mut before, warp.thread(), temperature);
                warp.store_shared(&mut power, warp.thread(), watts);
            });
        });
        cta.barrier();
        for step in 0..self.steps {
            self.advance(cta, corner, step, &power, &before, &mut after);
            cta.barrier();
            if step + 1 < self.steps {
                cta.each_warp(|warp| {
                    let place = place(warp);
                    warp.when(self.inside(place, corner, step + 1), |warp| {
                        let temperature = warp.load_shared(&after, warp.thread());
                        warp.store_shared(&mut before, warp.thread(), temperature);
                    });
                });
                cta.barrier();
            }
        }
        cta.each_warp(|warp| {
            let place @ [x, y] = place(warp);
            warp.when(self.inside(place, corner, self.steps), |warp| {
                let temperature = warp.load_shared(&after, warp.thread());
                let at = (y + top) * self.chip.columns + x + left;
                let at = warp.compute(ComputeClass::Int, ADDRESS, at);
                warp.store(self.to, at, temperature);
            });
        });
    }

    fn advance(
        &self,
        cta: &mut Cta<'_>,
        corner: [i32; 2],
        step: i32,
        power: &Shared<f32>,
        before: &Shared<f32>,
        after: &mut Shared<f32>,
    ) {
        let edge = [-corner[0], -corner[1], self.chip.columns - 1 - corner[0], self.chip.rows - 1 - corner[1]];
        cta.each_warp(|warp| {
            let place @ [x, y] = place(warp);
            warp.when(self.inside(place, corner, step + 1), |warp| {
                // Beyond the grid's border, a cell is its own neighbour.
                let [north, south] = [(y - 1).max(Lanes::all(edge[1])), (y + 1).min(Lanes::all(edge[3]))];
                let [west, east] = [(x - 1).max(Lanes::all(edge[0])), (x + 1).min(Lanes::all(edge[2]))];
                let around = [north * SIDE + x, south * SIDE + x, y * SIDE + west, y * SIDE + east];
                let around = warp.compute(ComputeClass::Int, 8, around).map(|at| warp.load_shared(before, at));
                let (own, watts) = (warp.load_shared(before, warp.thread()), warp.load_shared(power, warp.thread()));
                let [north, south, west, east] = around;
                let operands = [own, watts, north, south, west, east];
                let [next] = warp.calculate(ComputeClass::Fp32, 12, operands, |[own, watts, around @ ..]| {
                    [self.physics.next(own, watts, around)]
                });
                warp.store_shared(after, warp.thread(), next);
            });
        });
    }
}

/// Column and row for each lane's thread in the tile.
fn place(warp: &mut Warp<'_>) -> [Lanes<i32>; 2] {
    let thread = warp.thread();
    warp.compute(ComputeClass::Int, 4, [thread % SIDE, thread / SIDE])
}

impl Chip {
    fn start(&self, index: u64) -> f32 {
        330.0 + 10.0 * noise::unit(self.seed, index)
    }

    /// Power for a cell, which causes a rise up to [`HEATING`] per step.
    fn watts(&self, index: u64) -> f32 {
        let side = CHIP / self.rows as f32;
        (1.0 + noise::unit(!self.seed, index)) / 2.0 * (HEATING / PRECISION) * POWER_DENSITY * side * side
    }
}

impl Instance for Chip {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.temperatures[0], |index| self.start(index));
        memory.fill(self.power, |index| self.watts(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.power);
        host.copy_to_device(self.temperatures[0]);
        let [mut from, mut to] = self.temperatures;
        let physics = Physics::new(self.rows);
        for start in (0..self.steps).step_by(self.pyramid as usize) {
            let steps = self.pyramid.min(self.steps - start);
            let burst = StepLaunch { chip: self, from, to, steps, physics };
            let tiles = |cells: i32| (cells as u64).div_ceil(burst.owned() as u64);
            let threads = (SIDE * SIDE) as u32;
            let grid = Grid::new("hotspot", tiles(self.columns) * tiles(self.rows), threads).shared_bytes(12 * threads);
            host.launch(grid, |cta| burst.kernel(cta))?;
            std::mem::swap(&mut from, &mut to);
        }
        host.copy_to_host(from);
        Ok(())
    }

    /// Advances all cells by the differential equation, with resistances and in double precision, independent of the
    /// kernel's code.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (columns, rows) = (self.columns as usize, self.rows as usize);
        let [factor, heat, thickness, conductivity, ambient] =
            [FACTOR, HEAT, THICKNESS, CONDUCTIVITY, AMBIENT].map(f64::from);
        let side = f64::from(CHIP) / rows as f64;
        let capacity = factor * heat * thickness * side * side;
        let sideways = side / (2.0 * conductivity * thickness * side);
        let upwards = thickness / (conductivity * side * side);
        let step = f64::from(PRECISION) / (f64::from(POWER_DENSITY) / (factor * thickness * heat));
        let mut before: Vec<f64> = (0..self.power.len()).map(|index| f64::from(self.start(index))).collect();
        for _ in 0..self.steps {
            let next = |at: usize| {
                let (x, y, own) = (at % columns, at / columns, before[at]);
                let beside = [at - x + x.saturating_sub(1), at - x + (x + 1).min(columns - 1)];
                let along = [y.saturating_sub(1) * columns + x, (y + 1).min(rows - 1) * columns + x];
                let flows = beside.into_iter().chain(along).map(|other| (before[other] - own) / sideways).sum::<f64>();
                let power = f64::from(self.watts(at as u64)) + flows + (ambient - own) / upwards;
                own + step / capacity * power
            };
            before = (0..before.len()).map(next).collect();
        }
        let launches = (self.steps as u32).div_ceil(self.pyramid as u32);
        let expected = before.into_iter().map(|temperature| temperature as f32);
        compare("temperature", memory.to_vec(self.temperatures[launches as usize % 2]), expected, 1e-5)
    }
}
