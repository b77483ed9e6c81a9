//! Data gradient of a vanilla recurrent layer, back through time: `s[t] = (dy[t] + Uᵀ s[t+1]) (1 - y[t]²)`, the
//! gradient of the sums before the activation.
//!
//! Each time step has two dependent kernels, as in the forward pass. The gradient of the layer's inputs, `Wᵀ s`, is
//! left out: HMG's 29 MB leave no room for this gradient. The array of weights, sequences of `y`, `dy` and `s` and six
//! steps of 1760 × 128 are 27.3 MiB.

use super::gemm::TILE_32X32;
use super::product::{Factor, Product};
use super::recurrent::{Sizes, VANILLA};
use crate::prelude::*;
use crate::reference::compare;

program! {
    /// data gradient of a recurrent layer: back through time, weights shared by all CTAs
    pub(crate) static RNN_DGRAD = "rnn-dgrad",
        "DeepBench vanilla RNN; Appleyard et al., 2016; HMG Table III (ML_RNN_layer4_DGRAD)";
    properties: nonlinear, data_independent;
    parameters: &VANILLA;
    lay_out(name, request, memory) {
        let sizes = Sizes::of(name, request, 1)?;
    }
    struct DataGradient {
        sizes: Sizes,
        /// `hidden inputs × hidden`, in the forward pass's storage order.
        state_weights: Array<f32> = sizes.weights(memory, "state_weights", 1),
        /// Outputs of the forward pass, `steps × batch × hidden`.
        outputs: Array<f32> = sizes.sequence(memory, "outputs"),
        /// Gradient of the outputs from the layer above, `steps × batch × hidden`.
        output_gradients: Array<f32> = sizes.sequence(memory, "output_gradients"),
        /// Gradient of the sums, `steps × batch × hidden`.
        gradients: Array<f32> = sizes.sequence(memory, "gradients"),
        seed: u64 = request.seed,
    }
}

impl DataGradient {
    /// The product `Uᵀ s[t+1]`, stored in place of `s[t]`.
    fn back(&self, step: u32) -> Product {
        let Sizes { hidden, batch, .. } = self.sizes;
        Product {
            rows: hidden,
            columns: batch,
            terms: hidden,
            left: Factor::by_line(self.state_weights, 0, hidden),
            right: Factor::by_line(self.gradients, (step + 1) * self.sizes.step(), hidden),
            output: self.gradients,
            first: step * self.sizes.step(),
            adds: false,
            splits: 1,
            tile: TILE_32X32,
        }
    }

    /// Combines the gradient from the next step and the gradient from above into the gradient of a step's sums.
    fn activate(&self, host: &mut Host<'_>, step: u32) -> Result<(), RecordError> {
        let first = (step * self.sizes.step()) as i32;
        let last = step + 1 == self.sizes.steps;
        let name = if last { "last-gradient" } else { "gradient" };
        self.sizes.each_element(host, name, |warp, element| {
            let at = element + first;
            let mut gradient = warp.load(self.output_gradients, at);
            if !last {
                gradient = gradient + warp.load(self.gradients, at);
            }
            let output = warp.load(self.outputs, at);
            let slope = output.map(|output| 1.0 - output * output);
            let gradient = warp.compute(ComputeClass::Fp32, 3, gradient * slope);
            warp.store(self.gradients, at, gradient);
        })
    }
}

impl Instance for DataGradient {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.state_weights, |index| self.sizes.weight(self.seed, index));
        memory.fill(self.outputs, |index| noise::unit(self.seed ^ 1, index));
        memory.fill(self.output_gradients, |index| noise::unit(self.seed ^ 2, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.state_weights);
        host.copy_to_device(self.outputs);
        host.copy_to_device(self.output_gradients);
        self.activate(host, self.sizes.steps - 1)?;
        for step in (0..self.sizes.steps - 1).rev() {
            self.back(step).launch(host, "state-product")?;
            self.activate(host, step)?;
        }
        host.copy_to_host(self.gradients);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (weights, outputs) = (memory.to_vec(self.state_weights), memory.to_vec(self.outputs));
        let (above, gradients) = (memory.to_vec(self.output_gradients), memory.to_vec(self.gradients));
        let hidden = self.sizes.hidden as usize;
        for (at, &found) in gradients.iter().enumerate() {
            let (sample, unit) = (at / hidden, at % hidden);
            let mut gradient = f64::from(above[at]);
            let mut magnitude = gradient.abs();
            let after = (sample + self.sizes.batch as usize) * hidden;
            for (weight, next) in weights[unit * hidden..][..hidden].iter().zip(gradients.iter().skip(after)) {
                let product = f64::from(*weight) * f64::from(*next);
                gradient += product;
                magnitude += product.abs();
            }
            let expected = gradient * (1.0 - f64::from(outputs[at]).powi(2));
            compare(&format!("gradient of unit {unit} of sample {sample}"), found, expected, magnitude)?;
        }
        Ok(())
    }
}
