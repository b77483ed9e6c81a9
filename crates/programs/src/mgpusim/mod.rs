//! The kernels that MGPUSim (sarchlab/mgpusim) timed on an AMD MI300A: a file per kernel.

pub(super) mod atax;
pub(super) mod bicg;
pub(super) mod bitonicsort;
pub(super) mod conv2d;
pub(super) mod fastwalshtransform;
pub(super) mod fft;
pub(super) mod fir;
pub(super) mod floydwarshall;
pub(super) mod im2col;
pub(super) mod kmeans;
pub(super) mod matrixmultiplication;
pub(super) mod matrixtranspose;
mod matrixvector;
pub(super) mod memcopy;
pub(super) mod nbody;
pub(super) mod pagerank;
pub(super) mod relu;
pub(super) mod simpleconvolution;
pub(super) mod spmv;
pub(super) mod vectoradd;

/// Origin of all kernels measured on an MI300A.
pub(crate) const MI300A_KERNELS: &str =
    "MGPUSim (sarchlab/mgpusim), gpu_perf_scripts: the kernels timed on an AMD MI300A";
