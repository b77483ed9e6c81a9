//! AlexNet's fourth convolution: 3 × 3 over 13 × 13 pixels, 384 channels to 384 in two groups.
//!
//! An image has 2 × 384 × 13² numbers, 519,168 bytes in single precision: 62 images and the weights are 33.2 MiB. In
//! tiles of 64 × 64 this gives 984 CTAs, close to the 1014 in NUMA-GPU's Table 2; 64 images would give 1014 CTAs in
//! 34.2 MiB.

use super::convolution::{BATCH, Filter, GROUPS, INPUTS, LAUNCHES, OUTPUTS, SIDE, TILE, lay_out};
use crate::prelude::*;

program! {
    /// 3 x 3 convolution of small images: weights a twelfth of the footprint
    pub(crate) static ALEXNET_CONV4 = "alexnet-conv4",
        "Krizhevsky et al., 2012; NUMA-GPU, Table 2 (ML-AlexNet-cudnn-Lev4)";
    properties: nonlinear, data_independent;
    parameters {
        BATCH = 62, "NUMA-GPU, Table 2: 32 MB of inputs, weights and outputs in single precision";
        GROUPS = 2, "Krizhevsky et al., 2012, section 3.5: the kernels of conv4 see one GPU's half";
        INPUTS = 384, "Krizhevsky et al., 2012, section 3.5";
        OUTPUTS = 384, "Krizhevsky et al., 2012, section 3.5";
        SIDE = 13, "Krizhevsky et al., 2012: 27 × 27 after conv2, pooled to 13 × 13";
        LAUNCHES;
        TILE;
    }
    // Source of the filter: Krizhevsky et al., 2012, section 3.5; the padding keeps 13 × 13.
    lay_out: |name, request, memory| lay_out(name, request, memory, Filter { side: 3, stride: 1, padding: 1 });
}
