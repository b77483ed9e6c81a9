//! Forward pass of a vanilla recurrent layer: `y[t] = tanh(W x[t] + U y[t-1])`.
//!
//! Each time step has two dependent kernels, as launched by cuDNN: `U y[t-1]` is added to the input product, then the
//! activation follows. Each step reads the whole of `U` and the previous step's output from the whole grid.

use super::recurrent::{Forward, Sizes, VANILLA};
use crate::prelude::*;
use crate::reference::compare;

program! {
    /// recurrent layer: weights shared by all CTAs, state exchanged between dependent kernels
    pub(crate) static RNN_FORWARD = "rnn-forward",
        "DeepBench vanilla RNN; Appleyard et al., 2016; HMG Table III (ML_RNN_layer4_FW)";
    properties: nonlinear, data_independent;
    parameters: &VANILLA;
    lay_out(name, request, memory) {
        let sizes = Sizes::of(name, request, 1)?;
    }
    struct ForwardLayer {
        forward: Forward = Forward::lay_out(memory, sizes, 1, request.seed),
    }
}

impl Instance for ForwardLayer {
    fn fill(&self, memory: &Memory) {
        self.forward.fill(memory);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        let Forward { sizes, sums, outputs, .. } = self.forward;
        self.forward.run(host, |host, step| {
            let first = (step * sizes.step()) as i32;
            sizes.each_element(host, "activate", |warp, element| {
                let sum = warp.load(sums, element + first);
                let output = warp.compute(ComputeClass::Special, 1, sum.map(f32::tanh));
                warp.store(outputs, element + first, output);
            })
        })
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let outputs = memory.to_vec(self.forward.outputs);
        let hidden = self.forward.sizes.hidden as usize;
        self.forward.each_plain(memory, |at, sums, magnitudes| {
            compare(&format!("{at:?}"), outputs[at.sample * hidden + at.unit], sums[0].tanh(), magnitudes[0])
        })
    }
}
