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
pub(super) mod partition;
mod rmat;
pub(super) mod sssp;
mod sum;
#[cfg(test)]
mod tests;

use tombolo_workload::bench::{Benchmark, Instance, Request, Workload, WorkloadError};
use tombolo_workload::parameter::Parameter;
use tombolo_workload::simt::Memory;

/// Number of instructions for a division in double precision. Source: LLVM AMDGPU, expansion of `fdiv`, counted.
const DIVISION: u16 = 10;

/// A workload built from a [`Benchmark`], which also partitions its grids by GPUs.
pub(super) struct MultiGpu(pub(super) Benchmark);

impl Workload for MultiGpu {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn about(&self) -> &'static str {
        self.0.about()
    }

    fn source(&self) -> &'static str {
        self.0.source()
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.0.parameters()
    }

    fn nonlinear(&self) -> bool {
        self.0.nonlinear()
    }

    fn data_independent(&self) -> bool {
        self.0.data_independent()
    }

    fn partitioned_by_gpus(&self) -> bool {
        true
    }

    fn lay_out(&self, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
        self.0.lay_out(request, memory)
    }
}
