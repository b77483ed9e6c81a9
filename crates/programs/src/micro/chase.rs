//! A pointer chase: a single thread follows a ring of lines in an irregular order, one load at a time. The time per
//! step shows the latency of the ring's memory level.

use crate::prelude::*;

/// Threads in the single CTA; only the first thread chases. Source: assumed, a warp on NVIDIA's GPUs.
const THREADS: u32 = 32;
/// Distance in bytes between consecutive ring words in memory: a line, so no line is visited twice per lap.
const STRIDE: u64 = 128;
/// The distance [`STRIDE`] in elements.
const STEP: u64 = STRIDE / 4;

program! {
    // The work is the number of steps, regardless of the footprint.
    /// pointer chase by one thread: the latency of a level of the hierarchy
    pub(crate) static CHASE = "chase",
        "Saavedra and Smith, IEEE Trans. Computers 44(10) 1995; order as in Jia et al. 2018 (arXiv 1804.06826)";
    properties: nonlinear;
    parameters {
        /// size of the ring in KiB, at scale 1; scales, to a power of two of lines of 128 bytes
        kib: count(1..=1 << 22) = 16_384, "assumed: beyond the L2 of V100";
        /// loads; does not scale
        steps: count(1..=1 << 24) = 8192, "assumed: enough that the launch weighs little";
    }
    lay_out(name, request, memory) {
        let wanted = request.scale.of(kib << 10);
        let bytes = wanted.next_power_of_two().max(8 * STRIDE);
        request.fit_parts("kib", wanted, bytes, 1 << 10, "powers of two from 1");
        let lines = bytes / STRIDE;
        require(name, lines * STEP <= 1 << 31, || format!("a ring of {bytes} bytes exceeds 2^31 elements"))?;
    }
    struct Ring {
        /// Index of the next ring element, stored in the first element of each line.
        next: Array<u32>["ring"; lines * STEP],
        /// Final element of the chase.
        end: Array<u32>[1, fixed],
        lines, steps: u64,
        seed: u64 = request.seed,
    }
}

impl Ring {
    /// The line after `line`: a linear congruence with full period (Hull and Dobell 1962), so all lines form a single
    /// ring.
    fn after(&self, line: u64) -> u64 {
        let (factor, addend) = (noise::noise(self.seed, 0) << 2 | 1, noise::noise(self.seed, 1) << 1 | 1);
        line.wrapping_mul(factor).wrapping_add(addend) % self.lines
    }

    fn kernel(&self, cta: &mut Cta<'_>) {
        cta.warp(0, |warp| {
            warp.single(|warp| {
                let mut at: Lanes<u32> = Lanes::all(0);
                for _ in 0..self.steps {
                    at = warp.load(self.next, at);
                }
                warp.store(self.end, Lanes::all(0), at);
            });
        });
    }
}

impl Instance for Ring {
    fn fill(&self, memory: &Memory) {
        for line in 0..self.lines {
            memory.write(self.next, line * STEP, (self.after(line) * STEP) as u32);
        }
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.next);
        host.launch(Grid::new("chase", 1, THREADS), |cta| self.kernel(cta))?;
        host.copy_to_host(self.end);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let expected = (0..self.steps).fold(0, |line, _| self.after(line)) * STEP;
        let found = u64::from(memory.read(self.end, 0));
        if found == expected { Ok(()) } else { Err(format!("the chase ends at {found}, expected {expected}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_workload::simt::Backing;

    #[test]
    fn a_lap_meets_every_line_once() {
        let mut memory = Memory::new(Backing::AddressOnly);
        let mut array = |name, len| memory.array(name, len, Scaling::Fixed);
        let ring = Ring { next: array("ring", 4096), end: array("end", 1), lines: 128, steps: 1, seed: 5 };
        let mut met = [false; 128];
        let end = (0..128).fold(0, |line, _| {
            assert!(!std::mem::replace(&mut met[line as usize], true), "line {line} twice");
            ring.after(line)
        });
        assert_eq!(end, 0);
    }
}
