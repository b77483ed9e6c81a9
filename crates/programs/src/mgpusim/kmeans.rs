//! The assignment step in k-means: each thread finds the centroid nearest to its point.
//!
//! Rodinia's program first transposes the points, feature by feature, and lets the host move the centroids after each
//! step; the step itself is identical.

use crate::prelude::*;

/// Threads per CTA. Source: [`MI300A_KERNELS`].
const THREADS: u32 = 256;

program! {
    /// assignment step of k-means: every point's features read once a cluster
    pub(crate) static KMEANS = "kmeans",
        "MGPUSim (sarchlab/mgpusim) kmeans, as timed on an AMD MI300A; Rodinia 3.1 kmeans; NUMA-GPU, Table 2 \
        (Rodinia-Kmeans)";
    properties: data_independent;
    parameters {
        /// points, at scale 1; scales
        points: count(1..=1 << 26) = 262_144, MI300A_KERNELS;
        /// features of a point, 4-byte floats
        features: count(1..=256) = 32, MI300A_KERNELS;
        /// clusters
        clusters: count(1..=256) = 5, MI300A_KERNELS;
        /// step: one assignment of points that lie feature by feature; rodinia: points that are first turned, grids
        /// raised to a square, centroids moved by the host
        program: choice("step", "rodinia") = "step", MI300A_KERNELS;
        /// assignments
        iterations: count(1..=500) = 1,
            "assumed: all alike; MGPUSim times one, Rodinia 3.1 kmeans runs until few points move, 500 at most";
    }
    lay_out(_, request, memory) {
        let points = request.scale.of(points);
        tombolo_workload::bench::require("kmeans", points * features <= i32::MAX as u64, || {
            format!("{points} points of {features} features exceed 2^31 - 1 values")
        })?;
        let turned = program == "rodinia";
    }
    struct Assignment {
        /// `[point][feature]`, if the program transposes its points.
        points: Option<Array<f32>> = turned.then(|| memory.array("points", points * features, Scaling::Scales)),
        /// `[feature][point]`.
        features: Array<f32>[points * features],
        /// `[cluster][feature]`.
        centroids: Array<f32>[clusters * features, fixed],
        membership: Array<i32>[points],
        clusters: i32,
        iterations: u64,
        seed: u64 = request.seed,
    }
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
