//! Forward pass of a gated recurrent layer for inference: gates are not kept.
//!
//! A unit has sums `z`, `r` and `c` over the inputs, and `z'`, `r'` and `c'` over the previous state. Its output is
//! `y[t] = (1 - u) tanh(c + σ(r + r') c') + u y[t-1]` with `u = σ(z + z')`. The reset gate acts on a finished sum, as
//! in cuDNN and MIOpen (in Cho et al., 2014, it acts on the state).
//!
//! The sums over the state are therefore kept separately: a step's product overwrites all sums, and the next kernel
//! reads the new values. MIOpen launches separate kernels for gates and element products; this program has a single
//! kernel per step, as in `lstm-layer2`.
//!
//! Both weight matrices for 256 units have 3 × 256² elements, 1.5 MiB together; for 512 units they have 6 MiB.

use super::recurrent::{BATCH, Forward, HIDDEN, INPUT_TILE, STEPS, SequenceElement, Sizes, input_tile, sigmoid};
use crate::prelude::*;
use crate::reference::compare;

/// Sums per unit: update gate, reset gate, candidate.
const GATES: u32 = 3;

program! {
    /// gated recurrent layer: weights and a step's sums read again in dependent kernels
    pub(crate) static GRU = "gru",
        "DeepBench GRU (baidu-research/DeepBench; hal-uw/gem5-bmks-micro24, DeepBench); CPElide, Table II (RNN-GRU)";
    properties: nonlinear, data_independent;
    parameters {
        HIDDEN = 256, "CPElide, Table II (RNN-GRU): 256 hidden units; the larger input has 512";
        BATCH = 4, "CPElide, Table II (RNN-GRU): a batch of 4; the larger input has 16";
        STEPS = 2, "CPElide, Table II (RNN-GRU): 2 time steps; the larger input has 4";
        INPUT_TILE;
    }
    lay_out(name, request, memory) {
        let sizes = Sizes::of(name, request, GATES)?;
        let forward = Forward::lay_out(memory, sizes, GATES, request.seed).with_input_tile(input_tile(&request.values));
        let (forward, state_sums) = forward.with_states_apart(memory);
    }
    struct GruLayer {
        forward: Forward,
        /// `batch × gates × hidden`: a step's sums over the previous state.
        state_sums: Array<f32>,
    }
}

impl GruLayer {
    /// Computes an element in a step: its gates and its output.
    fn output(&self, warp: &mut Warp<'_>, element: Lanes<i32>, step: u32) {
        let Sizes { hidden, .. } = self.forward.sizes;
        let (hidden, step_elements) = (hidden as i32, self.forward.sizes.step() as i32);
        let first = step as i32 * step_elements;
        let (sample, unit) = (element / hidden, element % hidden);
        let place = |gate: u32| (sample * GATES as i32 + gate as i32) * hidden + unit;
        let places = warp.compute(ComputeClass::Int, 6, [place(0), place(1), place(2)]);
        let inputs = places.map(|place| warp.load(self.forward.sums, place + first * GATES as i32));
        let at = element + first;
        let (states, before) = if step == 0 {
            ([Lanes::all(0.0); 3], Lanes::all(0.0))
        } else {
            let states = places.map(|place| warp.load(self.state_sums, place));
            (states, warp.load(self.forward.outputs, at + -step_elements))
        };
        let [update, reset] = [0, 1].map(|gate| (inputs[gate] + states[gate]).map(sigmoid));
        let candidate = (inputs[2] + reset * states[2]).map(f32::tanh);
        // A sigmoid is an exponential and a reciprocal, a hyperbolic tangent a single instruction. The update gate and
        // the reset gate run concurrently; the candidate needs the reset gate.
        let [update, candidate] = warp.compute_wide(ComputeClass::Special, 5, 2, [update, candidate]);
        let output = update.map(|update| 1.0 - update) * candidate + update * before;
        let output = warp.compute(ComputeClass::Fp32, 6, output);
        warp.store(self.forward.outputs, at, output);
    }
}

impl Instance for GruLayer {
    fn fill(&self, memory: &Memory) {
        self.forward.fill(memory);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        self.forward.run(host, |host, step| {
            let name = if step == 0 { "first-output" } else { "output" };
            self.forward.sizes.each_element(host, name, |warp, element| self.output(warp, element, step))
        })
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let outputs = memory.to_vec(self.forward.outputs);
        let Sizes { hidden, batch, .. } = self.forward.sizes;
        let (hidden, batch) = (hidden as usize, batch as usize);
        let plain = |sum: f64| 1.0 / (1.0 + (-sum).exp());
        self.forward.each_plain_apart(memory, |element, [inputs, states], magnitudes| {
            let SequenceElement { sample, unit } = element;
            let before = sample.checked_sub(batch).map_or(0.0, |sample| f64::from(outputs[sample * hidden + unit]));
            let [update, reset] = [0, 1].map(|gate| plain(inputs[gate] + states[gate]));
            let expected = (1.0 - update) * (inputs[2] + reset * states[2]).tanh() + update * before;
            let magnitude = 1.0 + magnitudes.iter().sum::<f64>();
            compare(&format!("output of {element:?}"), outputs[sample * hidden + unit], expected, magnitude)
        })
    }
}
