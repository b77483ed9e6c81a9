//! Weight gradients of a vanilla recurrent layer: `dW = Σ s[t] x[t]ᵀ` and `dU = Σ s[t] y[t-1]ᵀ` over all steps and
//! samples, with `s` as the gradient of the sums before the activation.
//!
//! The layer has two products, each over all time steps at once (Appleyard et al., 2016): bulk-synchronous. Two weight
//! arrays, sequences of `x`, `y` and `s` and six steps of 1760 × 128 are 39.1 MiB, compared to 38 MB in HMG's Table
//! III.

use super::gemm::TILE_128X64;
use super::product::{Factor, Product};
use super::recurrent::{Sizes, VANILLA};
use crate::prelude::*;
use crate::reference::compare;

program! {
    /// weight gradients of a recurrent layer: two products over all time steps
    pub(crate) static RNN_WGRAD = "rnn-wgrad",
        "DeepBench vanilla RNN; Appleyard et al., 2016; HMG Table III (ML_RNN_layer4_WGRAD)";
    properties: nonlinear, data_independent;
    parameters: &VANILLA;
    lay_out(name, request, memory) {
        let sizes = Sizes::of(name, request, 1)?;
    }
    struct WeightGradients {
        sizes: Sizes,
        /// Inputs of the layer, `steps × batch × hidden`.
        inputs: Array<f32> = sizes.sequence(memory, "inputs"),
        /// Outputs of the forward pass, `steps × batch × hidden`.
        outputs: Array<f32> = sizes.sequence(memory, "outputs"),
        /// Gradient of the sums, `steps × batch × hidden`.
        gradients: Array<f32> = sizes.sequence(memory, "gradients"),
        /// `hidden inputs × hidden`, in the forward pass's storage order.
        input_weight_gradients: Array<f32> = sizes.weights(memory, "input_weight_gradients", 1),
        /// `hidden inputs × hidden`, in the forward pass's storage order.
        state_weight_gradients: Array<f32> = sizes.weights(memory, "state_weight_gradients", 1),
        seed: u64 = request.seed,
    }
}

impl WeightGradients {
    /// The sum of `gradients × valuesᵀ` over all steps from `skipped` on; `values` starts `skipped` steps earlier.
    fn product(&self, values: Array<f32>, skipped: u32, output: Array<f32>) -> Product {
        let Sizes { hidden, batch, steps } = self.sizes;
        Product {
            rows: hidden,
            columns: hidden,
            terms: (steps - skipped) * batch,
            left: Factor::by_term(self.gradients, skipped * self.sizes.step(), hidden),
            right: Factor::by_term(values, 0, hidden),
            output,
            first: 0,
            adds: false,
            splits: 1,
            tile: TILE_128X64,
        }
    }

    fn check(&self, memory: &Memory, values: Array<f32>, skipped: u32, output: Array<f32>) -> Result<(), String> {
        let (values, gradients) = (memory.to_vec(values), memory.to_vec(self.gradients));
        let hidden = self.sizes.hidden as usize;
        let gradients = &gradients[(skipped * self.sizes.step()) as usize..];
        for (at, found) in memory.to_vec(output).into_iter().enumerate() {
            let (input, unit) = (at / hidden, at % hidden);
            let (mut sum, mut magnitude) = (0.0, 0.0);
            for (gradients, values) in gradients.chunks(hidden).zip(values.chunks(hidden)) {
                let product = f64::from(gradients[unit]) * f64::from(values[input]);
                sum += product;
                magnitude += product.abs();
            }
            compare(&format!("gradient of the weight from {input} to {unit}"), found, sum, magnitude)?;
        }
        Ok(())
    }
}

impl Instance for WeightGradients {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.inputs, |index| noise::unit(self.seed, index));
        memory.fill(self.outputs, |index| noise::unit(self.seed ^ 1, index));
        memory.fill(self.gradients, |index| noise::unit(self.seed ^ 2, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.inputs);
        host.copy_to_device(self.outputs);
        host.copy_to_device(self.gradients);
        self.product(self.inputs, 0, self.input_weight_gradients).launch(host, "input-weights")?;
        self.product(self.outputs, 1, self.state_weight_gradients).launch(host, "state-weights")?;
        host.copy_to_host(self.input_weight_gradients);
        host.copy_to_host(self.state_weight_gradients);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        self.check(memory, self.inputs, 0, self.input_weight_gradients)?;
        self.check(memory, self.outputs, 1, self.state_weight_gradients)
    }
}
