//! The assignment step of k-means: each thread finds the centroid nearest to its point.

use super::benchmark::{ADDRESS, Benchmark, MEASURED};
use super::{Instance, Request, WorkloadError};
use crate::noise;
use crate::parameter::{Kind, Parameter};
use crate::record::{Host, RecordError};
use crate::simt::{Array, ComputeClass, Cta, Grid, Lanes, Memory, Scaling};

/// Threads of a CTA. Source: [`MEASURED`].
const THREADS: u32 = 256;

static PARAMETERS: [Parameter; 3] = [
    Parameter {
        name: "points",
        kind: Kind::Count { low: 1, high: 1 << 26 },
        default: "262144",
        about: "points, at scale 1; scales",
        source: MEASURED,
    },
    Parameter {
        name: "features",
        kind: Kind::Count { low: 1, high: 256 },
        default: "32",
        about: "features of a point, 4-byte floats",
        source: MEASURED,
    },
    Parameter {
        name: "clusters",
        kind: Kind::Count { low: 1, high: 256 },
        default: "5",
        about: "clusters",
        source: MEASURED,
    },
];

/// The benchmark.
pub(super) static KMEANS: Benchmark = Benchmark {
    name: "kmeans",
    about: "assignment step of k-means: every point's features read once a cluster",
    source: MEASURED,
    parameters: &PARAMETERS,
    nonlinear: false,
    address_only: true,
    lay_out,
};

struct Assignment {
    /// `[feature][point]`.
    features: Array<f32>,
    /// `[cluster][feature]`.
    centroids: Array<f32>,
    membership: Array<i32>,
    clusters: i32,
    seed: u64,
}

fn lay_out(_: &'static str, request: &Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let points = request.scale.of(request.values.count("points"));
    let (features, clusters) = (request.values.count("features"), request.values.count("clusters"));
    super::benchmark::demand("kmeans", points * features <= i32::MAX as u64, || {
        format!("{points} points of {features} features exceed 2^31 - 1 values")
    })?;
    Ok(Box::new(Assignment {
        features: memory.array("features", points * features, Scaling::Scales),
        centroids: memory.array("centroids", clusters * features, Scaling::Fixed),
        membership: memory.array("membership", points, Scaling::Scales),
        clusters: clusters as i32,
        seed: request.seed,
    }))
}

impl Assignment {
    fn points(&self) -> i32 {
        self.membership.len() as i32
    }

    fn dimensions(&self) -> i32 {
        (self.centroids.len() / self.clusters as u64) as i32
    }

    fn kernel(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            let p = warp.compute(ComputeClass::Int, 1, warp.global_thread());
            warp.when(p.lt(self.points()), |warp| {
                let (mut nearest, mut least) = (Lanes::all(0), Lanes::all(f32::MAX));
                for cluster in 0..self.clusters {
                    let mut distance = Lanes::all(0.0);
                    for feature in 0..self.dimensions() {
                        let at = warp.compute(ComputeClass::Int, 1 + 2 * ADDRESS, p + feature * self.points());
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

impl Instance for Assignment {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.features, |index| noise::unit(self.seed, index));
        memory.fill(self.centroids, |index| noise::unit(!self.seed, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.features);
        host.copy_to_device(self.centroids);
        let ctas = self.membership.len().div_ceil(u64::from(THREADS));
        host.launch(Grid::new("kmeans-assign", ctas, THREADS), |cta| self.kernel(cta))?;
        host.copy_to_host(self.membership);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (features, centroids) = (memory.to_vec(self.features), memory.to_vec(self.centroids));
        let (points, dimensions) = (self.points() as usize, self.dimensions() as usize);
        for point in 0..points {
            let distance = |cluster: usize| {
                (0..dimensions).fold(0.0_f32, |sum, feature| {
                    let apart = features[feature * points + point] - centroids[cluster * dimensions + feature];
                    sum + apart * apart
                })
            };
            let mut nearest = 0;
            for cluster in 1..self.clusters as usize {
                if distance(cluster) < distance(nearest) {
                    nearest = cluster;
                }
            }
            let found = memory.read(self.membership, point as u64);
            if found != nearest as i32 {
                return Err(format!("point {point} is in cluster {found}, expected {nearest}"));
            }
        }
        Ok(())
    }
}
