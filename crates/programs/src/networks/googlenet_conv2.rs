//! GoogLeNet's second convolution: 3 × 3 over 56 × 56 pixels, 64 channels to 192.
//!
//! An image has 64 × 56² inputs and 192 × 56² outputs, 3,211,264 bytes in single precision: 384 images and
//! the weights make the 1.15 GB of HMG's Table III.

use super::convolution::{BATCH, Filter, GROUPS, INPUTS, LAUNCHES, OUTPUTS, SIDE, TILE, lay_out};
use crate::prelude::*;

program! {
    /// 3 x 3 convolution as an implicit matrix product: neighbouring patches overlap
    pub(crate) static GOOGLENET_CONV2 = "googlenet-conv2",
        "Szegedy et al., 2015, Table 1; HMG Table III (ML_GoogLeNet_conv2)";
    properties: nonlinear, data_independent;
    parameters {
        BATCH = 384, "HMG Table III: 1.15 GB (GiB) of inputs, weights and outputs in single precision";
        GROUPS = 1, "Szegedy et al., 2015, Table 1: no groups";
        INPUTS = 64, "Szegedy et al., 2015, Table 1: 3 × 3 reduce of the second convolution";
        OUTPUTS = 192, "Szegedy et al., 2015, Table 1";
        SIDE = 56, "Szegedy et al., 2015, Table 1: 56 × 56 after the first pooling";
        LAUNCHES;
        TILE;
    }
    // Source of the filter: Szegedy et al., 2015, Table 1 (3 × 3 / 1, 56 × 56 in and out).
    lay_out: |name, request, memory| lay_out(name, request, memory, Filter { side: 3, stride: 1, padding: 1 });
}
