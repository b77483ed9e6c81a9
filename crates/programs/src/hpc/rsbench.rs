//! RSBench: macroscopic neutron cross sections by the multipole method, with the data for each lookup computed anew.
//!
//! A lookup draws an energy and a material. For each nuclide in the material it finds the energy's window, and sums
//! each resonance's contribution over the window's poles, broadened by temperature with the Faddeeva function. The
//! program gathers few bytes at random, and does much arithmetic.
//!
//! Not modelled: for each lookup, RSBench only records the index of the largest cross section; here the result is the
//! sum over all four, so that all four are checked. Each material's nuclides are drawn at random.

mod faddeeva;

use self::faddeeva::{Complex, faddeeva};
use crate::prelude::*;

/// Threads per CTA. Source: NUMA-GPU, Table 2: 7813 CTAs for two million lookups.
const THREADS: u32 = 256;
/// Number of nuclides per material. Source: RSBench, Hoogenboom and Martin's small reactor.
const NUCLIDES_OF: [u32; 12] = [34, 5, 4, 4, 27, 21, 21, 21, 21, 21, 9, 9];
/// Maximum number of nuclides in a material.
const MOST: u32 = 34;
/// Lookup frequency per material, in thousandths. Source: RSBench, `pick_mat`; they sum to 1001.
const SHARES: [u64; 12] = [140, 52, 275, 134, 154, 64, 66, 55, 8, 15, 25, 13];
/// Number of angular momenta. Source: RSBench (`numL`).
const MOMENTA: u64 = 4;
/// Broadening width from temperature for a resonance. Source: RSBench (`dopp`).
const BROADENING: f64 = 0.5;
/// Integer instructions for a lookup's random numbers. Source: RSBench, `fast_forward_LCG`: 22 rounds with five
/// instructions for two million lookups, and two steps.
const RANDOM: u16 = 116;
/// Instructions for the phase factors: four each for sine, cosine and arctangent, about 25 instructions in double
/// precision. Source: counted from CUDA's math library, about.
const FACTORS: u16 = 300;
/// Instructions per pole: the Faddeeva function with ten complex divisions at 17 each, an exponential, a sine and a
/// cosine at 25 each, and five complex products. Source: counted, like [`FACTORS`].
const POLE: u16 = 290;

program! {
    /// cross sections from resonance poles: gathers of little data, much arithmetic
    pub(crate) static RSBENCH = "rsbench", "RSBench (Tramm et al., EASC 2014); NUMA-GPU, Table 2 (HPC-RSBench)";
    parameters {
        /// lookups, at scale 1; scales
        lookups: count(1..=1 << 28) = 2_000_000, "NUMA-GPU, Table 2: 7813 CTAs of 256 threads";
        /// nuclides
        nuclides: count(MOST as u64..=1 << 12) = 68, "RSBench, `-s small`";
        /// poles of a nuclide on average, at scale 1; scales
        poles: count(1..=1 << 16) = 1000, "RSBench (`avg_n_poles`)";
        /// windows of a nuclide on average, at scale 1; scales, so that a window keeps its poles
        windows: count(1..=1 << 12) = 100, "RSBench (`avg_n_windows`)";
    }
    lay_out(name, request, memory) {
        let count = |key| request.values.count(key);
        let scaled = |key| request.scale.of(count(key));
        let sizes: Vec<_> = spread(request.seed ^ 1, nuclides, scaled("poles"))
            .into_iter()
            .zip(spread(request.seed ^ 2, nuclides, scaled("windows")))
            .collect();
        let poles: u64 = sizes.iter().map(|(poles, _)| poles).sum();
        let windows: u64 = sizes.iter().map(|(_, windows)| windows).sum();
        check_indices(name, 8 * poles, "numbers of poles")?;
        check_indices(name, scaled("lookups"), "lookups")?;
        let entries = u64::from(MOST) * NUCLIDES_OF.len() as u64;
    }
    struct Library {
        /// Four complex numbers per pole: its position, and its contributions to the total, absorption and fission.
        poles: Array<f64>[8 * poles],
        /// Angular momentum per pole.
        momentum: Array<u32>[poles],
        /// Three values per window: the smooth part for the total, for absorption, and for fission.
        smooth: Array<f64>[3 * windows],
        /// First pole per window, and the end of its pole range.
        range: Array<u32>[2 * windows],
        /// First window per nuclide, and its window count.
        windows: Array<u32>[2 * nuclides, fixed],
        /// Four radii per nuclide, one for each angular momentum.
        radius: Array<f64>[MOMENTA * nuclides, fixed],
        /// Nuclides per material, in rows with [`MOST`] entries, and their densities.
        nuclide: Array<u32>[entries, fixed],
        density: Array<f64>[entries, fixed],
        /// Number of nuclides per material.
        count: Array<u32>[NUCLIDES_OF.len() as u64, fixed],
        result: Array<f64>[scaled("lookups")],
        /// Pole count and window count per nuclide.
        sizes: Vec<(u64, u64)>,
        seed: u64 = request.seed,
    }
}

/// Distributes items over `owners`: each gets one item, and the rest go to random owners, up to a mean of `average`
/// items, like in RSBench.
fn spread(seed: u64, owners: u64, average: u64) -> Vec<u64> {
    let mut items = vec![1; owners as usize];
    for draw in 0..owners * (average - 1) {
        items[noise::below(seed, draw, owners) as usize] += 1;
    }
    items
}

/// Draws a number from 0 (inclusive) to 1 (exclusive).
fn fraction(seed: u64, position: u64) -> f64 {
    noise::below(seed, position, 1 << 32) as f64 / (1_u64 << 32) as f64
}

/// A pole in its stored form.
#[derive(Clone, Copy, Debug, Default)]
struct Pole {
    place: Complex,
    parts: [Complex; 3],
    momentum: u32,
}

/// Phase factors by which temperature and angular momentum rotate a resonance.
fn factors(radius: [f64; 4], root: f64) -> [Complex; 4] {
    let mut factors = [Complex::default(); 4];
    for (momentum, (factor, radius)) in factors.iter_mut().zip(radius).enumerate() {
        let phase = radius * root;
        let square = phase * phase;
        let shift = match momentum {
            0 => 0.0,
            1 => phase.atan(),
            2 => (3.0 * phase / (3.0 - square)).atan(),
            _ => (phase * (15.0 - square) / (15.0 - 6.0 * square)).atan(),
        };
        let angle = 2.0 * (phase - shift);
        *factor = Complex { re: angle.cos(), im: -angle.sin() };
    }
    factors
}

/// Contribution from a pole to total, absorption and fission.
fn resonance(energy: f64, pole: &Pole, factors: &[Complex; 4]) -> [f64; 3] {
    let broad = faddeeva((Complex::real(energy) - pole.place) * BROADENING);
    let [total, absorption, fission] = pole.parts;
    let turned = total * broad * factors[pole.momentum as usize];
    [turned.re, (absorption * broad).re, (fission * broad).re]
}

/// Sum over the four cross sections; the fourth (scattering) is total less absorption.
fn all_four([total, absorption, fission]: [f64; 3]) -> f64 {
    total + absorption + fission + (total - absorption)
}

impl Library {
    fn energy(&self, lookup: u64) -> f64 {
        fraction(self.seed ^ 3, lookup)
    }

    fn material(&self, lookup: u64) -> u32 {
        let mut draw = noise::below(self.seed ^ 4, lookup, SHARES.iter().sum());
        let chosen = SHARES.iter().position(|&share| {
            let here = draw < share;
            draw = draw.wrapping_sub(share);
            here
        });
        chosen.unwrap_or_default() as u32
    }

    fn pole(&self, index: u64) -> Pole {
        let part = |at| fraction(self.seed ^ 5, 9 * index + at);
        let complex = |at: u64| Complex { re: part(2 * at), im: part(2 * at + 1) };
        // Poles lie below the real axis, so that their arguments lie above it.
        let place = Complex { re: part(0), im: -0.05 - part(1) };
        Pole { place, parts: [complex(1), complex(2), complex(3)], momentum: (part(8) * MOMENTA as f64) as u32 }
    }

    fn kernel(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            let lookup = warp.compute(ComputeClass::Int, 1, warp.global_thread());
            warp.when(lookup.lt(self.result.len() as i32), |warp| {
                let lookup = warp.compute(ComputeClass::Int, RANDOM, lookup);
                let energy = map_active(warp, |lane| self.energy(lookup.lane(lane) as u64));
                let material = map_active(warp, |lane| self.material(lookup.lane(lane) as u64));
                let count = warp.load(self.count, material);
                let mut sum = Lanes::all(0.0);
                warp.repeat(count, |warp, at| {
                    let at = warp.compute(ComputeClass::Int, 2, material * MOST + at);
                    let nuclide = warp.load(self.nuclide, at);
                    let density = warp.load(self.density, at);
                    let one = self.nuclide_cross_section(warp, nuclide, energy);
                    let added = warp.compute(ComputeClass::Fp64, 4, sum + one * density);
                    sum = warp.update(sum, added);
                });
                warp.store(self.result, lookup, sum);
            });
        });
    }

    /// Sum over a nuclide's cross sections at an energy.
    fn nuclide_cross_section(&self, warp: &mut Warp<'_>, nuclide: Lanes<u32>, energy: Lanes<f64>) -> Lanes<f64> {
        let [first, windows] = warp.load_vector(self.windows, nuclide * 2);
        let window = first + energy.zip(windows, window_of);
        let window = warp.compute(ComputeClass::Fp64, 4, window);
        let [begin, end] = warp.load_vector(self.range, window * 2);
        let [a, b] = warp.load_vector(self.radius, nuclide * 4);
        let [c, d] = warp.load_vector(self.radius, nuclide * 4 + 2);
        let (a, b, c, d) = (wait_for(warp, a), wait_for(warp, b), wait_for(warp, c), wait_for(warp, d));
        warp.compute(ComputeClass::Fp64, FACTORS, ());
        let turns = map_active(warp, |lane| {
            factors([a.lane(lane), b.lane(lane), c.lane(lane), d.lane(lane)], energy.lane(lane).sqrt())
        });
        let smooth = [0, 1, 2].map(|part| warp.load(self.smooth, window * 3 + part) * energy);
        let mut sums = smooth.map(|part| warp.compute(ComputeClass::Fp64, 1, part));
        let (begin, end) = (wait_for(warp, begin), wait_for(warp, end));
        warp.repeat(end - begin, |warp, at| {
            let pole = self.load_pole(warp, begin + at);
            warp.compute(ComputeClass::Fp64, POLE, ());
            let parts = map_active(warp, |lane| resonance(energy.lane(lane), &pole.lane(lane), &turns.lane(lane)));
            for (part, sum) in sums.iter_mut().enumerate() {
                *sum = warp.update(*sum, *sum + parts.map(|parts| parts[part]));
            }
        });
        let [total, absorption, fission] = sums;
        let both = total.zip(absorption, |total, absorption| (total, absorption));
        both.zip(fission, |(total, absorption), fission| all_four([total, absorption, fission]))
    }

    fn load_pole(&self, warp: &mut Warp<'_>, pole: Lanes<u32>) -> Lanes<Pole> {
        let pole = warp.compute(ComputeClass::Int, 2, pole);
        let numbers = [0, 2, 4, 6].map(|at| warp.load_vector::<f64, u32, 2>(self.poles, pole * 8 + at));
        let momentum = warp.load(self.momentum, pole);
        let numbers = numbers.map(|[re, im]| [wait_for(warp, re), wait_for(warp, im)]);
        let momentum = wait_for(warp, momentum);
        map_active(warp, |lane| {
            let [place, total, absorption, fission] =
                [0, 1, 2, 3].map(|at: usize| Complex { re: numbers[at][0].lane(lane), im: numbers[at][1].lane(lane) });
            Pole { place, parts: [total, absorption, fission], momentum: momentum.lane(lane) }
        })
    }

    /// Reference result for a lookup, from the library in memory.
    fn reference(&self, memory: &Memory, lookup: u64) -> f64 {
        let (energy, material) = (self.energy(lookup), u64::from(self.material(lookup)));
        let mut sum = 0.0;
        for at in 0..u64::from(NUCLIDES_OF[material as usize]) {
            let at = material * u64::from(MOST) + at;
            let nuclide = u64::from(memory.read(self.nuclide, at));
            let first: u64 = self.sizes[..nuclide as usize].iter().map(|(_, windows)| windows).sum();
            let window = first + u64::from(window_of(energy, self.sizes[nuclide as usize].1 as u32));
            let radius = [0, 1, 2, 3].map(|momentum| memory.read(self.radius, MOMENTA * nuclide + momentum));
            let factors = factors(radius, energy.sqrt());
            let mut parts = [0, 1, 2].map(|part| memory.read(self.smooth, 3 * window + part) * energy);
            for pole in memory.read(self.range, 2 * window)..memory.read(self.range, 2 * window + 1) {
                let added = resonance(energy, &self.pole(u64::from(pole)), &factors);
                parts.iter_mut().zip(added).for_each(|(part, added)| *part += added);
            }
            sum += all_four(parts) * memory.read(self.density, at);
        }
        sum
    }
}

/// Waits for a loaded value.
fn wait_for<T: Copy>(warp: &mut Warp<'_>, value: Lanes<T>) -> Lanes<T> {
    warp.compute(ComputeClass::Other, 0, value)
}

/// Window index for an energy from 0 to 1.
fn window_of(energy: f64, windows: u32) -> u32 {
    ((energy * f64::from(windows)) as u32).min(windows.saturating_sub(1))
}

impl Instance for Library {
    fn fill(&self, memory: &Memory) {
        for index in 0..self.momentum.len() {
            let Pole { place, parts: [total, absorption, fission], momentum } = self.pole(index);
            for (at, part) in (0..).zip([place, total, absorption, fission]) {
                memory.write(self.poles, 8 * index + 2 * at, part.re);
                memory.write(self.poles, 8 * index + 2 * at + 1, part.im);
            }
            memory.write(self.momentum, index, momentum);
        }
        memory.fill(self.smooth, |index| fraction(self.seed ^ 6, index));
        memory.fill(self.radius, |index| fraction(self.seed ^ 7, index));
        let (mut pole, mut window) = (0, 0);
        for (nuclide, &(poles, windows)) in (0..).zip(&self.sizes) {
            memory.write(self.windows, 2 * nuclide, window as u32);
            memory.write(self.windows, 2 * nuclide + 1, windows as u32);
            // Windows share the poles evenly.
            for at in 0..windows {
                memory.write(self.range, 2 * window, (pole + poles * at / windows) as u32);
                memory.write(self.range, 2 * window + 1, (pole + poles * (at + 1) / windows) as u32);
                window += 1;
            }
            pole += poles;
        }
        let nuclides = self.sizes.len() as u64;
        memory.fill(self.count, |material| NUCLIDES_OF[material as usize]);
        memory.fill(self.nuclide, |index| noise::below(self.seed ^ 8, index, nuclides) as u32);
        memory.fill(self.density, |index| fraction(self.seed ^ 9, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        [self.poles, self.smooth, self.radius, self.density].into_iter().for_each(|array| host.copy_to_device(array));
        for array in [self.momentum, self.range, self.windows, self.nuclide, self.count] {
            host.copy_to_device(array);
        }
        let ctas = self.result.len().div_ceil(u64::from(THREADS));
        host.launch(Grid::new("lookup", ctas, THREADS), |cta| self.kernel(cta))?;
        host.copy_to_host(self.result);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let expected: Vec<f64> = (0..self.result.len()).map(|lookup| self.reference(memory, lookup)).collect();
        compare_f64("result", &memory.to_vec(self.result), &expected)
    }
}
