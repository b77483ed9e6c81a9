//! Pannotia, graph programs by Che et al., IISWC 2013: a file for each program, and the rows shared by several
//! programs.

pub(super) mod color_max;
pub(super) mod fw;
mod rows;
pub(super) mod sssp;
