//! RabbitCT: back-projection of X-ray images from a rotating C-arm into a volume.
//!
//! For each image, every voxel is projected onto the detector. The image is interpolated between four pixels, and the
//! value, weighted by the distance from the source, is added to the voxel. There is one launch per image, with one
//! thread per voxel.
//!
//! Not modelled: RabbitCT's images show a rabbit and its matrices are measured. Here the source moves along an exact
//! circle and the images are noise, which moves addresses only by fractions of a pixel.

use crate::prelude::*;

/// Threads per CTA. Source: NUMA-GPU, Table 2: 131,072 CTAs for 512³ voxels.
const THREADS: u32 = 1024;
/// Distances from the source to the axis and to the detector, in mm. Source: RabbitCT's C-arm (Siemens Axiom Artis),
/// about.
const AXIS: f32 = 750.0;
const DETECTOR: f32 = 1200.0;
/// Side length of the volume, and width and height of the detector, in mm. Source: RabbitCT: 256 mm; 1240 × 960 pixels,
/// each 0.32 mm wide.
const VOLUME: f32 = 256.0;
const PIXEL_AREA: (f32, f32) = (399.36, 307.2);
/// Images per half turn. Source: RabbitCT.
const IMAGES: u64 = 496;
/// Stride between projected images, so that directions differ. Source: assumed.
const APART: u64 = 124;
/// Unit vectors for each quarter of the half turn. Source: cosine and sine for 0, 45, 90 and 135 degrees.
const DIRECTIONS: [(f32, f32); 4] =
    [(1.0, 0.0), (0.707_106_77, 0.707_106_77), (0.0, 1.0), (-0.707_106_77, 0.707_106_77)];

program! {
    /// back-projection: a volume streamed through, an image gathered from by all CTAs
    pub(crate) static RABBITCT = "rabbitct",
        "RabbitCT (Rohkohl et al., Med. Phys. 2009); NUMA-GPU, Table 2 (HPC-RabbitCT)";
    properties: data_independent;
    parameters {
        /// voxels along each axis, at scale 1; along x and y scales by the root
        side: count(4..=1024) = 512, "RabbitCT, problem size 512";
        /// pixels of a row of an image, at scale 1; scales by the root
        columns: count(4..=1 << 14) = 1248, "RabbitCT (`S_x`)";
        /// rows of an image, at scale 1; scales by the root
        rows: count(4..=1 << 14) = 960, "RabbitCT (`S_y`)";
        /// images projected
        images: count(1..=IMAGES) = 2, "assumed: RabbitCT has 496, all alike but for their direction";
    }
    lay_out(name, request, memory) {
        let side = |key| request.fit_least(key, request.scale.side_of(request.values.count(key)), 2);
        let [across, columns, rows] = ["side", "columns", "rows"].map(side);
        let count = |key| request.values.count(key);
        let along = count("side");
        check_indices(name, across * across * along, "voxels")?;
        check_indices(name, columns * rows, "pixels")?;
    }
    struct Reconstruction {
        /// Volume, x fastest, then y, then z.
        volume: Array<f32>[across * across * along],
        /// Image being projected, row by row.
        image: Array<f32>[columns * rows],
        /// Voxels along x, y, z.
        voxels: [i32; 3] = [across as i32, across as i32, along as i32],
        columns, rows: i32,
        images: u64,
        seed: u64 = request.seed,
    }
}

/// Projection matrix with three rows and four columns: maps voxel indices to the detector (homogeneous): column, row
/// and weight.
type Matrix = [[f32; 4]; 3];

/// Position on the detector: upper left pixel, and fractional distance right and down.
#[derive(Clone, Copy, Debug, Default)]
struct Projection {
    column: i32,
    row: i32,
    right: f32,
    down: f32,
    weight: f32,
}

/// Projects a voxel onto the detector.
fn project(matrix: &Matrix, voxel: [i32; 3]) -> Projection {
    let [x, y, z] = voxel.map(|at| at as f32);
    let [across, along, weight] = matrix.map(|row| row[0] * x + row[1] * y + row[2] * z + row[3]);
    let inverse = 1.0 / weight;
    let (across, along) = (across * inverse, along * inverse);
    let (column, row) = (across.floor(), along.floor());
    Projection {
        column: column as i32,
        row: row as i32,
        right: across - column,
        down: along - row,
        weight: inverse * inverse,
    }
}

/// Value interpolated between four pixels.
fn interpolate(shadow: Projection, [a, b, c, d]: [f32; 4]) -> f32 {
    let upper = (1.0 - shadow.right) * a + shadow.right * b;
    let lower = (1.0 - shadow.right) * c + shadow.right * d;
    shadow.weight * ((1.0 - shadow.down) * upper + shadow.down * lower)
}

/// Offsets to the four pixels around a point: right, down.
const AROUND: [(i32, i32); 4] = [(0, 0), (1, 0), (0, 1), (1, 1)];

impl Reconstruction {
    /// Matrix for an image: the source lies at [`AXIS`] from the axis in the image's direction, the detector opposite.
    fn matrix(&self, image: u64) -> Matrix {
        let (cosine, sine) = DIRECTIONS[(image * APART % IMAGES / APART) as usize];
        let step = self.voxels.map(|voxels| VOLUME / voxels as f32);
        let corner = -0.5 * VOLUME;
        // Ratio between the distance from the source towards the detector and the axis distance; equal to 1 on the
        // axis.
        let near = [cosine * step[0] / AXIS, sine * step[1] / AXIS, 0.0];
        let weight = [-near[0], -near[1], 0.0, 1.0 - (cosine + sine) * corner / AXIS];
        let place = |across: [f32; 3], at: f32, middle: f32, pixels: f32| {
            let linear = [0, 1, 2].map(|axis| across[axis] * step[axis] * DETECTOR / AXIS / pixels);
            let start = at * DETECTOR / AXIS / pixels;
            let mut row = [linear[0], linear[1], linear[2], start];
            row.iter_mut().zip(weight).for_each(|(term, weight)| *term += middle * weight);
            row
        };
        let (wide, high) = (self.columns as f32, self.rows as f32);
        let columns = place([-sine, cosine, 0.0], (cosine - sine) * corner, 0.5 * wide, PIXEL_AREA.0 / wide);
        let rows = place([0.0, 0.0, 1.0], corner, 0.5 * high, PIXEL_AREA.1 / high);
        [columns, rows, weight]
    }

    fn voxel(&self, index: i32) -> [i32; 3] {
        let [x, y, _] = self.voxels;
        [index % x, index / x % y, index / x / y]
    }

    /// Index of a pixel in the image, or `None` if outside.
    fn pixel(&self, shadow: Projection, (right, down): (i32, i32)) -> Option<i32> {
        let (column, row) = (shadow.column.saturating_add(right), shadow.row.saturating_add(down));
        let inside = (0..self.columns).contains(&column) && (0..self.rows).contains(&row);
        inside.then(|| row * self.columns + column)
    }

    fn kernel(&self, cta: &mut Cta<'_>, matrix: &Matrix) {
        cta.each_warp(|warp| {
            let voxel = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(voxel.lt(self.volume.len() as i32), |warp| {
                // Two divisions by constants, three conversions; three dot products, a reciprocal, floors.
                let voxel = warp.compute(ComputeClass::Int, 11, voxel);
                let shadow = warp.compute(ComputeClass::Fp32, 20, voxel.map(|at| project(matrix, self.voxel(at))));
                let old = warp.load(self.volume, voxel);
                let pixels = AROUND.map(|step| self.fetch(warp, shadow, step));
                let [a, b, c, d] = pixels;
                let (upper, lower) = (a.zip(b, |a, b| (a, b)), c.zip(d, |c, d| (c, d)));
                let four = upper.zip(lower, |(a, b), (c, d)| [a, b, c, d]);
                let new = old + shadow.zip(four, interpolate);
                let new = warp.compute(ComputeClass::Fp32, 10, new);
                warp.store(self.volume, voxel, new);
            });
        });
    }

    fn fetch(&self, warp: &mut Warp<'_>, shadow: Lanes<Projection>, step: (i32, i32)) -> Lanes<f32> {
        let inside = shadow.map(|shadow| self.pixel(shadow, step).is_some());
        let index = shadow.map(|shadow| self.pixel(shadow, step).unwrap_or_default());
        let index = warp.compute(ComputeClass::Int, 4, index);
        let [value] = warp.load_vector_if(inside, self.image, index);
        value
    }

    fn intensity(&self, image: u64, pixel: u64) -> f32 {
        noise::unit(self.seed.wrapping_add(image), pixel)
    }
}

impl Instance for Reconstruction {
    fn fill(&self, _: &Memory) {}

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.volume);
        let ctas = self.volume.len().div_ceil(u64::from(THREADS));
        for image in 0..self.images {
            host.memory().fill(self.image, |pixel| self.intensity(image, pixel));
            host.copy_to_device(self.image);
            let matrix = self.matrix(image);
            host.launch(Grid::new("back-project", ctas, THREADS), |cta| self.kernel(cta, &matrix))?;
        }
        host.copy_to_host(self.volume);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut expected = vec![0.0; self.volume.len() as usize];
        for image in 0..self.images {
            let matrix = self.matrix(image);
            for (index, voxel) in (0..).zip(&mut expected) {
                let shadow = project(&matrix, self.voxel(index));
                let value = |step| self.pixel(shadow, step).map_or(0.0, |at| self.intensity(image, at as u64));
                *voxel += interpolate(shadow, AROUND.map(value));
            }
        }
        compare("volume", memory.to_vec(self.volume), expected, 1e-5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_workload::simt::Backing;

    #[test]
    fn the_middle_of_the_volume_falls_on_the_middle_of_the_detector() {
        let mut memory = Memory::new(Backing::AddressOnly);
        let (volume, image) = (memory.array("v", 8, Scaling::Fixed), memory.array("i", 8, Scaling::Fixed));
        let scan = Reconstruction { volume, image, voxels: [512; 3], columns: 1248, rows: 960, images: 4, seed: 1 };
        for image in 0..4 {
            let shadow = project(&scan.matrix(image), [256; 3]);
            assert!((shadow.column - 624).abs() <= 1 && (shadow.row - 480).abs() <= 1, "{shadow:?}");
            assert!((shadow.weight - 1.0).abs() < 1e-3, "{shadow:?}");
        }
    }
}
