//! The benchmarks: one file each, one line in the table.

mod alexnet_conv2;
mod alexnet_conv4;
mod amg;
mod atax;
mod backprop;
mod bandwidth;
mod benchmark;
mod bfs;
mod bicg;
mod bitcoin;
mod bitonicsort;
mod cells;
mod chase;
mod comd;
mod conv2d;
mod convolution;
mod cusolver;
mod dmr;
mod euler3d;
mod fastwalshtransform;
mod fft;
mod fir;
mod floydwarshall;
mod gaussian;
mod gemm;
mod googlenet_conv2;
mod grid_barrier;
mod hotspot;
mod hpgmg;
mod im2col;
mod kmeans;
mod lstm_layer2;
mod lulesh;
mod matrixmultiplication;
mod matrixtranspose;
mod matrixvector;
mod mcb;
mod memcopy;
mod miniamr;
mod minicontact;
mod mst;
mod namd;
mod nbody;
mod nekbone;
mod network;
mod numbering;
mod nw;
mod overfeat_layer1;
mod overfeat_layer3;
mod pagerank;
mod pathfinder;
mod product;
mod rabbitct;
mod raytracing;
mod recurrent;
mod reference;
mod relu;
mod resnet;
mod rnn_dgrad;
mod rnn_forward;
mod rnn_wgrad;
mod rsbench;
mod scope;
mod simpleconvolution;
mod snap;
mod sp;
mod spmv;
mod srad;
mod sssp;
mod stencil2d;
mod triad;
mod vectoradd;

use crate::graph::GraphError;
use crate::parameter::{Parameter, ParameterError, Values};
use crate::record::{Host, RecordError, RecordOptions, Recording, Room, mebibytes};
use crate::scale::Scale;
use crate::simt::{ArrayInfo, Backing, Memory};
use thiserror::Error;
use tombolo_types::stream::KernelInfo;

/// Every workload that ships, in the order in which they are listed.
static WORKLOADS: &[&dyn Workload] = &[
    &triad::TRIAD,
    &stencil2d::STENCIL2D,
    &pathfinder::PATHFINDER,
    &nw::NW,
    &bfs::BFS,
    &mst::MST,
    &alexnet_conv4::ALEXNET_CONV4,
    &overfeat_layer3::OVERFEAT_LAYER3,
    &sssp::SSSP,
    &sp::SP,
    &dmr::DMR,
    &rsbench::RSBENCH,
    &mcb::MCB,
    &rabbitct::RABBITCT,
    &raytracing::RAYTRACING,
    &rnn_forward::RNN_FORWARD,
    &rnn_dgrad::RNN_DGRAD,
    &rnn_wgrad::RNN_WGRAD,
    &lstm_layer2::LSTM_LAYER2,
    &alexnet_conv2::ALEXNET_CONV2,
    &googlenet_conv2::GOOGLENET_CONV2,
    &overfeat_layer1::OVERFEAT_LAYER1,
    &resnet::RESNET,
    &cusolver::CUSOLVER,
    &comd::COMD,
    &hpgmg::HPGMG,
    &miniamr::MINIAMR,
    &minicontact::MINICONTACT,
    &namd::NAMD,
    &nekbone::NEKBONE,
    &snap::SNAP,
    &backprop::BACKPROP,
    &srad::SRAD,
    &hotspot::HOTSPOT,
    &gaussian::GAUSSIAN,
    &euler3d::EULER3D,
    &lulesh::LULESH,
    &lulesh::LULESH_UNSTRUCTURED,
    &amg::AMG,
    &bitcoin::BITCOIN,
    &vectoradd::VECTORADD,
    &relu::RELU,
    &memcopy::MEMCOPY,
    &matrixtranspose::MATRIXTRANSPOSE,
    &matrixmultiplication::MATRIXMULTIPLICATION,
    &simpleconvolution::SIMPLECONVOLUTION,
    &conv2d::CONV2D,
    &im2col::IM2COL,
    &fir::FIR,
    &fft::FFT,
    &fastwalshtransform::FASTWALSHTRANSFORM,
    &bitonicsort::BITONICSORT,
    &floydwarshall::FLOYDWARSHALL,
    &kmeans::KMEANS,
    &pagerank::PAGERANK,
    &spmv::SPMV,
    &atax::ATAX,
    &bicg::BICG,
    &nbody::NBODY,
    &chase::CHASE,
    &bandwidth::BANDWIDTH,
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

/// A benchmark: what it is, and how it is laid out at a size.
pub trait Workload: Sync {
    /// Name on the command line.
    fn name(&self) -> &'static str;
    /// One line for a list.
    fn about(&self) -> &'static str;
    /// Where its shape comes from.
    fn source(&self) -> &'static str;
    /// Its parameters.
    fn parameters(&self) -> &'static [Parameter];
    /// Whether work does not follow footprint, so that a scaled run answers a different question.
    fn nonlinear(&self) -> bool {
        false
    }
    /// Whether no address and no branch depends on data, so that addresses alone give the same streams.
    fn address_only(&self) -> bool {
        false
    }
    /// Adds the arrays to `memory` and returns the program over them.
    fn lay_out(&self, request: &Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError>;
}

/// Refuses more items than 32-bit signed indices, which CUDA sources use, can count.
fn check_indices(workload: &'static str, count: u64, items: &str) -> Result<(), WorkloadError> {
    if count <= i32::MAX as u64 {
        return Ok(());
    }
    Err(WorkloadError::Shape { workload, message: format!("{count} {items} exceed 2^31 - 1") })
}

/// Size, parameters and seed of one instance of a workload.
#[derive(Clone, Debug)]
pub struct Request {
    /// Scale of the inputs.
    pub scale: Scale,
    /// Checked parameters.
    pub values: Values,
    /// Seed of generated inputs.
    pub seed: u64,
}

impl Request {
    /// A request for `workload`; `given` are (key, value) pairs of the user.
    pub fn new(
        workload: &dyn Workload,
        scale: Scale,
        given: &[(String, String)],
        seed: u64,
    ) -> Result<Request, WorkloadError> {
        let values = Values::check(workload.name(), workload.parameters(), given)?;
        Ok(Request { scale, values, seed })
    }
}

/// A workload over the arrays of one address space.
pub trait Instance {
    /// Sets the inputs.
    fn fill(&self, memory: &Memory);
    /// The host program.
    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError>;
    /// Compares the result with a plain reference; `Err` says where they differ.
    fn verify(&self, memory: &Memory) -> Result<(), String>;
}

/// Whether a recording computes values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Values where they decide addresses, addresses alone elsewhere: the same streams, sooner.
    #[default]
    Auto,
    /// Values, and the result is checked against the reference.
    Verify,
    /// Addresses alone; refused by workloads whose addresses depend on data.
    AddressOnly,
}

/// A workload could not be recorded.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// No such workload.
    #[error("no workload is named `{name}`; there are {allowed}")]
    Unknown {
        /// The name given.
        name: String,
        /// The names there are.
        allowed: String,
    },
    /// A parameter that does not fit.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// Parameters that do not fit each other or the scale.
    #[error("{workload}: {message}")]
    Shape {
        /// The workload.
        workload: &'static str,
        /// What does not fit.
        message: String,
    },
    /// The arrays do not fit the host.
    #[error("{workload} needs {} MiB of memory for its arrays, and the host has {} MiB", mebibytes(*.needs), .has >> 20)]
    Memory {
        /// The workload.
        workload: &'static str,
        /// Bytes of its arrays.
        needs: u64,
        /// Bytes that there are.
        has: u64,
    },
    /// A user's graph could not be read.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The program broke a rule of the language, or its streams could not be kept.
    #[error("{workload}: {error}")]
    Record {
        /// The workload.
        workload: &'static str,
        /// What happened.
        error: RecordError,
    },
    /// The result is wrong.
    #[error("{workload} computed a wrong result: {message}")]
    Wrong {
        /// The workload.
        workload: &'static str,
        /// Where it differs from the reference.
        message: String,
    },
}

/// Lays a workload out; what does not fit is told with the scale, which may have made it so.
fn lay_out(
    workload: &dyn Workload,
    request: &Request,
    memory: &mut Memory,
) -> Result<Box<dyn Instance>, WorkloadError> {
    workload.lay_out(request, memory).map_err(|error| match error {
        WorkloadError::Shape { workload, message } if request.scale != Scale::FULL => {
            WorkloadError::Shape { workload, message: format!("{message}, at scale {}", request.scale) }
        }
        other => other,
    })
}

/// The arrays of a workload at a size, without allocating or running anything large.
pub fn footprint(workload: &dyn Workload, request: &Request) -> Result<Vec<ArrayInfo>, WorkloadError> {
    let mut memory = Memory::new(Backing::AddressOnly);
    lay_out(workload, request, &mut memory)?;
    Ok(memory.arrays().to_vec())
}

/// The launches of a workload at a size, in order, without running any. Refused by workloads whose addresses depend on
/// data, for so may their launches.
pub fn plan(workload: &dyn Workload, request: &Request) -> Result<Vec<KernelInfo>, WorkloadError> {
    let name = workload.name();
    if !workload.address_only() {
        let message = "its launches may depend on its data".to_owned();
        return Err(WorkloadError::Shape { workload: name, message });
    }
    let (mut memory, options) = (Memory::new(Backing::AddressOnly), RecordOptions::default());
    let instance = lay_out(workload, request, &mut memory)?;
    let mut host = Host::planning(&memory, &options);
    instance.run(&mut host).map_err(|error| WorkloadError::Record { workload: name, error })?;
    Ok(host.into_plan())
}

/// Runs a workload once and records it.
pub fn record(
    workload: &dyn Workload,
    request: &Request,
    options: &RecordOptions,
    mode: Mode,
) -> Result<Recording, WorkloadError> {
    let name = workload.name();
    if mode == Mode::AddressOnly && !workload.address_only() {
        let message = "its addresses depend on its data".to_owned();
        return Err(WorkloadError::Shape { workload: name, message });
    }
    let computes = mode == Mode::Verify || !workload.address_only();
    // Contents come after the layout, which says how much they take.
    let mut memory = Memory::new(Backing::AddressOnly);
    let instance = lay_out(workload, request, &mut memory)?;
    if computes {
        let needs = memory.bytes();
        if let Some(has) = Room::of(options).available().filter(|has| needs > *has) {
            return Err(WorkloadError::Memory { workload: name, needs, has });
        }
        memory.back();
        instance.fill(&memory);
    }
    let mut host = Host::new(&memory, options);
    instance.run(&mut host).map_err(|error| WorkloadError::Record { workload: name, error })?;
    let recording = host.finish(name);
    if mode == Mode::Verify {
        instance.verify(&memory).map_err(|message| WorkloadError::Wrong { workload: name, message })?;
    }
    Ok(recording)
}

#[cfg(test)]
mod pinned;
#[cfg(test)]
mod table2;
#[cfg(test)]
mod tests;
