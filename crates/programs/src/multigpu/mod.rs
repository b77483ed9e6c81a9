//! Programs written for several GPUs: they partition their work by the number of GPUs, and launch on all GPUs at once.
//!
//! Every array is one address range accessible to all GPUs, like after `cudaMallocManaged`; the design decides how data
//! reaches its readers. Layouts and results do not depend on the number of GPUs; grids do ([`partition`]). Source: GPS,
//! Table 2, which lists the programs. Each file names the public program from which its structure and defaults come.

pub(super) mod als;
pub(super) mod banded;
pub(super) mod diffusion;
pub(super) mod eqwp;
pub(super) mod hit;
pub(super) mod hit_halo;
pub(super) mod jacobi;
mod links;
pub(super) mod mbir;
pub(super) mod pagerank;
pub(crate) mod partition;
mod rmat;
pub(super) mod sssp;
mod sum;

#[cfg(test)]
mod tests;

/// Number of instructions for a division in double precision. Source: LLVM AMDGPU, expansion of `fdiv`, counted.
const DIVISION: u16 = 10;
