//! A single copy: from host to device, back, or within device memory, for which the runtime launches a kernel.

use crate::prelude::*;

/// Threads per CTA. Source: assumed, the usual choice.
const THREADS: u32 = 256;
/// Elements that a thread copies with a single instruction: 16 bytes. Source: ROCm's runtime (`rocclr`), the copy of
/// aligned buffers.
const VECTOR: usize = 4;

program! {
    /// one copy within device memory, or between host and device
    pub(crate) static MEMCOPY = "memcopy", MI300A_KERNELS;
    properties: data_independent;
    parameters {
        /// size of the copy in MiB, at scale 1; scales
        mib: count(1..=4096) = 64, MI300A_KERNELS;
        /// within device memory, to the device, to the host
        direction: choice("d2d", "h2d", "d2h") = "d2d", MI300A_KERNELS;
    }
    lay_out(name, request, memory) {
        let wanted = request.scale.of(mib << 18);
        let elements = wanted.next_multiple_of(VECTOR as u64);
        request.fit_parts("mib", wanted, elements, 1 << 18, "whole vectors of 16 bytes");
        // Threads in the last CTA without anything to copy have indices too.
        check_indices(name, elements.next_multiple_of(u64::from(THREADS) * VECTOR as u64), "elements")?;
        let direction = match direction {
            "h2d" => Direction::ToDevice,
            "d2h" => Direction::ToHost,
            _ => Direction::Within,
        };
    }
    struct ArrayCopy {
        from, to: Array<f32>[elements],
        direction: Direction,
        seed: u64 = request.seed,
    }
}

/// Direction of the copy.
#[derive(Clone, Copy)]
enum Direction {
    Within,
    ToDevice,
    ToHost,
}

impl ArrayCopy {
    fn kernel(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            let i = warp.compute(ComputeClass::Int, 1 + ADDRESS, warp.global_thread() * VECTOR as i32);
            warp.when(i.lt(self.to.len() as i32), |warp| {
                let vector: [_; VECTOR] = warp.load_vector(self.from, i);
                warp.store_vector(self.to, i, vector);
            });
        });
    }
}

impl Instance for ArrayCopy {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.from, |index| noise::unit(self.seed, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        match self.direction {
            Direction::ToDevice => host.copy_to_device(self.from),
            Direction::ToHost => host.copy_to_host(self.from),
            Direction::Within => {
                let ctas = (self.to.len() / VECTOR as u64).div_ceil(u64::from(THREADS));
                host.launch(Grid::new("copy", ctas, THREADS), |cta| self.kernel(cta))?;
            }
        }
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        match self.direction {
            Direction::ToDevice | Direction::ToHost => Ok(()),
            Direction::Within => compare("to", memory.to_vec(self.to), memory.to_vec(self.from), 0.0),
        }
    }
}
