//! Forward pass of a vanilla recurrent layer: `h[t] = tanh(U x[t] + W h[t-1])`, one kernel a time step.
//!
//! CTAs tile hidden units by samples, hidden units first: every group of CTAs that shares samples reads all
//! weights, and each time step reads what the whole grid wrote in the one before.

use super::gemm::{Piece, Tile, compare};
use super::{Instance, Request, Workload, WorkloadError, check_indices};
use crate::noise;
use crate::parameter::{Kind, Parameter};
use crate::record::{Host, RecordError};
use crate::simt::{Array, ComputeClass, Cta, Grid, Memory, Scaling, Warp};

/// Hidden units × samples of a CTA. Source: assumed, so that one time step at scale 1 has some 440 CTAs for
/// the 512 SMs of HMG's machine. Passes: for four terms, a thread reads four 16-byte vectors of weights and
/// four inputs.
const TILE: Tile = Tile { rows: 32, columns: 16, depth: 32, threads: 128, passes: 64 };
/// Weights are multiples of this fraction of the inverse hidden size, so that states stay below saturation.
const GAIN: f32 = 2.0;

static PARAMETERS: [Parameter; 3] = [
    Parameter {
        name: "hidden",
        kind: Kind::Count { low: 32, high: 1 << 14 },
        default: "1760",
        about: "hidden units, and inputs; scales by the root, to whole tiles of 32",
        source: "DeepBench, vanilla RNN of 1760 hidden units",
    },
    Parameter {
        name: "batch",
        kind: Kind::Count { low: 16, high: 1 << 14 },
        default: "128",
        about: "samples; scales by the root, to whole tiles of 16",
        source: "DeepBench, vanilla RNN: the largest batch",
    },
    Parameter {
        name: "steps",
        kind: Kind::Count { low: 1, high: 10_000 },
        default: "9",
        about: "time steps",
        source: "HMG Table III: RNN_FW has 40 MB, which leaves nine steps beside the weights",
    },
];

/// The benchmark.
pub(super) struct RnnForward;

struct Layer {
    /// `hidden × hidden`, row-major by output.
    input_weights: Array<f32>,
    /// `hidden × hidden`, row-major by output.
    state_weights: Array<f32>,
    /// `steps × hidden × batch`.
    inputs: Array<f32>,
    /// `(steps + 1) × hidden × batch`; the first is the initial state.
    states: Array<f32>,
    hidden: u32,
    batch: u32,
    steps: u32,
    seed: u64,
}

impl Workload for RnnForward {
    fn name(&self) -> &'static str {
        "rnn-forward"
    }

    fn about(&self) -> &'static str {
        "recurrent layer: weights shared by all CTAs, state exchanged between dependent kernels"
    }

    fn source(&self) -> &'static str {
        "DeepBench vanilla RNN; HMG Table III"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    /// Arithmetic follows the footprint to the power of 3/2.
    fn nonlinear(&self) -> bool {
        true
    }

    fn address_only(&self) -> bool {
        true
    }

    fn lay_out(&self, request: &Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
        let side = |name, tile| request.scale.side_of(request.values.count(name)).next_multiple_of(tile);
        let (hidden, batch) = (side("hidden", u64::from(TILE.rows)), side("batch", u64::from(TILE.columns)));
        let steps = request.values.count("steps");
        let states = hidden * batch * (steps + 1);
        check_indices(self.name(), states.max(hidden * hidden), "states or weights")?;
        let mut array = |name, len| memory.array(name, len, Scaling::Scales);
        Ok(Box::new(Layer {
            input_weights: array("input_weights", hidden * hidden),
            state_weights: array("state_weights", hidden * hidden),
            inputs: array("inputs", hidden * batch * steps),
            states: array("states", states),
            hidden: hidden as u32,
            batch: batch as u32,
            steps: steps as u32,
            seed: request.seed,
        }))
    }
}

impl Layer {
    /// Elements of one time step of inputs or states.
    fn step_elements(&self) -> u32 {
        self.hidden * self.batch
    }

    fn kernel(&self, cta: &mut Cta<'_>, step: u32) {
        let row_tiles = self.hidden / TILE.rows;
        let row = cta.index() % row_tiles * TILE.rows;
        let sample = cta.index() / row_tiles * TILE.columns;
        let slabs = self.hidden / TILE.depth;
        let product = TILE.multiply(cta, 2 * slabs, |warp, slab| {
            let (weights, values) = match slab < slabs {
                true => (self.input_weights, self.inputs),
                false => (self.state_weights, self.states),
            };
            self.fetch(warp, (weights, values), (row, sample), slab % slabs * TILE.depth, step)
        });
        let next = (step + 1) * self.step_elements();
        cta.each_warp(|warp| {
            let thread = warp.thread();
            // A thread holds every eighth row of one column.
            for part in 0..TILE.rows / 8 {
                let at = thread + (part * TILE.threads) as i32;
                let sum = at.pick(&product);
                let state = warp.compute(ComputeClass::Special, 1, sum.map(f32::tanh));
                let unit = at / TILE.columns as i32 + row as i32;
                let column = at % TILE.columns as i32 + sample as i32;
                let place = warp.compute(ComputeClass::Int, 3, unit * self.batch as i32 + column + next as i32);
                warp.store(self.states, place, state);
            }
        });
    }

    /// A warp's part of the slab of terms `term` to `term + depth - 1`.
    fn fetch(
        &self,
        warp: &mut Warp<'_>,
        (weights, values): (Array<f32>, Array<f32>),
        (row, sample): (u32, u32),
        term: u32,
        step: u32,
    ) -> Vec<Piece> {
        let thread = warp.compute(ComputeClass::Int, 4, warp.thread());
        let mut pieces = Vec::with_capacity(3);
        for part in 0..2 {
            let at = (thread + part * TILE.threads as i32) * 4;
            let (unit, depth) = (at / TILE.depth as i32, at % TILE.depth as i32);
            let place = (unit + row as i32) * self.hidden as i32 + depth + term as i32;
            pieces.push(Piece::Left { at, values: warp.load_vector(weights, place) });
        }
        let at = thread * 4;
        let (depth, column) = (at / TILE.columns as i32, at % TILE.columns as i32);
        let first = (step * self.step_elements()) as i32;
        let place = (depth + term as i32) * self.batch as i32 + column + (first + sample as i32);
        pieces.push(Piece::Right { at, values: warp.load_vector(values, place) });
        pieces
    }

    fn weight(&self, which: u64, index: u64) -> f32 {
        noise::unit(self.seed ^ which, index) * GAIN / (self.hidden as f32).sqrt()
    }
}

impl Instance for Layer {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input_weights, |index| self.weight(1, index));
        memory.fill(self.state_weights, |index| self.weight(2, index));
        memory.fill(self.inputs, |index| noise::unit(self.seed ^ 3, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input_weights);
        host.copy_to_device(self.state_weights);
        host.copy_to_device(self.inputs);
        let ctas = (self.hidden / TILE.rows) * (self.batch / TILE.columns);
        for step in 0..self.steps {
            let grid = Grid::new("rnn-step", u64::from(ctas), TILE.threads).shared_bytes(TILE.shared_bytes());
            host.launch(grid, |cta| self.kernel(cta, step))?;
        }
        host.copy_to_host(self.states);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (hidden, batch) = (self.hidden as usize, self.batch as usize);
        let (input_weights, state_weights) = (memory.to_vec(self.input_weights), memory.to_vec(self.state_weights));
        let (inputs, states) = (memory.to_vec(self.inputs), memory.to_vec(self.states));
        for step in 0..self.steps as usize {
            for unit in 0..hidden {
                for sample in 0..batch {
                    let (mut sum, mut magnitude) = (0.0, 0.0);
                    for term in 0..hidden {
                        let at = (step * hidden + term) * batch + sample;
                        for (weights, values) in [(&input_weights, &inputs), (&state_weights, &states)] {
                            let product = f64::from(weights[unit * hidden + term]) * f64::from(values[at]);
                            sum += product;
                            magnitude += product.abs();
                        }
                    }
                    let found = states[((step + 1) * hidden + unit) * batch + sample];
                    compare(&format!("unit {unit} of sample {sample}"), found, sum.tanh(), magnitude)?;
                }
            }
        }
        Ok(())
    }
}
