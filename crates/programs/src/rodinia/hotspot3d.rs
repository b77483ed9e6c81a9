//! Rodinia hotspot3D: the temperatures in a chip stack, with a step per launch.
//!
//! A thread handles one column in the stack and walks through its layers. It keeps the temperatures above and below in
//! registers, and loads its four neighbours' temperatures, layer by layer. Steps alternate between two arrays.

use crate::prelude::*;

/// Threads per CTA along columns. Source: Rodinia 3.1 hotspot3D, opt1.cu (`block_dim`).
const WIDE: i32 = 64;
/// Threads per CTA along rows. Source: Rodinia 3.1 hotspot3D, opt1.cu (`block_dim`).
const HIGH: i32 = 4;
/// Temperature around the stack, °C. Source: Rodinia 3.1 hotspot3D (`amb_temp`).
const AMBIENT: f32 = 80.0;
/// Side of the stack, m. Source: Rodinia 3.1 hotspot3D (`chip_height`, `chip_width`).
const CHIP: f32 = 0.016;
/// Thickness of the stack, m. Source: Rodinia 3.1 hotspot3D (`t_chip`).
const THICKNESS: f32 = 0.0005;
/// Largest power density, W/m². Source: Rodinia 3.1 hotspot3D (`MAX_PD`).
const POWER_DENSITY: f32 = 3.0e6;
/// Precision per step, K. Source: Rodinia 3.1 hotspot3D (`PRECISION`).
const PRECISION: f32 = 0.001;
/// Largest temperature rise per step from a cell's own power, K. Source: assumed, like in hotspot: large enough for the
/// check to detect a wrong cell's power.
const HEATING: f32 = 1.0;
/// Heat capacity of silicon, J/(m³ K). Source: Rodinia 3.1 hotspot3D (`SPEC_HEAT_SI`).
const HEAT: f32 = 1.75e6;
/// Conductivity of silicon, W/(m K). Source: Rodinia 3.1 hotspot3D (`K_SI`).
const CONDUCTIVITY: f32 = 100.0;
/// Fitting factor for the capacity. Source: Rodinia 3.1 hotspot3D (`FACTOR_CHIP`).
const FACTOR: f32 = 0.5;

program! {
    /// heat flow in a stack of chips: a seven-point stencil, a launch a step, two arrays in turn
    pub(crate) static HOTSPOT3D = "hotspot3d",
        "Rodinia 3.1 hotspot3D (yuhc/gpu-rodinia, cuda/hotspot3D/opt1.cu); CPElide, Table II";
    properties: data_independent;
    parameters {
        /// columns of a layer, at scale 1; scales
        columns: count(1..=1 << 15) = 512, "CPElide, Table II: 512 8 20";
        /// rows of a layer, whose number is the grain of the stack; does not scale, because modules share rows
        rows: count(1..=1024) = 512,
            "CPElide, Table II, as columns: layers are square; with more rows, a step would be too long";
        /// layers
        layers: count(2..=1024) = 8, "CPElide, Table II: 512 8 20";
        /// steps, each a launch
        steps: count(1..=100_000) = 20,
            "CPElide, Table II: 512 8 20; hal-uw/gem5-bmks-micro24, rodinia/all_cmd runs 100";
    }
    lay_out(name, request, memory) {
        let [rows, layers, steps] = ["rows", "layers", "steps"].map(|name| request.values.count(name));
        let columns = request.scale.of(columns);
        let cells = columns * rows * layers;
        check_indices(name, cells, "cells")?;
    }
    struct Stack {
        /// Power per cell, `[layer][row][column]`, like the other arrays.
        power: Array<f32>[cells],
        temperatures: [Array<f32>; 2]["temperature0", "temperature1"; cells],
        columns, rows, layers, steps: i32,
        seed: u64 = request.seed,
    }
}

/// Stencil weights: factors for the neighbours' temperatures, and for the cell's own.
#[derive(Clone, Copy)]
struct StencilWeights {
    /// Step over capacity, K/W.
    heating: f32,
    beside: f32,
    along: f32,
    upright: f32,
    own: f32,
}

impl StencilWeights {
    /// Computes the weights for square cells, `rows` along the stack.
    fn new(rows: i32, layers: i32) -> StencilWeights {
        let (side, height) = (CHIP / rows as f32, THICKNESS / layers as f32);
        let capacity = FACTOR * HEAT * THICKNESS * side * side;
        let step = PRECISION / (POWER_DENSITY / (FACTOR * THICKNESS * HEAT));
        let heating = step / capacity;
        let sideways = heating * 2.0 * CONDUCTIVITY * THICKNESS;
        let upright = heating * CONDUCTIVITY * side * side / height;
        let own = 1.0 - (4.0 * sideways + 3.0 * upright);
        StencilWeights { heating, beside: sideways, along: sideways, upright, own }
    }

    /// Next temperature. The array holds own temperature, power, then west, east, south, north, below and above.
    fn next(self, [own, power, west, east, south, north, below, above]: [f32; 8]) -> f32 {
        self.own * own
            + self.beside * west
            + self.beside * east
            + self.along * south
            + self.along * north
            + self.upright * below
            + self.upright * above
            + self.heating * power
            + self.upright * AMBIENT
    }
}

impl Stack {
    /// Runs one step.
    fn step(&self, cta: &mut Cta<'_>, shares: StencilWeights, from: Array<f32>, to: Array<f32>) {
        let across = (self.columns as u32).div_ceil(WIDE as u32);
        let [left, top] = [(cta.index() % across) as i32 * WIDE, (cta.index() / across) as i32 * HIGH];
        cta.each_warp(|warp| {
            let thread = warp.thread();
            let [x, y] = warp.compute(ComputeClass::Int, 6, [thread % WIDE + left, thread / WIDE + top]);
            // Rodinia's grids are whole CTAs, without this condition.
            warp.when(x.lt(self.columns) & y.lt(self.rows), |warp| self.column(warp, [x, y], shares, from, to));
        });
    }

    /// Processes a thread's cell column.
    fn column(
        &self,
        warp: &mut Warp<'_>,
        [x, y]: [Lanes<i32>; 2],
        shares: StencilWeights,
        from: Array<f32>,
        to: Array<f32>,
    ) {
        let layer = self.columns * self.rows;
        // Beyond the border, a cell is its own neighbour.
        let [west, east] = [(x - 1).max(Lanes::all(0)), (x + 1).min(Lanes::all(self.columns - 1))];
        let [north, south] = [(y - 1).max(Lanes::all(0)), (y + 1).min(Lanes::all(self.rows - 1))];
        let place = |x: Lanes<i32>, y: Lanes<i32>| y * self.columns + x;
        let places = [place(x, y), place(west, y), place(east, y), place(x, south), place(x, north)];
        let [own, beside @ ..] = warp.compute(ComputeClass::Int, 14 + 5 * ADDRESS, places);
        let mut middle = warp.load(from, own);
        let mut below = middle;
        for level in 0..self.layers {
            let base = level * layer;
            let above = if level + 1 < self.layers { warp.load(from, own + (base + layer)) } else { middle };
            let [west, east, south, north] = beside.map(|at| warp.load(from, at + base));
            let power = warp.load(self.power, own + base);
            let operands = [middle, power, west, east, south, north, below, above];
            let [next] = warp.calculate(ComputeClass::Fp32, 9, operands, |operands| [shares.next(operands)]);
            // Addresses for the next layer.
            let at = warp.compute(ComputeClass::Int, 5, own + base);
            warp.store(to, at, next);
            (below, middle) = (middle, above);
        }
    }

    fn start(&self, index: u64) -> f32 {
        330.0 + 10.0 * noise::unit(self.seed, index)
    }

    /// Power for a cell, which causes a rise up to [`HEATING`] per step.
    fn watts(&self, index: u64) -> f32 {
        let side = CHIP / self.rows as f32;
        (1.0 + noise::unit(!self.seed, index)) / 2.0 * (HEATING / PRECISION) * POWER_DENSITY * side * side
    }

    /// Temperatures after all steps, from resistances and in double precision, independent of the kernel's code.
    fn reference(&self) -> Vec<f64> {
        let [factor, heat, thickness, conductivity, ambient] =
            [FACTOR, HEAT, THICKNESS, CONDUCTIVITY, AMBIENT].map(f64::from);
        let side = f64::from(CHIP) / f64::from(self.rows);
        let capacity = factor * heat * thickness * side * side;
        let sideways = side / (2.0 * conductivity * thickness * side);
        let upwards = thickness / f64::from(self.layers) / (conductivity * side * side);
        let step = f64::from(PRECISION) / (f64::from(POWER_DENSITY) / (factor * thickness * heat));
        let [columns, rows, layers] = [self.columns, self.rows, self.layers].map(|count| count as usize);
        let mut before: Vec<f64> = (0..self.power.len()).map(|index| f64::from(self.start(index))).collect();
        for _ in 0..self.steps {
            let next = |at: usize| {
                let (x, y, z) = (at % columns, at / columns % rows, at / columns / rows);
                let own = before[at];
                // A neighbour beyond the border has the cell's own temperature.
                let flow = |there: bool, other: usize, resistance: f64| {
                    if there { (before[other] - own) / resistance } else { 0.0 }
                };
                let layer = columns * rows;
                let flows = flow(x > 0, at.wrapping_sub(1), sideways)
                    + flow(x + 1 < columns, at + 1, sideways)
                    + flow(y > 0, at.wrapping_sub(columns), sideways)
                    + flow(y + 1 < rows, at + columns, sideways)
                    + flow(z > 0, at.wrapping_sub(layer), upwards)
                    + flow(z + 1 < layers, at + layer, upwards)
                    + (ambient - own) / upwards;
                own + step / capacity * (f64::from(self.watts(at as u64)) + flows)
            };
            before = (0..before.len()).map(next).collect();
        }
        before
    }
}

impl Instance for Stack {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.temperatures[0], |index| self.start(index));
        memory.fill(self.power, |index| self.watts(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.temperatures[0]);
        host.copy_to_device(self.power);
        let shares = StencilWeights::new(self.rows, self.layers);
        let parts = |cells: i32, each: i32| (cells as u64).div_ceil(each as u64);
        let ctas = parts(self.columns, WIDE) * parts(self.rows, HIGH);
        let [mut from, mut to] = self.temperatures;
        for _ in 0..self.steps {
            host.launch(Grid::new("hotspot3d", ctas, (WIDE * HIGH) as u32), |cta| self.step(cta, shares, from, to))?;
            std::mem::swap(&mut from, &mut to);
        }
        // Rodinia copies the other array, written by the last step but one.
        host.copy_to_host(from);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let expected = self.reference().into_iter().map(|temperature| temperature as f32);
        compare("temperature", memory.to_vec(self.temperatures[self.steps as usize % 2]), expected, 1e-5)
    }
}
