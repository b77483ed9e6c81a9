//! BabelStream: copy, scale, add and triad over three arrays, with a launch each.
//!
//! An iteration launches `copy` (c = a), `mul` (b = s c), `add` (c = a + b) and `triad` (a = b + s c), with a thread
//! per element. The fill launch and the final sum (`dot`) are left out, as in babelstream/BabelStream_lk.cpp of
//! hal-uw/gem5-bmks-micro24: the host copies the arrays to the device.

use crate::prelude::*;

/// The factor s. Source: BabelStream (`startScalar`).
const FACTOR: f64 = 0.4;

program! {
    /// copy, scale, add and triad in turn: each array read by the kernels behind the one that wrote it
    pub(crate) static BABELSTREAM = "babelstream",
        "BabelStream (UoB-HPC/BabelStream), in its HIP port of hal-uw/gem5-bmks-micro24; CPElide, Table II";
    properties: data_independent;
    parameters {
        /// elements of each of three arrays, at scale 1; scales
        elements: count(1..=1 << 30) = 524_288, "CPElide, Table II: 524288";
        /// times that the four kernels are launched
        iterations: count(1..=1000) = 1,
            "hal-uw/gem5-bmks-micro24, babelstream/BabelStream_lk.cpp: one; BabelStream runs 100";
        /// type of an element: float has 4 bytes, double 8
        type: choice("float", "double") = "float",
            "hal-uw/gem5-bmks-micro24, babelstream/BabelStream_lk.cpp: float; BabelStream runs double";
        /// threads of a CTA
        threads: one_of(256, 512, 1024) = 256,
            "hal-uw/gem5-bmks-micro24, babelstream/BabelStream_lk.cpp (`TBSIZE`); BabelStream has 1024";
    }
    lay_out: lay_out;
}

fn lay_out(name: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let elements = request.scale.of(request.values.count("elements"));
    check_indices(name, elements, "elements")?;
    Ok(match request.values.text("type") {
        "double" => Box::new(StreamArrays::<f64>::new(elements, request, memory)),
        _ => Box::new(StreamArrays::<f32>::new(elements, request, memory)),
    })
}

/// A floating-point element type.
trait Real: Number + Sync {
    /// Pipeline for arithmetic on this type.
    const CLASS: ComputeClass;
    /// Largest relative error per operation.
    const ROUNDING: f64;

    /// The nearest representable value.
    fn nearest(value: f64) -> Self;

    /// The value in double precision.
    fn wide(self) -> f64;
}

impl Real for f32 {
    const CLASS: ComputeClass = ComputeClass::Fp32;
    const ROUNDING: f64 = f32::EPSILON as f64;

    fn nearest(value: f64) -> f32 {
        value as f32
    }

    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    const CLASS: ComputeClass = ComputeClass::Fp64;
    const ROUNDING: f64 = f64::EPSILON;

    fn nearest(value: f64) -> f64 {
        value
    }

    fn wide(self) -> f64 {
        self
    }
}

struct StreamArrays<T> {
    a: Array<T>,
    b: Array<T>,
    c: Array<T>,
    iterations: u64,
    threads: u32,
}

impl<T: Real> StreamArrays<T> {
    fn new(elements: u64, request: &Request, memory: &mut Memory) -> StreamArrays<T> {
        let mut array = |name| memory.array(name, elements, Scaling::Scales);
        let (iterations, threads) = (request.values.count("iterations"), request.values.count("threads") as u32);
        StreamArrays { a: array("a"), b: array("b"), c: array("c"), iterations, threads }
    }

    /// Applies `formula` to each element of `inputs` and stores the result; `operations` is the formula's arithmetic
    /// instruction count.
    fn each<const N: usize>(
        &self,
        cta: &mut Cta<'_>,
        inputs: [Array<T>; N],
        output: Array<T>,
        operations: u16,
        formula: fn([Lanes<T>; N], T) -> Lanes<T>,
    ) {
        cta.each_warp(|warp| {
            let i = warp.global_thread();
            warp.when(i.cast::<i64>().lt(output.len() as i64), |warp| {
                let i = warp.compute(ComputeClass::Int, 1, i);
                let values = inputs.map(|input| warp.load(input, i));
                let mut value = formula(values, T::nearest(FACTOR));
                if operations > 0 {
                    value = warp.compute(T::CLASS, operations, value);
                }
                warp.store(output, i, value);
            });
        });
    }

    /// Initial array contents: distinct values for any 4096 neighbours.
    fn start(index: u64) -> f64 {
        1.0 + (index % 4096) as f64 / 4096.0
    }
}

impl<T: Real> Instance for StreamArrays<T> {
    fn fill(&self, memory: &Memory) {
        for array in [self.a, self.b, self.c] {
            memory.fill(array, |index| T::nearest(Self::start(index)));
        }
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        let StreamArrays { a, b, c, .. } = *self;
        for array in [a, b, c] {
            host.copy_to_device(array);
        }
        let grid = |name| Grid::new(name, a.len().div_ceil(u64::from(self.threads)), self.threads);
        for _ in 0..self.iterations {
            host.launch(grid("copy"), |cta| self.each(cta, [a], c, 0, |[a], _| a))?;
            host.launch(grid("mul"), |cta| self.each(cta, [c], b, 1, |[c], factor| c * factor))?;
            host.launch(grid("add"), |cta| self.each(cta, [a, b], c, 1, |[a, b], _| a + b))?;
            host.launch(grid("triad"), |cta| self.each(cta, [b, c], a, 1, |[b, c], factor| b + c * factor))?;
        }
        for array in [a, b, c] {
            host.copy_to_host(array);
        }
        Ok(())
    }

    /// An iteration turns a into s a + s (a + s a), and leaves s a and a + s a in the other arrays.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let growth = 2.0 * FACTOR + FACTOR * FACTOR;
        let before = growth.powi(self.iterations as i32 - 1);
        let tolerance = 8.0 * self.iterations as f64 * T::ROUNDING;
        for (name, array, factor) in [("a", self.a, growth), ("b", self.b, FACTOR), ("c", self.c, 1.0 + FACTOR)] {
            for index in 0..array.len() {
                let expected = before * factor * Self::start(index);
                let found = memory.read(array, index).wide();
                let near = (found - expected).abs() <= tolerance * expected;
                if !near {
                    return Err(format!("{name}[{index}] is {found}, expected {expected}"));
                }
            }
        }
        Ok(())
    }
}
