//! Rodinia backprop: one training step for a perceptron with a wide input layer, a hidden layer and one output.
//!
//! `layer-forward` weighs the inputs from sixteen input units for each hidden unit, sums them in the scratchpad by a
//! tree and writes the sum. The host adds the sums from all CTAs, and computes the output and the errors.
//! `adjust-weights` moves every weight against its error. Like in the source, the first kernel writes its sums over the
//! weights, and the host then sends the weights again.
//!
//! Rodinia's CTA covers its sixteen hidden units at once; wider layers are covered in groups with sixteen units.

use crate::prelude::*;

/// Input units per CTA, and hidden units per group. Source: Rodinia 3.1 backprop (`BLOCK_SIZE`, `WIDTH`).
const SIDE: i32 = 16;
/// Learning rate. Source: Rodinia 3.1 backprop (`ETA`).
const ETA: f32 = 0.3;
/// Momentum: the fraction of the last change that is repeated. Source: Rodinia 3.1 backprop (`MOMENTUM`).
const MOMENTUM: f32 = 0.3;
/// Training target for the output unit. Source: Rodinia 3.1 backprop (`load`).
const TARGET: f32 = 0.1;

program! {
    /// training step of a perceptron: a weight matrix read, summed by tiles, and updated
    pub(crate) static BACKPROP = "backprop", "Rodinia 3.1 backprop; NUMA-GPU, Table 2 (Rodinia-Backprop)";
    properties: data_independent;
    parameters {
        /// input units, at scale 1; scales, to whole multiples of 16
        inputs: count(16..=1 << 26) = 65_536, "Rodinia 3.1 backprop (`run`: 65536); the 4096 CTAs of NUMA-GPU, Table 2";
        /// hidden units, a multiple of 16
        hidden: count(16..=4096) = 304, "NUMA-GPU, Table 2: 160 MB at 65,536 inputs; Rodinia's 16 take 9 MB";
    }
    lay_out(name, request, memory) {
        let side = SIDE as u64;
        require(name, hidden.is_multiple_of(side), || {
            format!("{hidden} hidden units: a multiple of {side} is needed")
        })?;
        let inputs = request.fit_multiple("inputs", request.scale.of(inputs), side);
        let weights = (inputs + 1) * (hidden + 1);
        check_indices(name, weights, "weights")?;
    }
    struct Perceptron {
        /// Input values, `[unit]`; unit 0 is the bias.
        input: Array<f32>[inputs + 1],
        /// Weights, `[input unit][hidden unit]`, both starting with the bias.
        weights: Array<f32>[weights],
        /// Last change per weight.
        changes: Array<f32>[weights],
        /// Partial sums, `[CTA][hidden unit - 1]`
        sums: Array<f32>[inputs / side * hidden],
        /// Error per hidden unit.
        delta: Array<f32>[hidden + 1, fixed],
        inputs, hidden: i32,
        seed: u64 = request.seed,
    }
}

/// Column and row for each lane's thread in a 16 × 16 CTA.
fn place(warp: &mut Warp<'_>) -> [Lanes<i32>; 2] {
    let thread = warp.thread();
    warp.compute(ComputeClass::Int, 2, [thread % SIDE, thread / SIDE])
}

/// Error of a unit with this output, if `error` is the error reported by its consumers.
fn slope(output: f32, error: f32) -> f32 {
    output * (1.0 - output) * error
}

fn sigmoid(sum: f32) -> f32 {
    1.0 / (1.0 + (-sum).exp())
}

impl Perceptron {
    /// Index for the weight from input unit `row + 1` in the CTA to hidden unit `column + 1` in a group.
    fn weight(&self, warp: &mut Warp<'_>, group: i32, [column, row]: [Lanes<i32>; 2]) -> Lanes<i32> {
        let pitch = self.hidden + 1;
        let first = pitch * SIDE * warp.cta() as i32 + pitch + 1 + group * SIDE;
        warp.compute(ComputeClass::Int, 3 + ADDRESS, row * pitch + column + first)
    }

    fn forward(&self, cta: &mut Cta<'_>) {
        let first = SIDE * cta.index() as i32;
        let mut units = cta.shared::<f32>(SIDE as usize);
        cta.each_warp(|warp| {
            let [column, row] = place(warp);
            warp.when(column.eq(0), |warp| {
                let unit = warp.load(self.input, row + (first + 1));
                warp.store_shared(&mut units, row, unit);
            });
        });
        cta.barrier();
        for group in 0..self.hidden / SIDE {
            self.forward_group(cta, group, &units);
        }
    }

    /// Computes the sums for sixteen hidden units.
    fn forward_group(&self, cta: &mut Cta<'_>, group: i32, units: &Shared<f32>) {
        let mut tile = cta.shared::<f32>((SIDE * SIDE) as usize);
        cta.each_warp(|warp| {
            let place = place(warp);
            let at = self.weight(warp, group, place);
            let unit = warp.load_shared(units, place[1]);
            let product = warp.load(self.weights, at) * unit;
            let product = warp.compute(ComputeClass::Fp32, 1, product);
            warp.store_shared(&mut tile, warp.thread(), product);
        });
        cta.barrier();
        let mut stride = 1;
        while stride < SIDE {
            cta.each_warp(|warp| {
                let [_, row] = place(warp);
                warp.when((row % (2 * stride)).eq(0), |warp| {
                    let thread = warp.thread();
                    let sum = warp.load_shared(&tile, thread) + warp.load_shared(&tile, thread + stride * SIDE);
                    let sum = warp.compute(ComputeClass::Fp32, 1, sum);
                    warp.store_shared(&mut tile, thread, sum);
                });
            });
            cta.barrier();
            stride *= 2;
        }
        cta.each_warp(|warp| {
            let [column, row] = place(warp);
            let at = self.weight(warp, group, [column, row]);
            let sum = warp.load_shared(&tile, warp.thread());
            warp.store(self.weights, at, sum);
            warp.when(column.eq(0), |warp| {
                let sum = warp.load_shared(&tile, row);
                let first = warp.cta() as i32 * self.hidden + group * SIDE;
                let at = warp.compute(ComputeClass::Int, 2 + ADDRESS, row + first);
                warp.store(self.sums, at, sum);
            });
        });
        cta.barrier();
    }

    fn adjust(&self, cta: &mut Cta<'_>) {
        let first = SIDE * cta.index() as i32 + 1;
        for group in 0..self.hidden / SIDE {
            cta.each_warp(|warp| {
                let [column, row] = place(warp);
                let at = self.weight(warp, group, [column, row]);
                let unit = warp.load(self.input, row + first);
                let error = warp.load(self.delta, column + (group * SIDE + 1));
                self.move_weight(warp, at, error * unit);
                if first == 1 {
                    // The bias is an input to only one CTA.
                    warp.when(row.eq(0), |warp| {
                        let hidden = column + (group * SIDE + 1);
                        let error = warp.load(self.delta, hidden);
                        self.move_weight(warp, hidden, error);
                    });
                }
            });
        }
    }

    /// Moves a weight by its error and by a fraction of its last change.
    fn move_weight(&self, warp: &mut Warp<'_>, at: Lanes<i32>, error: Lanes<f32>) {
        let change = error * ETA + warp.load(self.changes, at) * MOMENTUM;
        let change = warp.compute(ComputeClass::Fp32, 4, change);
        let weight = warp.load(self.weights, at) + change;
        let weight = warp.compute(ComputeClass::Fp32, 1, weight);
        warp.store(self.weights, at, weight);
        warp.store(self.changes, at, change);
    }

    fn unit(&self, index: u64) -> f32 {
        if index == 0 { 1.0 } else { noise::unit(self.seed, index) }
    }

    fn start_weight(&self, index: u64) -> f32 {
        noise::unit(!self.seed, index) / 16.0
    }

    fn start_change(&self, index: u64) -> f32 {
        noise::unit(self.seed ^ 1, index) / 64.0
    }

    /// Weight from a hidden unit to the output; index 0 is the bias.
    fn output_weight(&self, hidden: usize) -> f32 {
        noise::unit(self.seed ^ 2, hidden as u64)
    }

    /// Errors for the hidden units, from the input sums per unit; entry 0 is the bias.
    fn errors(&self, sums: &[f32]) -> Vec<f32> {
        let hidden: Vec<f32> = (0..).zip(sums).map(|(at, sum)| sigmoid(sum + self.start_weight(at + 1))).collect();
        let weigh = |(at, value): (usize, &f32)| value * self.output_weight(at + 1);
        let output = sigmoid(self.output_weight(0) + hidden.iter().enumerate().map(weigh).sum::<f32>());
        let error = slope(output, TARGET - output);
        let of = |(at, value): (usize, &f32)| slope(*value, error * self.output_weight(at + 1));
        std::iter::once(0.0).chain(hidden.iter().enumerate().map(of)).collect()
    }

    /// Host work between the kernels: sums the partial sums, and computes the errors.
    fn find_errors(&self, memory: &Memory) {
        let mut sums = vec![0.0; self.hidden as usize];
        for part in memory.to_vec(self.sums).chunks_exact(self.hidden as usize) {
            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        let errors = self.errors(&sums);
        memory.fill(self.delta, |index| errors[index as usize]);
        memory.fill(self.weights, |index| self.start_weight(index));
    }
}

impl Instance for Perceptron {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input, |index| self.unit(index));
        memory.fill(self.weights, |index| self.start_weight(index));
        memory.fill(self.changes, |index| self.start_change(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input);
        host.copy_to_device(self.weights);
        let grid = |name| Grid::new(name, (self.inputs / SIDE) as u64, (SIDE * SIDE) as u32);
        let shared = (4 * SIDE * (SIDE + 1)) as u32;
        host.launch(grid("layer-forward").shared_bytes(shared), |cta| self.forward(cta))?;
        host.copy_to_host(self.sums);
        self.find_errors(host.memory());
        host.copy_to_device(self.delta);
        host.copy_to_device(self.changes);
        host.copy_to_device(self.weights);
        host.launch(grid("adjust-weights"), |cta| self.adjust(cta))?;
        host.copy_to_host(self.weights);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let pitch = self.hidden as u64 + 1;
        let part = |index: u64| {
            let (first, hidden) = (index / (pitch - 1) * SIDE as u64 + 1, index % (pitch - 1) + 1);
            let weigh = |input: u64| f64::from(self.unit(input)) * f64::from(self.start_weight(input * pitch + hidden));
            (first..first + SIDE as u64).map(weigh).sum::<f64>() as f32
        };
        compare("sums", memory.to_vec(self.sums), (0..self.sums.len()).map(part), 1e-6)?;
        let reach = |hidden: u64| {
            let weigh = |input: u64| f64::from(self.unit(input) * self.start_weight(input * pitch + hidden));
            (1..=self.inputs as u64).map(weigh).sum::<f64>() as f32
        };
        let errors = self.errors(&(1..pitch).map(reach).collect::<Vec<_>>());
        // The hidden layer's bias has no incoming weights.
        let change = |index: u64| match index % pitch {
            0 => self.start_change(index),
            hidden => ETA * errors[hidden as usize] * self.unit(index / pitch) + MOMENTUM * self.start_change(index),
        };
        let moved =
            |index: u64| self.start_weight(index) + if index.is_multiple_of(pitch) { 0.0 } else { change(index) };
        let all = 0..self.weights.len();
        compare("changes", memory.to_vec(self.changes), all.clone().map(change), 1e-6)?;
        compare("weights", memory.to_vec(self.weights), all.map(moved), 1e-6)
    }
}
