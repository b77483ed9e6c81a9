//! The language of programs, and what many of the programs share.

pub(crate) use crate::amdapp::instruction_counts::InstructionCounts;
pub(crate) use crate::cell_grid::CellGrid;
pub(crate) use crate::grid_barrier::GridBarrier;
pub(crate) use crate::mgpusim::MI300A_KERNELS;
pub(crate) use crate::multigpu::partition::{CtaTile, Partition, PartitionGrid};
pub(crate) use crate::reference::{compare_f64, equal};
pub(crate) use crate::scope::{SCOPE, scope};
pub(crate) use tombolo_workload::prelude::*;
