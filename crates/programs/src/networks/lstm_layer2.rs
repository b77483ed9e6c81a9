//! Forward pass of an LSTM layer in training: activated gates and cells stay in memory for the backward pass.
//!
//! A hidden unit has four weighted sums of inputs and previous outputs: input gate `i`, forget gate `f`, candidate `g`,
//! output gate `o`. With the sigmoid σ, the cell `c` and the output `y` in time step `t` are
//! `c[t] = σ(f) c[t-1] + σ(i) tanh(g)` and `y[t] = σ(o) tanh(c[t])`
//! (Hochreiter and Schmidhuber, 1997, with forget gates, without peepholes, as in cuDNN).
//!
//! Both weight matrices have 4 × 4096² elements, 537 MB in single precision together. A step with 64 samples has 4096 ×
//! 64 inputs, as many outputs, as many cells, and four times as many gates: 7.3 MB. 25 steps and the weights take 720
//! MB (687 MiB); HMG Table III states 710 MB.

use super::recurrent::{BATCH, Forward, HIDDEN, INPUT_TILE, STEPS, SequenceElement, Sizes, input_tile, sigmoid};
use crate::prelude::*;
use crate::reference::compare;

/// Sums per unit: input, forget, candidate and output gate.
const GATES: u32 = 4;

program! {
    /// LSTM layer: all weights read again in each of many dependent steps
    pub(crate) static LSTM_LAYER2 = "lstm-layer2",
        "DeepBench LSTM; Appleyard et al., 2016; HMG Table III (ML_lstm_layer2)";
    properties: nonlinear, data_independent;
    parameters {
        HIDDEN = 4096, "DeepBench, LSTM of 4096 hidden units: the one whose weights fit HMG Table III's 710 MB";
        BATCH = 64, "DeepBench, LSTM of 4096 hidden units: the batch that comes nearest to 710 MB";
        STEPS = 25, "DeepBench, LSTM: 25 time steps";
        INPUT_TILE;
    }
    lay_out(name, request, memory) {
        let sizes = Sizes::of(name, request, GATES)?;
        let forward = Forward::lay_out(memory, sizes, GATES, request.seed).with_input_tile(input_tile(&request.values));
    }
    struct LstmLayer {
        forward: Forward,
        /// Cells after each time step: `steps × batch × hidden`.
        cells: Array<f32> = sizes.sequence(memory, "cells"),
    }
}

impl LstmLayer {
    /// Computes a time step for an element (a unit of a sample): activates the four gates in place, then updates the
    /// cell and the output.
    fn cell(&self, warp: &mut Warp<'_>, element: Lanes<i32>, step: u32) {
        let Sizes { hidden, .. } = self.forward.sizes;
        let step_elements = self.forward.sizes.step() as i32;
        let at = element + step as i32 * step_elements;
        let (sample, unit) = (at / hidden as i32, at % hidden as i32);
        let gate = |gate: u32| (sample * GATES as i32 + gate as i32) * hidden as i32 + unit;
        // Two instructions for the common part of the addresses, then one per gate.
        let places = warp.compute_wide(ComputeClass::Int, 6, 2, [gate(0), gate(1), gate(2), gate(3)]);
        let [input, forget, candidate, output] = places.map(|place| warp.load(self.forward.sums, place));
        let before = if step == 0 { Lanes::all(0.0) } else { warp.load(self.cells, at + -step_elements) };
        let [input, forget, output] = [input, forget, output].map(|sum| sum.map(sigmoid));
        // Special-function instructions: two for each of three sigmoids (exponential, reciprocal), one for the tangent.
        let gates = [input, forget, candidate.map(f32::tanh), output];
        let gates = warp.compute_wide(ComputeClass::Special, 7, GATES as u16, gates);
        for (place, gate) in places.into_iter().zip(gates) {
            warp.store(self.forward.sums, place, gate);
        }
        let [input, forget, candidate, output] = gates;
        let cell = warp.compute(ComputeClass::Fp32, 2, forget * before + input * candidate);
        warp.store(self.cells, at, cell);
        let output = warp.compute(ComputeClass::Special, 1, output * cell.map(f32::tanh));
        warp.store(self.forward.outputs, at, output);
    }
}

impl Instance for LstmLayer {
    fn fill(&self, memory: &Memory) {
        self.forward.fill(memory);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        self.forward.run(host, |host, step| {
            let name = if step == 0 { "first-cell" } else { "cell" };
            self.forward.sizes.each_element(host, name, |warp, element| self.cell(warp, element, step))
        })?;
        host.copy_to_host(self.cells);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (gates, cells) = (memory.to_vec(self.forward.sums), memory.to_vec(self.cells));
        let outputs = memory.to_vec(self.forward.outputs);
        let Sizes { hidden, batch, .. } = self.forward.sizes;
        let (hidden, batch) = (hidden as usize, batch as usize);
        let at = |SequenceElement { sample, unit }| sample * hidden + unit;
        self.forward.each_plain(memory, |element, sums, magnitudes| {
            let what = |part: &str| format!("{part} of {element:?}");
            let plain: Vec<f64> = sums
                .iter()
                .enumerate()
                .map(|(gate, sum)| if gate == 2 { sum.tanh() } else { 1.0 / (1.0 + (-sum).exp()) })
                .collect();
            for (gate, (&expected, &magnitude)) in plain.iter().zip(magnitudes).enumerate() {
                let found = gates[(element.sample * GATES as usize + gate) * hidden + element.unit];
                compare(&what(&format!("gate {gate}")), found, expected, magnitude)?;
            }
            let before = element
                .sample
                .checked_sub(batch)
                .map_or(0.0, |sample| f64::from(cells[at(SequenceElement { sample, ..element })]));
            let cell = plain[1] * before + plain[0] * plain[2];
            let magnitude = 1.0 + magnitudes.iter().sum::<f64>();
            compare(&what("cell"), cells[at(element)], cell, magnitude)?;
            compare(&what("output"), outputs[at(element)], plain[3] * cell.tanh(), magnitude)
        })
    }
}
