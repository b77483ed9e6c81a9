//! The table of the workloads, one line each.

use super::workload::{Workload, WorkloadError};
use super::{hpc, lonestar, mgpusim, micro, networks, other, rodinia};

/// Every workload that ships, in the order in which they are listed.
static WORKLOADS: &[&dyn Workload] = &[
    &micro::triad::TRIAD,
    &micro::stencil2d::STENCIL2D,
    &rodinia::pathfinder::PATHFINDER,
    &rodinia::nw::NW,
    &lonestar::bfs::BFS,
    &lonestar::mst::MST,
    &networks::alexnet_conv4::ALEXNET_CONV4,
    &networks::overfeat_layer3::OVERFEAT_LAYER3,
    &lonestar::sssp::SSSP,
    &lonestar::sp::SP,
    &lonestar::dmr::DMR,
    &hpc::rsbench::RSBENCH,
    &hpc::mcb::MCB,
    &hpc::rabbitct::RABBITCT,
    &other::raytracing::RAYTRACING,
    &networks::rnn_forward::RNN_FORWARD,
    &networks::rnn_dgrad::RNN_DGRAD,
    &networks::rnn_wgrad::RNN_WGRAD,
    &networks::lstm_layer2::LSTM_LAYER2,
    &networks::alexnet_conv2::ALEXNET_CONV2,
    &networks::googlenet_conv2::GOOGLENET_CONV2,
    &networks::overfeat_layer1::OVERFEAT_LAYER1,
    &networks::resnet::RESNET,
    &hpc::cusolver::CUSOLVER,
    &hpc::comd::COMD,
    &hpc::hpgmg::HPGMG,
    &hpc::miniamr::MINIAMR,
    &hpc::minicontact::MINICONTACT,
    &hpc::namd::NAMD,
    &hpc::nekbone::NEKBONE,
    &hpc::snap::SNAP,
    &rodinia::backprop::BACKPROP,
    &rodinia::srad::SRAD,
    &rodinia::hotspot::HOTSPOT,
    &rodinia::gaussian::GAUSSIAN,
    &rodinia::euler3d::EULER3D,
    &hpc::lulesh::LULESH,
    &hpc::lulesh::LULESH_UNSTRUCTURED,
    &hpc::amg::AMG,
    &other::bitcoin::BITCOIN,
    &mgpusim::vectoradd::VECTORADD,
    &mgpusim::relu::RELU,
    &mgpusim::memcopy::MEMCOPY,
    &mgpusim::matrixtranspose::MATRIXTRANSPOSE,
    &mgpusim::matrixmultiplication::MATRIXMULTIPLICATION,
    &mgpusim::simpleconvolution::SIMPLECONVOLUTION,
    &mgpusim::conv2d::CONV2D,
    &mgpusim::im2col::IM2COL,
    &mgpusim::fir::FIR,
    &mgpusim::fft::FFT,
    &mgpusim::fastwalshtransform::FASTWALSHTRANSFORM,
    &mgpusim::bitonicsort::BITONICSORT,
    &mgpusim::floydwarshall::FLOYDWARSHALL,
    &mgpusim::kmeans::KMEANS,
    &mgpusim::pagerank::PAGERANK,
    &mgpusim::spmv::SPMV,
    &mgpusim::atax::ATAX,
    &mgpusim::bicg::BICG,
    &mgpusim::nbody::NBODY,
    &micro::chase::CHASE,
    &micro::bandwidth::BANDWIDTH,
];

/// Every workload.
pub fn list() -> &'static [&'static dyn Workload] {
    WORKLOADS
}

/// The workload of this name, or an error that lists all names.
pub fn find(name: &str) -> Result<&'static dyn Workload, WorkloadError> {
    list().iter().copied().find(|workload| workload.name() == name).ok_or_else(|| WorkloadError::Unknown {
        name: name.to_owned(),
        allowed: list().iter().map(|workload| workload.name()).collect::<Vec<_>>().join(", "),
    })
}
