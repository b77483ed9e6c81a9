//! LonestarGPU, irregular programs of Burtscher et al., IISWC 2012: one file each, and the graph that some of them share.

pub(super) mod bfs;
pub(super) mod dmr;
pub(super) mod mst;
pub(super) mod network;
pub(super) mod sp;
pub(super) mod sssp;
