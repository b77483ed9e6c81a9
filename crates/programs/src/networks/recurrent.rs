//! Common parts for the recurrent layers: sizes, the products in a forward pass, element-wise kernels.
//!
//! The kernel order is cuDNN's (Appleyard et al., Optimizing Performance of Recurrent Neural Networks on GPUs, 2016).
//! First runs a product for the inputs of all time steps. Each step then has a product with the previous step, added to
//! the first, and a fused element-wise kernel. Weights are stored transposed, which makes outputs contiguous. A step's values are
//! stored sample by sample, with contiguous units.

use super::gemm::{TILE_32X32, TILE_128X64, TileShape};
use super::product::{Factor, Product};
use crate::prelude::*;

/// Threads per CTA in an element-wise kernel. Source: assumed, the usual choice for an element per thread.
const THREADS: u32 = 256;
/// Weights are multiples of this fraction of the hidden size's inverse square root, to keep states below saturation.
const GAIN: f32 = 2.0;
/// Hidden units are a multiple of this number at every scale: whole lines, like the benchmarked sizes.
const UNITS: u64 = 32;

parameters! {
    /// hidden units, and inputs; scales by the root, to a multiple of 32
    pub(super) const HIDDEN = hidden: count(32..=1 << 14) = 1760, "DeepBench, vanilla RNN of 1760 hidden units";
    /// samples; does not scale
    pub(super) const BATCH = batch: count(1..=1 << 14) = 128, "DeepBench, vanilla RNN: the largest batch";
    /// time steps
    pub(super) const STEPS = steps: count(2..=10_000) = 6,
        "HMG Table III: RNN_FW 40 MB, DGRAD 29 MB and WGRAD 38 MB leave six steps beside the weights";
}

/// Parameter for the tile of the input product.
pub(super) const INPUT_TILE: Parameter = Parameter::choice(
    "input-tile",
    &["128x64", "32x32"],
    "128x64",
    "rows and columns per CTA in the product for the inputs of all time steps",
    "assumed: a tile of cuBLAS for a product of this size",
);

/// The tile that the user chose for the input product.
pub(super) fn input_tile(values: &ParameterValues) -> TileShape {
    if values.text(INPUT_TILE.name) == "32x32" { TILE_32X32 } else { TILE_128X64 }
}

/// The vanilla layer whose forward pass, data gradient and weight gradient are run in HMG. With six steps, the three
/// footprints are 39.1, 27.3 and 39.1 MiB, compared to 40, 29 and 38 MB in Table III.
pub(super) static VANILLA: [Parameter; 3] = [HIDDEN, BATCH, STEPS];

/// Sizes of a recurrent layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Hidden units, and equally many inputs.
    pub(super) hidden: u32,
    /// Number of samples.
    pub(super) batch: u32,
    /// Number of time steps.
    pub(super) steps: u32,
}

impl Sizes {
    /// The scaled sizes from a request for a layer with `gates` sums per unit.
    pub(super) fn of(workload: &'static str, request: &mut Request, gates: u32) -> Result<Sizes, WorkloadError> {
        // Tiles of samples are a product's outermost dimension, divided among GPUs, so units scale and samples stay.
        let batch = request.values.count("batch");
        let hidden = request.scale.side_of(request.values.count("hidden"));
        let hidden = request.fit_multiple("hidden", hidden, UNITS);
        let steps = request.values.count("steps");
        let most = u64::from(gates) * hidden * (batch * steps).max(hidden);
        check_indices(workload, most, "elements")?;
        Ok(Sizes { hidden: hidden as u32, batch: batch as u32, steps: steps as u32 })
    }

    /// Elements per time step.
    pub(super) fn step(&self) -> u32 {
        self.hidden * self.batch
    }

    /// Adds an array with a value per unit, sample and step: `steps × batch × hidden`.
    pub(super) fn sequence(&self, memory: &mut Memory, name: &str) -> Array<f32> {
        memory.array(name, u64::from(self.step()) * u64::from(self.steps), Scaling::Root)
    }

    /// Adds an array with a value per pair of units: `hidden inputs × hidden outputs`, for each of `gates`.
    pub(super) fn weights(&self, memory: &mut Memory, name: &str, gates: u32) -> Array<f32> {
        let side = u64::from(self.hidden);
        memory.array(name, side * side * u64::from(gates), Scaling::Scales)
    }

    /// Element `index` of weights drawn from `seed`.
    pub(super) fn weight(&self, seed: u64, index: u64) -> f32 {
        noise::unit(seed, index) * GAIN / (self.hidden as f32).sqrt()
    }

    /// Launches `kernel(warp, element)` for each element in a time step, with an element per thread.
    pub(super) fn each_element(
        &self,
        host: &mut Host<'_>,
        name: &str,
        kernel: impl Fn(&mut Warp<'_>, Lanes<i32>) + Sync,
    ) -> Result<(), RecordError> {
        let elements = self.step() as i32;
        let grid = Grid::new(name, u64::from(self.step().div_ceil(THREADS)), THREADS);
        host.launch(grid, |cta| {
            cta.each_warp(|warp| {
                let element = warp.compute(ComputeClass::Int, 2, warp.global_thread());
                warp.when(element.lt(elements), |warp| kernel(warp, element));
            });
        })
    }
}

/// The logistic gate function applied to a sum.
pub(super) fn sigmoid(sum: f32) -> f32 {
    1.0 / (1.0 + (-sum).exp())
}

arrays! {
    /// The sums in a layer's forward pass, before the layer's activation.
    pub(super) struct Forward(memory, sizes: Sizes, gates: u32, seed: u64) {
        pub(super) sizes: Sizes,
        /// Sums per unit: 1, 3 for a GRU, or 4 for an LSTM.
        gates: u32,
        /// `hidden inputs × gates × hidden`.
        input_weights: Array<f32> = sizes.weights(memory, "input_weights", gates),
        /// `hidden inputs × gates × hidden`.
        state_weights: Array<f32> = sizes.weights(memory, "state_weights", gates),
        /// `steps × batch × hidden`.
        inputs: Array<f32> = sizes.sequence(memory, "inputs"),
        /// `steps × batch × gates × hidden`.
        pub(super) sums: Array<f32>[u64::from(sizes.step()) * u64::from(sizes.steps) * u64::from(gates), root],
        /// `steps × batch × hidden`. The state before the first step is zero, cuDNN's default for a missing state.
        pub(super) outputs: Array<f32> = sizes.sequence(memory, "outputs"),
        /// `batch × gates × hidden`: result of a step's product with the previous step, if it is not added to `sums`.
        state_sums: Option<Array<f32>> = None,
        input_tile: TileShape = TILE_128X64,
        seed: u64,
    }
}

impl Forward {
    /// Returns the forward pass with the sums over the previous step in a separate array that every step overwrites,
    /// together with this array: `batch × gates × hidden`.
    pub(super) fn with_states_apart(self, memory: &mut Memory) -> (Forward, Array<f32>) {
        let elements = u64::from(self.sizes.step()) * u64::from(self.gates);
        let state_sums = memory.array("state_sums", elements, Scaling::Root);
        (Forward { state_sums: Some(state_sums), ..self }, state_sums)
    }

    /// Returns the forward pass with another tile for the input product.
    pub(super) fn with_input_tile(self, input_tile: TileShape) -> Forward {
        Forward { input_tile, ..self }
    }

    pub(super) fn fill(&self, memory: &Memory) {
        memory.fill(self.input_weights, |index| self.sizes.weight(self.seed ^ 1, index));
        memory.fill(self.state_weights, |index| self.sizes.weight(self.seed ^ 2, index));
        memory.fill(self.inputs, |index| noise::unit(self.seed ^ 3, index));
    }

    /// Launches the kernels; `activate(host, step)` launches the kernel from a step's sums to the step's outputs.
    pub(super) fn run(
        &self,
        host: &mut Host<'_>,
        activate: impl Fn(&mut Host<'_>, u32) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        host.copy_to_device(self.input_weights);
        host.copy_to_device(self.state_weights);
        host.copy_to_device(self.inputs);
        let Sizes { hidden, batch, steps } = self.sizes;
        let rows = self.gates * hidden;
        let inputs = Product {
            rows,
            columns: batch * steps,
            terms: hidden,
            left: Factor::by_term(self.input_weights, 0, rows),
            right: Factor::by_line(self.inputs, 0, hidden),
            output: self.sums,
            first: 0,
            adds: false,
            splits: 1,
            tile: self.input_tile,
        };
        inputs.launch(host, "input-product")?;
        activate(host, 0)?;
        for step in 1..steps {
            let before = (step - 1) * self.sizes.step();
            let state = Product {
                columns: batch,
                left: Factor::by_term(self.state_weights, 0, rows),
                right: Factor::by_line(self.outputs, before, hidden),
                output: self.state_sums.unwrap_or(self.sums),
                first: if self.state_sums.is_some() { 0 } else { step * self.sizes.step() * self.gates },
                adds: self.state_sums.is_none(),
                tile: TILE_32X32,
                ..inputs
            };
            state.launch(host, "state-product")?;
            activate(host, step)?;
        }
        host.copy_to_host(self.outputs);
        Ok(())
    }

    /// Calls `check(element, sums, magnitudes)` with the plain sums for each unit's gates and the sums of their terms'
    /// magnitudes, computed from the previous step's outputs.
    pub(super) fn each_plain(
        &self,
        memory: &Memory,
        mut check: impl FnMut(SequenceElement, &[f64], &[f64]) -> Result<(), String>,
    ) -> Result<(), String> {
        self.each_plain_apart(memory, |element, [inputs, states], magnitudes| {
            let sums: Vec<f64> = inputs.iter().zip(states).map(|(input, state)| input + state).collect();
            check(element, &sums, magnitudes)
        })
    }

    /// Like [`Forward::each_plain`], with separate sums for the inputs and for the states.
    pub(super) fn each_plain_apart(
        &self,
        memory: &Memory,
        mut check: impl FnMut(SequenceElement, [&[f64]; 2], &[f64]) -> Result<(), String>,
    ) -> Result<(), String> {
        let (of_inputs, of_states) = (memory.to_vec(self.input_weights), memory.to_vec(self.state_weights));
        let (inputs, outputs) = (memory.to_vec(self.inputs), memory.to_vec(self.outputs));
        let (hidden, gates) = (self.sizes.hidden as usize, self.gates as usize);
        let samples = (self.sizes.batch * self.sizes.steps) as usize;
        for sample in 0..samples {
            let before = sample.checked_sub(self.sizes.batch as usize);
            for unit in 0..hidden {
                let (mut input_sums, mut state_sums, mut magnitudes) =
                    (vec![0.0; gates], vec![0.0; gates], vec![0.0; gates]);
                for gate in 0..gates {
                    let mut add = |sum: &mut f64, weights: &[f32], values: &[f32], sample: usize| {
                        for term in 0..hidden {
                            let weight = weights[(term * gates + gate) * hidden + unit];
                            let product = f64::from(weight) * f64::from(values[sample * hidden + term]);
                            *sum += product;
                            magnitudes[gate] += product.abs();
                        }
                    };
                    add(&mut input_sums[gate], &of_inputs, &inputs, sample);
                    if let Some(before) = before {
                        add(&mut state_sums[gate], &of_states, &outputs, before);
                    }
                }
                check(SequenceElement { sample, unit }, [&input_sums, &state_sums], &magnitudes)?;
            }
        }
        Ok(())
    }
}

/// An element of a sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct SequenceElement {
    /// Step × batch + sample.
    pub(super) sample: usize,
    pub(super) unit: usize,
}
