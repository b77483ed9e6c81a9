//! A bottleneck block from ResNet-50's conv2_x: 1 × 1, 3 × 3 and 1 × 1 convolutions, each a kernel reading the
//! preceding kernel's output, and a shortcut added by the last convolution.
//!
//! An image has 256 × 56² inputs, 64 × 56² elements after each of the first two convolutions and 256 × 56² outputs,
//! 8,028,160 bytes in single precision: 428 images and the weights make the 3.20 GB of HMG's Table III. Batch
//! normalisation is folded into the weights, as for inference.

use super::convolution::{Convolution, ConvolutionShape, Epilogue, Filter};
use crate::prelude::*;

/// The 1 × 1 filter. Source: He et al., 2016, Table 1.
const POINT: Filter = Filter { side: 1, stride: 1, padding: 0 };
/// The 3 × 3 filter. Source: He et al., 2016, Table 1; the padding keeps 56 × 56.
const SQUARE: Filter = Filter { side: 3, stride: 1, padding: 1 };

program! {
    /// bottleneck block: three dependent convolutions and a shortcut
    pub(crate) static RESNET = "resnet", "He et al., 2016, Table 1 (ResNet-50, conv2_x); HMG Table III (ML_resnet)";
    properties: nonlinear, data_independent;
    parameters {
        /// images, at scale 1; scales by the root
        batch: count(1..=1 << 12) = 428,
            "HMG Table III: 3.20 GB (GiB) of one block's inputs, weights and outputs; the block is assumed";
        /// channels of the block's input and output; scales by the root
        wide: count(1..=1 << 12) = 256, "He et al., 2016, Table 1, conv2_x of the 50-layer network";
        /// channels between the convolutions; scales by the root
        narrow: count(1..=1 << 12) = 64, "He et al., 2016, Table 1, conv2_x of the 50-layer network";
        /// rows and columns of an image
        side: count(1..=1 << 10) = 56, "He et al., 2016, Table 1, conv2_x";
    }
    lay_out(name, request, memory) {
        let (wide, narrow, side) = (wide as u32, narrow as u32, side as u32);
        let batch = batch as u32;
        let shape =
            |inputs, outputs, filter| ConvolutionShape { batch, groups: 1, inputs, outputs, side, filter, tile: None };
        let whole = [shape(wide, narrow, POINT), shape(narrow, narrow, SQUARE), shape(narrow, wide, POINT)];
        let shapes = whole.map(|shape| shape.scaled(request.scale));
        for shape in shapes {
            shape.check().map_err(|message| WorkloadError::Shape { workload: name, message })?;
        }
        let mut scaled = |name, elements| memory.array(name, elements, Scaling::Scales);
        let input = scaled("input", shapes[0].elements()[0]);
        let reduced = scaled("reduced", shapes[0].elements()[2]);
        let filtered = scaled("filtered", shapes[1].elements()[2]);
        let output = scaled("output", shapes[2].elements()[2]);
        let mut layer = |name, shape: ConvolutionShape, weights, (input, output), after| {
            let weights = memory.array(weights, shape.elements()[1], Scaling::Scales);
            (name, Convolution { shape, input, weights, output, after })
        };
        let layers = [
            layer("reduce", shapes[0], "reduce_weights", (input, reduced), Epilogue::Relu),
            layer("filter", shapes[1], "filter_weights", (reduced, filtered), Epilogue::Relu),
            layer("expand", shapes[2], "expand_weights", (filtered, output), Epilogue::ShortcutRelu(input)),
        ];
    }
    struct BottleneckBlock {
        layers: [(&'static str, Convolution); 3],
        seed: u64 = request.seed,
    }
}

impl BottleneckBlock {
    fn input(&self) -> Array<f32> {
        self.layers[0].1.input
    }
}

impl Instance for BottleneckBlock {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input(), |index| noise::unit(self.seed, index));
        for (which, (_, layer)) in (1..).zip(&self.layers) {
            memory.fill(layer.weights, |index| noise::unit(self.seed ^ which, index));
        }
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input());
        self.layers.iter().for_each(|(_, layer)| host.copy_to_device(layer.weights));
        for (name, layer) in &self.layers {
            layer.launch(host, name)?;
        }
        host.copy_to_host(self.layers[2].1.output);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let check =
            |(name, layer): &(&str, Convolution)| layer.verify(memory).map_err(|message| format!("{name}: {message}"));
        self.layers.iter().try_for_each(check)
    }
}
