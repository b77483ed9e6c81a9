//! AlexNet's second convolution: 5 × 5 over 27 × 27 pixels, in two groups of channels.
//!
//! An image has 96 × 27² inputs and 256 × 27² outputs, 1,026,432 bytes in single precision: 828 images and
//! the weights make the 812 MB of HMG's Table III.

use super::convolution::{BATCH, Filter, GROUPS, INPUTS, LAUNCHES, OUTPUTS, SIDE, TILE, lay_out};
use crate::prelude::*;

program! {
    /// convolution as an implicit matrix product: weights shared by all CTAs
    pub(crate) static ALEXNET_CONV2 = "alexnet-conv2", "Krizhevsky et al., 2012; HMG Table III (ML_AlexNet_conv2)";
    properties: nonlinear, data_independent;
    parameters {
        BATCH = 828, "HMG Table III: 812 MB (MiB) of inputs, weights and outputs in single precision";
        GROUPS = 2, "Krizhevsky et al., 2012, section 3.5: the kernels of conv2 see one GPU's half";
        INPUTS = 96, "Krizhevsky et al., 2012, section 3.5";
        OUTPUTS = 256, "Krizhevsky et al., 2012, section 3.5";
        SIDE = 27, "Krizhevsky et al., 2012: 55 × 55 after conv1, pooled to 27 × 27";
        LAUNCHES;
        TILE;
    }
    // Source of the filter: Krizhevsky et al., 2012, section 3.5; the padding keeps 27 × 27.
    lay_out: |name, request, memory| lay_out(name, request, memory, Filter { side: 5, stride: 1, padding: 2 });
}
