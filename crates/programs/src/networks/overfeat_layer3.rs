//! OverFeat's third convolution, accurate model: 3 × 3 over 15 × 15 pixels, 256 channels to 512.
//!
//! An image has (256 + 512) × 15² numbers, 691,200 bytes in single precision: 528 images and the weights are 352.6 MiB.
//! A mini-batch of 256 images, about half, needs the 1800 CTAs of NUMA-GPU's Table 2 in tiles of 128 × 128; two
//! mini-batches of 264 reach the table's footprint within a tenth.

use super::convolution::{BATCH, Filter, GROUPS, INPUTS, LAUNCHES, OUTPUTS, SIDE, TILE, lay_out};
use crate::prelude::*;

program! {
    /// 3 x 3 convolution of small images with many channels
    pub(crate) static OVERFEAT_LAYER3 = "overfeat-layer3",
        "Sermanet et al., 2014, Table 3 (accurate model); NUMA-GPU, Table 2 (ML-OverFeat-cudann-Lev3)";
    properties: nonlinear, data_independent;
    parameters {
        BATCH = 528, "NUMA-GPU, Table 2: 388 MB of inputs, weights and outputs in single precision, less a tenth";
        GROUPS = 1, "Sermanet et al., 2014, Table 3: no groups";
        INPUTS = 256, "Sermanet et al., 2014, Table 3, layer 2";
        OUTPUTS = 512, "Sermanet et al., 2014, Table 3, layer 3";
        SIDE = 15, "Sermanet et al., 2014, Table 3: 15 × 15 after the second pooling";
        LAUNCHES;
        TILE;
    }
    // Source of the filter: Sermanet et al., 2014, Table 3, layer 3 (3 × 3, stride 1 × 1, padded).
    lay_out: |name, request, memory| lay_out(name, request, memory, Filter { side: 3, stride: 1, padding: 1 });
}
