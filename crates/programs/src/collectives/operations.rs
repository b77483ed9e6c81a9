//! The programs: an operation each, with a choice of algorithms.

use super::ranks::{BufferSizes, ELEMENT, Ranks, Shape};
use super::{direct, ring, tree};
use crate::prelude::*;

/// Values of inputs, so that sums over all ranks are exact.
const VALUES: u64 = 1 << 12;

/// An operation by an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collective {
    AllReduceRing,
    AllReduceTree,
    AllReduceOneShot,
    AllReduceTwoShot,
    ReduceScatterRing,
    ReduceScatterDirect,
    AllGatherRing,
    AllGatherDirect,
    AllToAll,
    Broadcast,
    SendReceive,
}

parameters! {
    /// bytes of the larger of a GPU's input and output, at scale 1; scales
    const BYTES = bytes: count(4..=1 << 32) = 16_777_216, "assumed: a size of activations; nccl-tests sweeps it";
    /// CTAs on each GPU, at scale 1; scales
    const CTAS = ctas: count(1..=1024) = 32, "NCCL: at most 32 channels on a GPU";
    /// threads per CTA
    const THREADS = threads: count(32..=1024) = 512, "NCCL, vLLM: 512 threads per CTA";
    /// most bytes of a message of a CTA; rounded up to whole lines
    const SLICE = slice: count(128..=1 << 30) = 131_072, "assumed: a quarter of NCCL's step of 512 KiB";
    /// launches of the operation, behind a launch in which each GPU writes its own memory
    const ITERATIONS = iterations: count(1..=1000) = 1, "assumed";
}

const ALGORITHM: &str = "NCCL and vLLM";
const SOURCE: &str = "NCCL and nccl-tests: sizes, order of steps; stores and loads of peers' memory";

program! {
    /// all GPUs receive the sum of all inputs
    pub(crate) static ALL_REDUCE = "all-reduce", SOURCE;
    properties: data_independent, partitioned_by_gpus;
    parameters {
        /// ring: sums and results travel along a ring; tree: along two binary trees; one-shot: each GPU loads all inputs;
        /// two-shot: each adds up a part, which the others then load
        algorithm: choice("ring", "tree", "one-shot", "two-shot") = "ring", ALGORITHM;
        BYTES; CTAS; THREADS; SLICE; ITERATIONS;
    }
    lay_out: lay_out;
}

program! {
    /// each GPU receives its part of the sum of all inputs
    pub(crate) static REDUCE_SCATTER = "reduce-scatter", SOURCE;
    properties: data_independent, partitioned_by_gpus;
    parameters {
        /// ring: sums travel along a ring; direct: each GPU loads its part of all inputs
        algorithm: choice("ring", "direct") = "ring", ALGORITHM;
        BYTES; CTAS; THREADS; SLICE; ITERATIONS;
    }
    lay_out: lay_out;
}

program! {
    /// all GPUs receive all inputs, one behind the other
    pub(crate) static ALL_GATHER = "all-gather", SOURCE;
    properties: data_independent, partitioned_by_gpus;
    parameters {
        /// ring: parts travel along a ring; direct: each GPU stores its part to all others
        algorithm: choice("ring", "direct") = "ring", ALGORITHM;
        BYTES; CTAS; THREADS; SLICE; ITERATIONS;
    }
    lay_out: lay_out;
}

program! {
    /// each GPU sends another part of its input to each other
    pub(crate) static ALL_TO_ALL = "all-to-all", SOURCE;
    properties: data_independent, partitioned_by_gpus;
    parameters { BYTES; CTAS; THREADS; SLICE; ITERATIONS; }
    lay_out: lay_out;
}

program! {
    /// all GPUs receive the input of GPU 0, handed on along a ring
    pub(crate) static BROADCAST = "broadcast", SOURCE;
    properties: data_independent, partitioned_by_gpus;
    parameters { BYTES; CTAS; THREADS; SLICE; ITERATIONS; }
    lay_out: lay_out;
}

program! {
    /// each GPU sends its input to the next one
    pub(crate) static SEND_RECEIVE = "send-receive", SOURCE;
    properties: data_independent, partitioned_by_gpus;
    parameters { BYTES; CTAS; THREADS; SLICE; ITERATIONS; }
    lay_out: lay_out;
}

/// The operation that a request names.
fn collective(name: &str, algorithm: &str) -> Collective {
    match (name, algorithm) {
        ("all-reduce", "ring") => Collective::AllReduceRing,
        ("all-reduce", "tree") => Collective::AllReduceTree,
        ("all-reduce", "one-shot") => Collective::AllReduceOneShot,
        ("all-reduce", _) => Collective::AllReduceTwoShot,
        ("reduce-scatter", "ring") => Collective::ReduceScatterRing,
        ("reduce-scatter", _) => Collective::ReduceScatterDirect,
        ("all-gather", "ring") => Collective::AllGatherRing,
        ("all-gather", _) => Collective::AllGatherDirect,
        ("all-to-all", _) => Collective::AllToAll,
        ("broadcast", _) => Collective::Broadcast,
        (_, _) => Collective::SendReceive,
    }
}

impl Collective {
    /// Parts into which a buffer is cut.
    fn chunks(self, ranks: u64) -> u64 {
        match self {
            Collective::AllReduceTree => 2,
            Collective::AllReduceOneShot | Collective::Broadcast | Collective::SendReceive => 1,
            Collective::AllReduceRing
            | Collective::AllReduceTwoShot
            | Collective::ReduceScatterRing
            | Collective::ReduceScatterDirect
            | Collective::AllGatherRing
            | Collective::AllGatherDirect
            | Collective::AllToAll => ranks,
        }
    }

    /// Messages that a channel of a rank receives per slice. Meetings happen once and have a message per rank.
    fn messages(self, ranks: u64) -> u64 {
        match self {
            Collective::AllReduceRing => 2 * (ranks - 1),
            Collective::AllReduceTree => 6,
            Collective::AllReduceTwoShot => 3 * ranks,
            Collective::AllReduceOneShot
            | Collective::ReduceScatterDirect
            | Collective::AllGatherDirect
            | Collective::AllToAll => 2 * ranks,
            Collective::ReduceScatterRing | Collective::AllGatherRing => ranks - 1,
            Collective::Broadcast | Collective::SendReceive => 1,
        }
    }

    /// Sizes of buffers, where the larger of input and output has `elements`.
    fn sizes(self, elements: u64, chunk: u64) -> BufferSizes {
        let (input, output, staging) = match self {
            Collective::AllReduceRing => (elements, elements, elements),
            Collective::AllReduceTree => (elements, elements, 2 * elements),
            Collective::AllReduceTwoShot => (elements, elements, chunk),
            Collective::ReduceScatterRing => (elements, chunk, elements),
            Collective::ReduceScatterDirect => (elements, chunk, 0),
            Collective::AllGatherRing | Collective::AllGatherDirect => (chunk, elements, 0),
            Collective::AllReduceOneShot | Collective::AllToAll | Collective::Broadcast | Collective::SendReceive => {
                (elements, elements, 0)
            }
        };
        BufferSizes { input, output, staging }
    }

    /// Element `index` of rank `rank`'s output.
    fn expected(self, (rank, ranks): (u64, u64), chunk: u64, index: u64) -> f32 {
        let total = |index: u64| (0..ranks).map(|rank| value(rank, index)).sum();
        match self {
            Collective::AllReduceRing
            | Collective::AllReduceTree
            | Collective::AllReduceOneShot
            | Collective::AllReduceTwoShot => total(index),
            Collective::ReduceScatterRing | Collective::ReduceScatterDirect => total(rank * chunk + index),
            Collective::AllGatherRing | Collective::AllGatherDirect => value(index / chunk, index % chunk),
            Collective::AllToAll => value(index / chunk, rank * chunk + index % chunk),
            Collective::Broadcast => value(0, index),
            Collective::SendReceive => value((rank + ranks - 1) % ranks, index),
        }
    }
}

/// Element `index` of rank `rank`'s input.
fn value(rank: u64, index: u64) -> f32 {
    ((index * 7 + rank * 1009 + 1) % VALUES) as f32
}

/// A request's buffers.
struct Operation {
    collective: Collective,
    ranks: Ranks,
    iterations: u64,
}

fn lay_out(name: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let gpus = u64::from(request.gpus());
    let has_algorithm = !matches!(name, "all-to-all" | "broadcast" | "send-receive");
    let collective = collective(name, if has_algorithm { request.values.text("algorithm") } else { "" });
    let chunks = collective.chunks(gpus);
    // Threads access 16 bytes, and parts of different CTAs share no line.
    let scaled = request.scale.of(request.values.count("bytes"));
    let bytes = request.fit_multiple("bytes", scaled.max(1), 128 * chunks);
    let elements = bytes / ELEMENT;
    check_indices(name, 2 * elements, "elements of 4 bytes")?;
    let chunk = elements / chunks;
    let ctas = request.fit_least("ctas", request.scale.of(request.values.count("ctas")), 1);
    let threads = request.values.count("threads");
    require(name, threads.is_multiple_of(32), || format!("{threads} threads are no whole warps of 32"))?;
    let shape = Shape {
        ranks: gpus as usize,
        ctas,
        threads: threads as u32,
        chunk,
        slice: request.values.count("slice").next_multiple_of(128) / ELEMENT,
        messages: collective.messages(gpus).max(1),
    };
    let ranks = Ranks::lay_out(shape, collective.sizes(elements, chunk), memory);
    Ok(Box::new(Operation { collective, ranks, iterations: request.values.count("iterations") }))
}

impl Operation {
    fn grid(&self, name: &str) -> Grid {
        let Shape { ranks, ctas, threads, .. } = self.ranks.shape;
        let parts = (0..ranks as u64).map(|rank| (rank * ctas) as u32).collect();
        Grid::new(name, ranks as u64 * ctas, threads).parts(parts)
    }

    /// Each rank writes its own memory: it adds 1 to what the host has copied to its input, and clears the rest.
    fn produce(&self, cta: &mut Cta<'_>) {
        let ranks = &self.ranks;
        let place = ranks.place(cta.index());
        let (rank, each) = (place.rank, u64::from(cta.threads()) * ranks.shape.ctas);
        let first = place.channel * u64::from(cta.threads());
        let rounds = |len: u64| (first..len).step_by(each as usize);
        let (input, signals) = (ranks.input[rank], ranks.signals[rank]);
        let cleared: Vec<Array<f32>> =
            std::iter::once(ranks.output[rank]).chain(ranks.staging.get(rank).copied()).collect();
        cta.each_warp(|warp| {
            for round in rounds(input.len()) {
                let index = warp.thread() + round as i32;
                warp.when(index.lt(input.len() as i32), |warp| {
                    let copied = warp.load(input, index);
                    let made = warp.compute(ComputeClass::Fp32, 1, copied + 1.0);
                    warp.store(input, index, made);
                });
            }
            for &array in &cleared {
                for round in rounds(array.len()) {
                    let index = warp.thread() + round as i32;
                    warp.when(index.lt(array.len() as i32), |warp| warp.store(array, index, 0.0));
                }
            }
            for round in rounds(signals.len()) {
                let index = warp.thread() + round as i32;
                warp.when(index.lt(signals.len() as i32), |warp| warp.store(signals, index, 0_u32));
            }
        });
    }

    async fn operate(&self, cta: &mut Cta<'_>, epoch: u32) {
        let ranks = &self.ranks;
        if ranks.shape.ranks == 1 {
            return direct::alone(ranks, cta);
        }
        match self.collective {
            Collective::AllReduceRing => ring::all_reduce(ranks, cta, epoch).await,
            Collective::AllReduceTree => tree::all_reduce(ranks, cta, epoch).await,
            Collective::AllReduceOneShot => direct::one_shot_all_reduce(ranks, cta, epoch).await,
            Collective::AllReduceTwoShot => direct::two_shot_all_reduce(ranks, cta, epoch).await,
            Collective::ReduceScatterRing => ring::reduce_scatter(ranks, cta, epoch).await,
            Collective::ReduceScatterDirect => direct::reduce_scatter(ranks, cta, epoch).await,
            Collective::AllGatherRing => ring::all_gather(ranks, cta, epoch).await,
            Collective::AllGatherDirect => direct::all_gather(ranks, cta, epoch).await,
            Collective::AllToAll => direct::all_to_all(ranks, cta, epoch).await,
            Collective::Broadcast => ring::broadcast(ranks, cta, epoch).await,
            Collective::SendReceive => ring::send_receive(ranks, cta, epoch).await,
        }
    }

    fn verify_rank(&self, memory: &Memory, rank: usize) -> Result<(), String> {
        let Shape { ranks, chunk, .. } = self.ranks.shape;
        let output: Array<f32> = self.ranks.output[rank];
        let expected = |index| self.collective.expected((rank as u64, ranks as u64), chunk, index);
        compare(&format!("output{rank}"), memory.to_vec(output), (0..output.len()).map(expected), 0.0)
    }
}

impl Instance for Operation {
    fn fill(&self, memory: &Memory) {
        let Ranks { input, output, staging, signals, .. } = &self.ranks;
        for (rank, array) in (0..).zip(input) {
            memory.fill(*array, |index| value(rank, index) - 1.0);
        }
        output.iter().chain(staging).for_each(|array| memory.clear(*array));
        signals.iter().for_each(|array| memory.clear(*array));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        self.ranks.input.iter().for_each(|input| host.copy_to_device(*input));
        host.launch(self.grid("produce"), |cta| self.produce(cta))?;
        for epoch in 1..=self.iterations as u32 {
            let grid = self.grid("collective");
            host.launch_cooperative(grid, async |cta: &mut Cta<'_>| self.operate(cta, epoch).await)?;
        }
        self.ranks.output.iter().for_each(|output| host.copy_to_host(*output));
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        (0..self.ranks.shape.ranks).try_for_each(|rank| self.verify_rank(memory, rank))
    }
}
