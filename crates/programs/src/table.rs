//! The table of all shipped workloads, with a line each, and the workloads that a program registers.

use super::{amdapp, collectives, hip, hpc, lonestar, mgpusim, micro, multigpu, networks, other, pannotia, rodinia};
use std::sync::{PoisonError, RwLock};
use tombolo_workload::bench::{Workload, WorkloadError};

/// Declares the table, and each workload's suite: the folder in the table's line.
macro_rules! workloads {
    ($(&$suite:ident::$module:ident::$NAME:ident),+ $(,)?) => {
        /// Every shipped workload, in listing order.
        static WORKLOADS: &[&dyn Workload] = &[$(&$suite::$module::$NAME),+];

        /// Suite names of all workloads, in the same order as the workloads.
        static SUITES: &[&str] = &[$(stringify!($suite)),+];
    };
}

workloads![
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
    &hpc::lulesh::LULESH_HIP,
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
    &networks::gru::GRU,
    &networks::cnn::CNN,
    &hpc::hacc::HACC,
    &hpc::pennant::PENNANT,
    &pannotia::fw::FW,
    &pannotia::color_max::COLOR_MAX,
    &pannotia::sssp::SSSP,
    &micro::chase::CHASE,
    &micro::bandwidth::BANDWIDTH,
    &hip::babelstream::BABELSTREAM,
    &hip::square::SQUARE,
    &hip::streams::STREAMS,
    &rodinia::lud::LUD,
    &rodinia::hotspot3d::HOTSPOT3D,
    &rodinia::bfs::BFS,
    &rodinia::btree::BTREE,
    &rodinia::dwt2d::DWT2D,
    &multigpu::jacobi::JACOBI,
    &multigpu::diffusion::DIFFUSION,
    &multigpu::eqwp::EQWP,
    &multigpu::pagerank::PAGERANK,
    &multigpu::sssp::SSSP,
    &multigpu::als::ALS,
    &multigpu::hit::HIT,
    &multigpu::mbir::MBIR,
    &multigpu::banded::BANDED,
    &multigpu::hit_halo::HIT_HALO,
    &amdapp::blackscholes::BLACKSCHOLES,
    &amdapp::dct::DCT,
    &amdapp::dwthaar1d::DWTHAAR1D,
    &amdapp::histogram::HISTOGRAM,
    &amdapp::mersennetwister::MERSENNETWISTER,
    &amdapp::matrixtranspose::MATRIXTRANSPOSE,
    &amdapp::floydwarshall::FLOYDWARSHALL,
    &amdapp::matrixmultiplication::MATRIXMULTIPLICATION,
    &amdapp::radixsort::RADIXSORT,
    &amdapp::reduction::REDUCTION,
    &amdapp::scanlargearrays::SCANLARGEARRAYS,
    &amdapp::simpleconvolution::SIMPLECONVOLUTION,
    &amdapp::sobelfilter::SOBELFILTER,
    &collectives::operations::ALL_REDUCE,
    &collectives::operations::REDUCE_SCATTER,
    &collectives::operations::ALL_GATHER,
    &collectives::operations::ALL_TO_ALL,
    &collectives::operations::BROADCAST,
    &collectives::operations::SEND_RECEIVE,
];

/// Short names shared by programs in several suites, with the workload that each denotes: an alias never moves to
/// another program.
static ALIASES: &[(&str, &str)] =
    &[("bfs", "lonestar-bfs"), ("mst", "lonestar-mst"), ("sssp", "lonestar-sssp"), ("pagerank", "mgpusim-pagerank")];

/// Suite of the workloads that a program registers.
pub const REGISTERED: &str = "registered";

/// Workloads of the program that uses the library, in the order of their registration.
static OWN: RwLock<Vec<&'static dyn Workload>> = RwLock::new(Vec::new());

fn own() -> Vec<&'static dyn Workload> {
    OWN.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Makes a workload known to every command of this process, in the suite [`REGISTERED`].
///
/// # Errors
/// Returns [`WorkloadError::Registered`] if a workload has this name already, or this alias.
pub fn register(workload: &'static dyn Workload) -> Result<(), WorkloadError> {
    let mut own = OWN.write().unwrap_or_else(PoisonError::into_inner);
    let name = workload.name();
    let is_known = |other: &&dyn Workload| other.name() == name;
    if WORKLOADS.iter().any(is_known) || own.iter().any(is_known) || ALIASES.iter().any(|(alias, _)| *alias == name) {
        return Err(WorkloadError::Registered { name });
    }
    own.push(workload);
    Ok(())
}

/// Every shipped workload.
pub fn list() -> &'static [&'static dyn Workload] {
    WORKLOADS
}

/// Every workload known to this process: shipped, then registered.
pub fn all() -> impl Iterator<Item = &'static dyn Workload> {
    list().iter().copied().chain(own())
}

/// A workload's suite: the name of the folder with its source, or [`REGISTERED`].
pub fn suite(workload: &dyn Workload) -> &'static str {
    let place = list().iter().position(|known| known.name() == workload.name());
    place.map_or(REGISTERED, |place| SUITES[place])
}

/// Aliases for a workload: additional names accepted on the command line.
pub fn aliases(workload: &dyn Workload) -> impl Iterator<Item = &'static str> {
    let name = workload.name();
    ALIASES.iter().filter(move |(_, of)| *of == name).map(|(alias, _)| *alias)
}

/// Every name accepted by [`find`]: the workloads' own names, then their aliases.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().map(|workload| workload.name()).chain(ALIASES.iter().map(|(alias, _)| *alias))
}

/// Finds the workload with this name or alias; the error lists all names.
pub fn find(name: &str) -> Result<&'static dyn Workload, WorkloadError> {
    let meant = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, of)| *of);
    all().find(|workload| workload.name() == meant).ok_or_else(|| WorkloadError::Unknown {
        name: name.to_owned(),
        allowed: names().collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn an_alias_finds_its_program_and_is_no_other_name() {
        let all: Vec<_> = names().collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        for (alias, of) in ALIASES {
            assert_eq!((find(alias).unwrap().name(), find(of).unwrap().name()), (*of, *of));
        }
        assert_eq!(aliases(find("bfs").unwrap()).collect::<Vec<_>>(), ["bfs"]);
        assert_eq!(aliases(find("triad").unwrap()).count(), 0);
    }

    #[test]
    fn a_workload_is_of_the_suite_whose_folder_it_is_in() {
        let of = |name| suite(find(name).unwrap());
        assert_eq!([of("triad"), of("bfs"), of("namd"), of("spmv")], ["micro", "lonestar", "hpc", "mgpusim"]);
    }

    /// Experiments, cached results and scripts use these short names.
    #[test]
    fn short_names_mean_the_programs_that_they_always_meant() {
        let suite = |alias: &str| find(alias).unwrap().source();
        assert!(["bfs", "mst", "sssp"].iter().all(|alias| suite(alias).starts_with("LonestarGPU")));
        assert!(suite("pagerank").starts_with("MGPUSim"));
    }
}
