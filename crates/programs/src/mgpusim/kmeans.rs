//! The assignment step in k-means: each thread finds the centroid nearest to its point.
//!
//! Rodinia's program first transposes the points, feature by feature, and lets the host move the centroids after each
//! step; the step itself is identical.

use crate::mgpusim::MI300A_KERNELS;
use tombolo_workload::bench::{ADDRESS, Benchmark, compare};
use tombolo_workload::bench::{Instance, Request, WorkloadError};
use tombolo_workload::noise;
use tombolo_workload::parameter::{Parameter, ParameterKind};
use tombolo_workload::record::{Host, RecordError};
use tombolo_workload::simt::{Array, ComputeClass, Cta, Grid, Lanes, Memory, Scaling};

/// Threads per CTA. Source: [`MI300A_KERNELS`].
const THREADS: u32 = 256;

static PARAMETERS: [Parameter; 5] = [
    Parameter {
        name: "points",
        kind: ParameterKind::Count { low: 1, high: 1 << 26 },
        default: "262144",
        about: "points, at scale 1; scales",
        source: MI300A_KERNELS,
    },
    Parameter {
        name: "features",
        kind: ParameterKind::Count { low: 1, high: 256 },
        default: "32",
        about: "features of a point, 4-byte floats",
        source: MI300A_KERNELS,
    },
    Parameter {
        name: "clusters",
        kind: ParameterKind::Count { low: 1, high: 256 },
        default: "5",
        about: "clusters",
        source: MI300A_KERNELS,
    },
    Parameter {
        name: "program",
        kind: ParameterKind::Choice(&["step", "rodinia"]),
        default: "step",
        about: "step: one assignment of points that lie feature by feature; rodinia: points that are first turned, grids \
                raised to a square, centroids moved by the host",
        source: MI300A_KERNELS,
    },
    Parameter {
        name: "iterations",
        kind: ParameterKind::Count { low: 1, high: 500 },
        default: "1",
        about: "assignments",
        source: "assumed: all alike; MGPUSim times one, Rodinia 3.1 kmeans runs until few points move, 500 at most",
    },
];

/// The workload's entry in the table.
pub(crate) static KMEANS: Benchmark = Benchmark {
    name: "kmeans",
    about: "assignment step of k-means: every point's features read once a cluster",
    source: "MGPUSim (sarchlab/mgpusim) kmeans, as timed on an AMD MI300A; Rodinia 3.1 kmeans; NUMA-GPU, Table 2 \
             (Rodinia-Kmeans)",
    parameters: &PARAMETERS,
    nonlinear: false,
    data_independent: true,
    lay_out,
};

struct Assignment {
    /// `[point][feature]`, if the program transposes its points.
    points: Option<Array<f32>>,
    /// `[feature][point]`.
    features: Array<f32>,
    /// `[cluster][feature]`.
    centroids: Array<f32>,
    membership: Array<i32>,
    clusters: i32,
    iterations: u64,
    seed: u64,
}

fn lay_out(_: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let points = request.scale.of(request.values.count("points"));
    let (features, clusters) = (request.values.count("features"), request.values.count("clusters"));
    tombolo_workload::bench::require("kmeans", points * features <= i32::MAX as u64, || {
        format!("{points} points of {features} features exceed 2^31 - 1 values")
    })?;
    let turned = request.values.text("program") == "rodinia";
    Ok(Box::new(Assignment {
        points: turned.then(|| memory.array("points", points * features, Scaling::Scales)),
        features: memory.array("features", points * features, Scaling::Scales),
        centroids: memory.array("centroids", clusters * features, Scaling::Fixed),
        membership: memory.array("membership", points, Scaling::Scales),
        clusters: clusters as i32,
        iterations: request.values.count("iterations"),
        seed: request.seed,
    }))
}

impl Assignment {
    fn count(&self) -> i32 {
        self.membership.len() as i32
    }

    fn dimensions(&self) -> i32 {
        (self.centroids.len() / self.clusters as u64) as i32
    }

    fn kernel(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            let p = warp.compute(ComputeClass::Int, 1, warp.global_thread());
            warp.when(p.lt(self.count()), |warp| {
                let (mut nearest, mut least) = (Lanes::all(0), Lanes::all(f32::MAX));
                for cluster in 0..self.clusters {
                    let mut distance = Lanes::all(0.0);
                    for feature in 0..self.dimensions() {
                        let at = warp.compute(ComputeClass::Int, 1 + 2 * ADDRESS, p + feature * self.count());
                        let value = warp.load(self.features, at);
                        let centre = warp.load(self.centroids, Lanes::all(cluster * self.dimensions() + feature));
                        let apart = value - centre;
                        distance = warp.compute(ComputeClass::Fp32, 2, distance + apart * apart);
                    }
                    let nearer = warp.compute(ComputeClass::Fp32, 3, distance.lt(least));
                    least = nearer.select(distance, least);
                    nearest = nearer.select(Lanes::all(cluster), nearest);
                }
                let p = warp.compute(ComputeClass::Int, ADDRESS, p);
                warp.store(self.membership, p, nearest);
            });
        });
    }
}

impl Assignment {
    /// CTA count for a thread per point. Source: Rodinia 3.1 kmeans launches a square number of CTAs.
    fn ctas(&self) -> u64 {
        let least = self.membership.len().div_ceil(u64::from(THREADS));
        if self.points.is_none() {
            return least;
        }
        let side = least.isqrt() + u64::from(least.isqrt().pow(2) < least);
        side * side
    }

    /// Transposes the features: each thread copies a point's features.
    fn turn(&self, cta: &mut Cta<'_>, points: Array<f32>) {
        cta.each_warp(|warp| {
            let p = warp.compute(ComputeClass::Int, 1, warp.global_thread());
            warp.when(p.lt(self.count()), |warp| {
                for feature in 0..self.dimensions() {
                    let from = warp.compute(ComputeClass::Int, 1 + ADDRESS, p * self.dimensions() + feature);
                    let value = warp.load(points, from);
                    let to = warp.compute(ComputeClass::Int, 1 + ADDRESS, p + feature * self.count());
                    warp.store(self.features, to, value);
                }
            });
        });
    }

    /// Centroids in the middle of their points, `[cluster][feature]`; a centroid without points stays.
    fn middles(&self, membership: &[i32], before: &[f32]) -> Vec<f32> {
        let dimensions = self.dimensions() as usize;
        let (mut sums, mut counts) = (vec![0.0_f64; before.len()], vec![0_u32; self.clusters as usize]);
        for (point, cluster) in membership.iter().enumerate() {
            let cluster = *cluster as usize;
            counts[cluster] += 1;
            for feature in 0..dimensions {
                sums[cluster * dimensions + feature] += f64::from(self.start(point, feature));
            }
        }
        let middle = |(at, sum): (usize, &f64)| match counts[at / dimensions] {
            0 => before[at],
            count => (sum / f64::from(count)) as f32,
        };
        sums.iter().enumerate().map(middle).collect()
    }

    fn start(&self, point: usize, feature: usize) -> f32 {
        noise::unit(self.seed, (feature * self.count() as usize + point) as u64)
    }
}

impl Instance for Assignment {
    fn fill(&self, memory: &Memory) {
        let dimensions = self.dimensions() as u64;
        match self.points {
            Some(points) => {
                memory.fill(points, |index| self.start((index / dimensions) as usize, (index % dimensions) as usize))
            }
            None => memory.fill(self.features, |index| noise::unit(self.seed, index)),
        }
        memory.fill(self.centroids, |index| noise::unit(!self.seed, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        let ctas = self.ctas();
        match self.points {
            Some(points) => {
                host.copy_to_device(points);
                host.launch(Grid::new("kmeans-turn", ctas, THREADS), |cta| self.turn(cta, points))?;
            }
            None => host.copy_to_device(self.features),
        }
        for iteration in 0..self.iterations {
            if iteration > 0 {
                let memory = host.memory();
                let middles = self.middles(&memory.to_vec(self.membership), &memory.to_vec(self.centroids));
                memory.fill(self.centroids, |index| middles[index as usize]);
            }
            host.copy_to_device(self.centroids);
            host.launch(Grid::new("kmeans-assign", ctas, THREADS), |cta| self.kernel(cta))?;
            host.copy_to_host(self.membership);
        }
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (points, dimensions) = (self.count() as usize, self.dimensions() as usize);
        let mut centroids: Vec<f32> = (0..self.centroids.len()).map(|index| noise::unit(!self.seed, index)).collect();
        let mut membership = vec![0; points];
        for iteration in 0..self.iterations {
            if iteration > 0 {
                centroids = self.middles(&membership, &centroids);
            }
            for (point, member) in membership.iter_mut().enumerate() {
                let distance = |cluster: usize| {
                    (0..dimensions).fold(0.0_f32, |sum, feature| {
                        let apart = self.start(point, feature) - centroids[cluster * dimensions + feature];
                        sum + apart * apart
                    })
                };
                let nearest = (1..self.clusters as usize)
                    .fold(0, |nearest, cluster| if distance(cluster) < distance(nearest) { cluster } else { nearest });
                *member = nearest as i32;
            }
        }
        let features = (0..self.features.len()).map(|index| noise::unit(self.seed, index));
        compare("features", memory.to_vec(self.features), features, 0.0)?;
        match memory.to_vec(self.membership).iter().zip(&membership).position(|(found, expected)| found != expected) {
            Some(point) => Err(format!("point {point} is not in its cluster {}", membership[point])),
            None => Ok(()),
        }
    }
}
