//! Pannotia, graph programs of Che et al., IISWC 2013: one file each, and the rows that some of them share.

pub(super) mod color_max;
pub(super) mod fw;
mod rows;
pub(super) mod sssp;
