//! Sums of elements at a distance: `y[i] = x[i] + x[(i + distance) % elements]`. The distance decides whose memory is read.

use tombolo::program::{
    Array, Benchmark, ComputeClass, Grid, Host, Instance, Memory, Parameter, ParameterKind, RecordError, Scaling,
    compare,
};

/// Threads per CTA. Source: assumed.
const THREADS: u32 = 256;

static PARAMETERS: [Parameter; 2] = [
    Parameter {
        name: "elements",
        kind: ParameterKind::Count { low: 1, high: 1 << 30 },
        default: "4194304",
        about: "elements of each of two arrays of 4-byte floats, at scale 1",
        source: "assumed",
    },
    Parameter {
        name: "launches",
        kind: ParameterKind::Count { low: 1, high: 1000 },
        default: "4",
        about: "launches, all alike",
        source: "assumed",
    },
];

/// The program's entry in the command line.
pub(crate) static DISTANT_SUM: Benchmark = Benchmark {
    name: "distant-sum",
    about: "sums of elements half an array apart: every read of a second element is of another GPU",
    source: "assumed",
    parameters: &PARAMETERS,
    nonlinear: false,
    data_independent: true,
    lay_out: |_, request, memory| {
        let elements = request.scale.of(request.values.count("elements"));
        let mut array = |name| memory.array(name, elements, Scaling::Scales);
        Ok(Box::new(Arrays { x: array("x"), y: array("y"), launches: request.values.count("launches") }))
    },
};

struct Arrays {
    x: Array<f32>,
    y: Array<f32>,
    launches: u64,
}

/// Contents of `x` at an index.
fn input(index: u64) -> f32 {
    (index % 1000) as f32
}

impl Instance for Arrays {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.x, input);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        let elements = self.x.len();
        host.copy_to_device(self.x);
        for _ in 0..self.launches {
            host.launch(Grid::new("distant_sum", elements.div_ceil(u64::from(THREADS)), THREADS), |cta| {
                cta.each_warp(|warp| {
                    let i = warp.global_thread().cast::<i64>();
                    warp.when(i.lt(elements as i64), |warp| {
                        let there = warp.compute(ComputeClass::Int, 2, (i + elements as i64 / 2) % elements as i64);
                        let sum = warp.load(self.x, i) + warp.load(self.x, there);
                        let sum = warp.compute(ComputeClass::Fp32, 1, sum);
                        warp.store(self.y, i, sum);
                    });
                });
            })?;
        }
        host.copy_to_host(self.y);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let elements = self.y.len();
        let found = (0..elements).map(|index| memory.read(self.y, index));
        let expected = (0..elements).map(|index| input(index) + input((index + elements / 2) % elements));
        compare("y", found, expected, 0.0)
    }
}
