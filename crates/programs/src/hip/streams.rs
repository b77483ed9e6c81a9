//! The stream sample of HIP: several streams, each repeatedly transposing its own matrix through the scratchpad, back
//! and forth.
//!
//! A CTA moves a block of four by four. Streams share nothing; the host waits for all streams once, at the end.

use crate::prelude::*;
use tombolo_types::{GpuId, LaunchDevices, ModuleId};

/// Side length of a block, in threads and elements. Source: gem5-resources, hip-samples/stream (`THREADS_PER_BLOCK_X`).
const BLOCK: i32 = 4;
/// Maximum number of streams, limited by a device set's size.
const MOST_STREAMS: u64 = 64;

const SAMPLE: &str = "gem5/gem5-resources, src/gpu/hip-samples/src/stream.cpp";

program! {
    /// matrices transposed in several streams side by side, which share nothing
    pub(crate) static STREAMS = "streams", SAMPLE;
    properties: data_independent;
    parameters {
        /// streams, each with two matrices of its own
        streams: count(1..=MOST_STREAMS) = 2, "gem5/gem5-resources, src/gpu/hip-samples/src/stream.cpp (`num_streams`)";
        /// side of the matrices of 4-byte floats, at scale 1; scales by the root, to whole blocks of 4
        side: count(1..=1 << 14) = 32, "gem5/gem5-resources, src/gpu/hip-samples/src/stream.cpp (`WIDTH`)";
        /// launches of a stream: each transposes what the one before wrote
        launches: count(1..=1000) = 1, SAMPLE;
        /// where streams run: each on the whole machine, or on the module or the GPU of its number
        devices: choice("all", "modules", "gpus") = "all",
            "the sample has one device; CPElide, section III, binds streams to chiplets (`hipSetDevice`)";
    }
    lay_out(name, request, memory) {
        let side = request.fit_multiple("side", request.scale.side_of(side), BLOCK as u64);
        check_indices(name, side * side, "elements of a matrix")?;
        let devices = match devices {
            "modules" => Devices::Modules,
            "gpus" => Devices::Gpus,
            _ => Devices::All,
        };
        let mut matrix = |stream: u64, which| memory.array(&format!("{which}{stream}"), side * side, Scaling::Scales);
    }
    struct StreamTransposes {
        /// The pair of matrices per stream; each launch reads from the first or the second and writes to the other.
        pairs: Vec<[Array<f32>; 2]> =
            (0..streams).map(|stream| ["in", "out"].map(|which| matrix(stream, which))).collect(),
        side: i32,
        launches: u64,
        devices: Devices,
        seed: u64 = request.seed,
    }
}

/// Devices on which each stream's kernels run.
#[derive(Clone, Copy)]
enum Devices {
    All,
    Modules,
    Gpus,
}

impl StreamTransposes {
    fn kernel(&self, cta: &mut Cta<'_>, [from, to]: [Array<f32>; 2]) {
        let blocks = self.side / BLOCK;
        let (bx, by) = (cta.index() as i32 % blocks, cta.index() as i32 / blocks);
        let mut shared: Shared<f32> = cta.shared((BLOCK * BLOCK) as usize);
        cta.each_warp(|warp| {
            let thread = warp.compute(ComputeClass::Int, 4, warp.thread());
            let (x, y) = (thread % BLOCK + bx * BLOCK, thread / BLOCK + by * BLOCK);
            let value = warp.load(from, x * self.side + y);
            warp.store_shared(&mut shared, thread, value);
        });
        cta.barrier();
        cta.each_warp(|warp| {
            let thread = warp.compute(ComputeClass::Int, 4, warp.thread());
            let (x, y) = (thread % BLOCK + bx * BLOCK, thread / BLOCK + by * BLOCK);
            let value = warp.load_shared(&shared, thread);
            warp.store(to, y * self.side + x, value);
        });
    }

    fn start(&self, stream: usize, index: u64) -> f32 {
        noise::unit(self.seed.wrapping_add(stream as u64), index)
    }

    fn on(&self, stream: usize) -> LaunchDevices {
        match self.devices {
            Devices::All => LaunchDevices::All,
            Devices::Modules => LaunchDevices::module(ModuleId(stream as u8)),
            Devices::Gpus => LaunchDevices::gpu(GpuId(stream as u8)),
        }
    }
}

impl Instance for StreamTransposes {
    fn fill(&self, memory: &Memory) {
        for (stream, [input, _]) in self.pairs.iter().enumerate() {
            memory.fill(*input, |index| self.start(stream, index));
        }
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        for [input, _] in &self.pairs {
            host.copy_to_device(*input);
        }
        let blocks = (self.side / BLOCK) as u64;
        for launch in 0..self.launches {
            for (stream, &[input, output]) in self.pairs.iter().enumerate() {
                let pair = if launch.is_multiple_of(2) { [input, output] } else { [output, input] };
                let grid = Grid::new("transpose", blocks * blocks, (BLOCK * BLOCK) as u32)
                    .shared_bytes(4 * (BLOCK * BLOCK) as u32);
                host.stream(stream as u32).on(self.on(stream)).launch(grid, |cta| self.kernel(cta, pair))?;
            }
        }
        host.barrier();
        for [input, output] in &self.pairs {
            host.copy_to_host(if self.launches.is_multiple_of(2) { *input } else { *output });
        }
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let side = self.side as u64;
        for (stream, &[input, output]) in self.pairs.iter().enumerate() {
            let is_turned = !self.launches.is_multiple_of(2);
            let place = |at| if is_turned { at % side * side + at / side } else { at };
            let expected = (0..side * side).map(|at| self.start(stream, place(at)));
            compare("matrix", memory.to_vec(if is_turned { output } else { input }), expected, 0.0)?;
        }
        Ok(())
    }
}
