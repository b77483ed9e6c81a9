//! LonestarGPU, irregular programs by Burtscher et al., IISWC 2012: a file for each program, and the graph shared by
//! several programs.

pub(super) mod bfs;
pub(super) mod dmr;
pub(super) mod mst;
pub(super) mod network;
pub(super) mod sp;
pub(super) mod sssp;
