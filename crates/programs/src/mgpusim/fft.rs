//! In-place Fourier transforms of 512 points, with a group of 64 threads per transform: radix 8, three passes, two
//! exchanges through the scratchpad.
//!
//! Thread l = 8 high + low owns the eight points l, l + 64 and so on. After the first pass, result k in thread l is
//! rotated by k l / 512 and sent to thread (l mod 8, k). After the second pass, it is rotated by k high / 64 and sent
//! to thread (k, low). The third pass leaves thread l with the frequencies l, l + 64, ...

use crate::prelude::*;
use std::array::from_fn;
use std::f64::consts::TAU;

/// Points per transform. Source: [`MI300A_KERNELS`].
const POINTS: usize = 512;
/// Threads per CTA.
const THREADS: u32 = 64;
/// Points per thread.
const RADIX: usize = 8;
/// Words in the scratchpad. Source: [`MI300A_KERNELS`].
const WORDS: usize = 576;
/// Floating-point instructions for a butterfly on eight complex values. Source: counted: three stages with eight
/// complex sums, and the rotations by eighths of a turn.
const BUTTERFLY: u16 = 64;
/// Instructions for the seven twiddle factors in a pass: each needs a sine and a cosine with full accuracy, an angle
/// formed in double precision, and a complex product. Source: ROCm device library, `sincos` for small arguments:
/// argument reduction and two polynomials; counted.
const TWIDDLES: [(ComputeClass, u16); 3] =
    [(ComputeClass::Fp64, 7 * 4), (ComputeClass::Fp32, 7 * 36), (ComputeClass::Int, 7 * 8)];

program! {
    /// many small Fourier transforms: bandwidth, scratchpad, transcendentals
    pub(crate) static FFT = "fft", MI300A_KERNELS;
    properties: data_independent;
    parameters {
        /// complex values of two 4-byte floats, at scale 1; scales, to whole transforms of 512
        elements: count(1..=1 << 28) = 2_097_152, MI300A_KERNELS;
    }
    lay_out(_, request, memory) {
        let elements = request.fit_multiple("elements", request.scale.of(elements), POINTS as u64);
    }
    struct Transforms {
        /// Alternating real and imaginary parts.
        values: Array<f32>[2 * elements],
        seed: u64 = request.seed,
    }
}

/// Real and imaginary part.
type Complex = [Lanes<f32>; 2];

/// The points held by a warp's threads.
type Points = [Complex; RADIX];

/// An exchange through the scratchpad. Word indices are given by the factors for (high, low, k).
struct ScratchpadExchange {
    write: [i32; 3],
    read: [i32; 3],
    /// Rotation of result 1, in turns: the factors for (thread, high).
    turns: [f64; 2],
    /// Set if a barrier follows the last read.
    closes: bool,
}

/// The two exchanges between passes. Source: [`MI300A_KERNELS`].
const EXCHANGES: [ScratchpadExchange; 2] = [
    ScratchpadExchange { write: [8, 1, 66], read: [1, 66, 8], turns: [1.0 / 512.0, 0.0], closes: true },
    ScratchpadExchange { write: [8, 1, 72], read: [72, 1, 8], turns: [0.0, 1.0 / 64.0], closes: false },
];

/// Cosine and sine of -2 pi times `turns`.
fn rotation(turns: f64) -> [f32; 2] {
    [(TAU * turns).cos() as f32, -(TAU * turns).sin() as f32]
}

fn times(value: Complex, by: [Lanes<f32>; 2]) -> Complex {
    [value[0] * by[0] - value[1] * by[1], value[0] * by[1] + value[1] * by[0]]
}

/// The Fourier transform over eight points, in natural order.
fn butterfly(points: Points) -> Points {
    from_fn(|k| {
        let term = |m: usize| times(points[m], rotation((m * k % RADIX) as f64 / RADIX as f64).map(Lanes::all));
        (1..RADIX).map(term).fold(points[0], |sum, term| [sum[0] + term[0], sum[1] + term[1]])
    })
}

/// Rotates result k by k times `turns`.
fn twiddled(points: Points, turns: Lanes<f64>) -> Points {
    from_fn(|k| {
        let turn = |part: usize| turns.map(|turns| rotation(k as f64 * turns)[part]);
        times(points[k], [turn(0), turn(1)])
    })
}

fn word(thread: Lanes<i32>, [high, low, step]: [i32; 3], k: usize) -> Lanes<i32> {
    thread / 8 * high + thread % 8 * low + step * k as i32
}

impl Transforms {
    fn kernel(&self, cta: &mut Cta<'_>) {
        let first = i64::from(cta.index()) * POINTS as i64;
        let mut shared: Shared<f32> = cta.shared(WORDS);
        let mut points: Vec<Points> = vec![[[Lanes::all(0.0); 2]; RADIX]; cta.warps() as usize];
        cta.each_warp(|warp| {
            let at = warp.compute(ComputeClass::Int, 2 + ADDRESS, warp.thread().cast::<i64>() + first);
            points[warp.index() as usize] = from_fn(|k| warp.load_vector(self.values, (at + 64 * k as i64) * 2));
        });
        self.pass(cta, &mut points);
        for exchange in &EXCHANGES {
            self.exchange(cta, exchange, &mut shared, &mut points);
            self.pass(cta, &mut points);
        }
        cta.each_warp(|warp| {
            let at = warp.compute(ComputeClass::Int, ADDRESS, warp.thread().cast::<i64>() + first);
            for (k, value) in points[warp.index() as usize].into_iter().enumerate() {
                warp.store_vector(self.values, (at + 64 * k as i64) * 2, value);
            }
        });
    }

    /// Runs a butterfly in every thread.
    fn pass(&self, cta: &mut Cta<'_>, points: &mut [Points]) {
        cta.each_warp(|warp| {
            let points = &mut points[warp.index() as usize];
            // A butterfly stage has a sum for each part of its points: SHOC's `FFT8`.
            *points = warp.compute_wide(ComputeClass::Fp32, BUTTERFLY, 2 * RADIX as u16, *points);
            if warp.computes() {
                *points = butterfly(*points);
            }
        });
    }

    /// Applies the twiddle factors, then exchanges: real parts first, then imaginary parts in the same words.
    fn exchange(
        &self,
        cta: &mut Cta<'_>,
        exchange: &ScratchpadExchange,
        shared: &mut Shared<f32>,
        points: &mut [Points],
    ) {
        cta.each_warp(|warp| {
            for (class, count) in TWIDDLES {
                // Seven concurrent twiddle factors.
                warp.compute_wide(class, count, RADIX as u16 - 1, ());
            }
            if warp.computes() {
                let [by_thread, by_high] = exchange.turns;
                let thread = warp.thread();
                let turns = thread.cast::<f64>() * by_thread + (thread / 8).cast::<f64>() * by_high;
                let points = &mut points[warp.index() as usize];
                *points = twiddled(*points, turns);
            }
        });
        for part in 0..2 {
            cta.each_warp(|warp| {
                for (k, point) in points[warp.index() as usize].iter().enumerate() {
                    warp.store_shared(shared, word(warp.thread(), exchange.write, k), point[part]);
                }
            });
            cta.barrier();
            cta.each_warp(|warp| {
                for (k, point) in points[warp.index() as usize].iter_mut().enumerate() {
                    point[part] = warp.load_shared(shared, word(warp.thread(), exchange.read, k));
                }
            });
            if part == 0 || exchange.closes {
                cta.barrier();
            }
        }
    }

    fn point(&self, index: u64) -> f32 {
        noise::unit(self.seed, index)
    }
}

impl Instance for Transforms {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.values, |index| self.point(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.values);
        let ctas = self.values.len() / (2 * POINTS as u64);
        let grid = Grid::new("fft", ctas, THREADS).shared_bytes(4 * WORDS as u32);
        host.launch(grid, |cta| self.kernel(cta))?;
        host.copy_to_host(self.values);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let turns: Vec<[f64; 2]> = (0..POINTS)
            .map(|turn| TAU * turn as f64 / POINTS as f64)
            .map(|angle| [angle.cos(), -angle.sin()])
            .collect();
        for (at, first) in
            (0..self.values.len()).step_by(2 * POINTS).flat_map(|base| (0..POINTS).map(move |k| (k, base)))
        {
            let expected = (0..POINTS).fold([0.0, 0.0], |[real, imaginary], n| {
                let index = first + 2 * n as u64;
                let (a, b) = (f64::from(self.point(index)), f64::from(self.point(index + 1)));
                let [cosine, sine] = turns[n * at % POINTS];
                [real + a * cosine - b * sine, imaginary + a * sine + b * cosine]
            });
            for (part, expected) in expected.into_iter().enumerate() {
                let found = f64::from(memory.read(self.values, first + 2 * at as u64 + part as u64));
                let near = (found - expected).abs() <= 1e-3;
                if !near {
                    return Err(format!("frequency {at} of the transform at {first} is {found}, expected {expected}"));
                }
            }
        }
        Ok(())
    }
}
