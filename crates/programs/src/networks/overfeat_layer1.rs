//! OverFeat's first convolution, accurate model: 7 × 7 at every second pixel of 221 × 221 colour images.
//!
//! An image has 3 × 221² inputs and 96 × 108² outputs, 5,065,068 bytes in single precision: 128 images and
//! the weights are 618.3 MiB, the 618 MB of HMG's Table III. (The fast model's 11 × 11 / 4 over 231 × 231
//! would need 351 images.)

use super::convolution::{BATCH, Filter, GROUPS, INPUTS, LAUNCHES, OUTPUTS, SIDE, TILE, lay_out};
use crate::prelude::*;

program! {
    /// 7 x 7 convolution at stride 2: little input, eight times as much output
    pub(crate) static OVERFEAT_LAYER1 = "overfeat-layer1",
        "Sermanet et al., 2014, Table 3 (accurate model); HMG Table III (ML_overfeat_layer1)";
    properties: nonlinear, data_independent;
    parameters {
        BATCH = 128, "Sermanet et al., 2014, section 3.1: mini-batches of 128; gives HMG Table III's 618 MB (MiB)";
        GROUPS = 1, "Sermanet et al., 2014, Table 3: no groups";
        INPUTS = 3, "Sermanet et al., 2014, section 3.1: colour images";
        OUTPUTS = 96, "Sermanet et al., 2014, Table 3, layer 1";
        SIDE = 221, "Sermanet et al., 2014, Table 3: crops of 221 × 221";
        LAUNCHES;
        TILE;
    }
    // Source of the filter: Sermanet et al., 2014, Table 3, layer 1 (7 × 7, stride 2 × 2).
    lay_out: |name, request, memory| lay_out(name, request, memory, Filter { side: 7, stride: 2, padding: 0 });
}
