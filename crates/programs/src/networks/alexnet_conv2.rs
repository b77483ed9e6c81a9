//! AlexNet's second convolution: 5 × 5 over 27 × 27 pixels, in two groups of channels.
//!
//! An image has 96 × 27² inputs and 256 × 27² outputs, 1,026,432 bytes in single precision: 828 images and
//! the weights make the 812 MB of HMG's Table III.

use super::convolution::{ConvolutionLayer, Filter, parameters};
use tombolo_workload::parameter::Parameter;

static PARAMETERS: [Parameter; 7] = parameters(
    ("828", "HMG Table III: 812 MB (MiB) of inputs, weights and outputs in single precision"),
    ("2", "Krizhevsky et al., 2012, section 3.5: the kernels of conv2 see one GPU's half"),
    ("96", "Krizhevsky et al., 2012, section 3.5"),
    ("256", "Krizhevsky et al., 2012, section 3.5"),
    ("27", "Krizhevsky et al., 2012: 55 × 55 after conv1, pooled to 27 × 27"),
);

/// The workload's entry in the table. Source of the filter: Krizhevsky et al., 2012, section 3.5; the padding keeps 27
/// × 27.
pub(crate) static ALEXNET_CONV2: ConvolutionLayer = ConvolutionLayer {
    name: "alexnet-conv2",
    about: "convolution as an implicit matrix product: weights shared by all CTAs",
    source: "Krizhevsky et al., 2012; HMG Table III (ML_AlexNet_conv2)",
    filter: Filter { side: 5, stride: 1, padding: 2 },
    parameters: &PARAMETERS,
};
