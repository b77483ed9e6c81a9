//! Rodinia 3.1, by Che et al., IISWC 2009: a file for each program.

pub(super) mod backprop;
pub(super) mod bfs;
pub(super) mod btree;
pub(super) mod dwt2d;
pub(super) mod euler3d;
pub(super) mod gaussian;
pub(super) mod hotspot;
pub(super) mod hotspot3d;
pub(super) mod lud;
pub(super) mod nw;
pub(super) mod pathfinder;
pub(super) mod srad;
