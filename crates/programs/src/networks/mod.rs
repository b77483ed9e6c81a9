//! Layers of neural networks: a file per layer, plus the products, convolutions and recurrences that layers share.

pub(super) mod alexnet_conv2;
pub(super) mod alexnet_conv4;
pub(super) mod cnn;
mod convolution;
mod gemm;
pub(super) mod googlenet_conv2;
pub(super) mod gru;
pub(super) mod lstm_layer2;
pub(super) mod overfeat_layer1;
pub(super) mod overfeat_layer3;
mod product;
mod recurrent;
pub(super) mod resnet;
pub(super) mod rnn_dgrad;
pub(super) mod rnn_forward;
pub(super) mod rnn_wgrad;
