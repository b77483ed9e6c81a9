//! Model-based iterative reconstruction (MBIR) for a tomographic image by coordinate descent, following GPU-ICD, on
//! several GPUs.
//!
//! The error sinogram is the scan less the image's projection. A voxel's update weighs the errors on all its rays
//! against its eight neighbours, and subtracts its change from the errors. Supervoxels are squares of voxels, shared
//! out among the GPUs. They are updated colour by colour on a checkerboard, with all supervoxels in a colour
//! concurrent. Each colour has four kernels:
//! - `copy-in`: loads each supervoxel's band from the sinogram, and transposes it view by view to rows with 32 views.
//! - `update`: uses one CTA per supervoxel, voxel after voxel; threads share a voxel's views.
//! - `differences`: computes a supervoxel's changes in its band, transposed back.
//! - `add-back`: adds to each view in the sinogram the differences from all supervoxels in the colour, by atomic
//!   additions. With `add_back=stores`, a thread per channel sums up the differences instead, and stores the new error:
//!   a view's owner alone writes it. GPS, 7.4, does not count CT among the programs whose atomics miss the write queue.
//!
//! The first three kernels are cut by supervoxels, the last by views, which only their owner writes. Each GPU therefore
//! reads data written by all other GPUs: in `add-back` the differences in its own views, in `copy-in` the views for its
//! own bands. The image is read across GPUs only at supervoxels' borders.
//!
//! Departures from the sources:
//! - Errors are integers in units of 2^-16, so that sums do not depend on their order; the sources add floats
//!   atomically.
//! - One CTA updates a supervoxel. GPU-ICD has several, which see each other's changes.
//! - All supervoxels in a colour are updated, in one order in all iterations. The sources select supervoxels with the
//!   largest changes, shuffle voxels, and skip zero voxels.
//! - Steps are damped by the number of supervoxels in a colour on a line, which all respond to the same errors. GPU-ICD
//!   has fewer at once.
//! - Matrix entries are bytes relative to a common maximum, padded to equal room for all voxels; the sources have a
//!   maximum for each voxel. Beyond the border the image continues with its last voxel; the sources wrap around.
//! - Bands and rooms are geometry: kernels load their tables, but compute the addresses from the geometry itself.

mod kernels;
mod reference;
mod scan;

use crate::prelude::*;
use scan::{COLOURS, LARGEST, PIECE, Scan};

const PAPER: &str = "assumed: the size of medical scans, for which GPU-ICD (Sabne et al., PPoPP 2017) was written";
/// Sinogram units for an error of 1. Source: assumed, 2^16: errors up to 2^14 fit, and a unit is near a float's
/// rounding error.
const UNITS: f64 = 65_536.0;
/// Initial value for all voxels. Source: assumed, half the phantom's value.
const START: f64 = 0.5;

program! {
    /// tomographic reconstruction by coordinate descent on several GPUs: supervoxels, a sinogram shared by all
    pub(crate) static MBIR = "mbir",
        "sv-mbirct (HPImaging/sv-mbirct); GPU-ICD (Sabne et al., PPoPP 2017); GPS, Table 2 (CT)";
    properties: data_independent, partitioned_by_gpus;
    parameters {
        /// voxels of the image along either axis; does not scale
        side: count(16..=2048) = 512, PAPER;
        /// views at scale 1, 720 to half a turn; scales: what is exchanged and computed both follow
        views: count(1..=1 << 14) = 720, PAPER;
        /// channels of the detector, which covers the image's diagonal; does not scale
        channels: count(16..=1 << 13) = 1024, PAPER;
        /// voxels from the middle of a supervoxel to its side
        radius: count(3..=32) = 9, "sv-mbirct (HPImaging/sv-mbirct), src/mbir_ct.h (`SVLENGTH`)";
        /// updates of all supervoxels
        iterations: count(1..=1000) = 8, "assumed: the demo of sv-mbirct has at most 20, all alike here";
        /// a thread per difference that adds to the sinogram by an atomic, or a thread per error that stores it
        add_back: choice("atomics", "stores") = "atomics",
            "sv-mbirct, src/recon3d.c, and GPU-ICD: differences are added by atomics";
    }
    lay_out(name, request, memory) {
        let count = |key| request.values.count(key);
        let [side, channels, radius, iterations] = ["side", "channels", "radius", "iterations"].map(count);
        let views = request.scale.of(views);
        let gpus = request.gpus();
        require(name, views >= u64::from(gpus), || format!("{views} views leave some of {gpus} GPUs without any"))?;
        require(name, channels >= side, || format!("{channels} channels are fewer than the {side} voxels of a side"))?;
        let scan = Scan::new(side as i32, views as i32, channels as i32, radius as i32);
        let [pieces, voxels, supervoxels, room, band] =
            [scan.pieces(), scan.voxels(), scan.supervoxels(), scan.room(), scan.band()].map(|count| count as u64);
        let piece = PIECE as u64;
        let words = supervoxels * voxels * pieces * room * piece / 4;
        check_indices(name, words, "words of the matrix")?;
        let colours: Vec<Vec<i32>> = COLOURS.map(|colour| scan.coloured(colour)).into();
        let most = colours.iter().map(Vec::len).max().unwrap_or_default() as u64;
        check_indices(name, most * pieces * band * piece, "values of buffers")?;
        let sinogram = views * scan.row() as u64;
        let buffer = |memory: &mut Memory, name| memory.array(name, most * pieces * band * piece, Scaling::Scales);
    }
    struct Reconstruction {
        /// Image, row by row.
        image: Array<f32>[side * side, fixed],
        /// Errors, view by view, in sinogram units; and each error's weight.
        errors: Array<i32>[sinogram],
        weights: Array<f32>[sinogram],
        /// First channel in the band, by supervoxel and view.
        bands: Array<i32>[supervoxels * views],
        /// By supervoxel, place and piece: first channel in the band; then matrix bytes by channel and view, four per
        /// word.
        firsts: Array<i32>[supervoxels * voxels * pieces],
        matrix: Array<u32>[words],
        /// By supervoxel in the colour and piece, channel and view: errors, original errors, weights.
        buffer: Array<f32> = buffer(memory, "buffer"),
        original: Array<f32> = buffer(memory, "original"),
        buffer_weights: Array<f32> = buffer(memory, "buffer-weights"),
        /// Differences by supervoxel in the colour, view and channel, in sinogram units.
        differences: Array<i32>[most * views * band],
        /// Colours in update order.
        colours: Vec<Colour> = colours.into_iter().map(|supervoxels| Colour::cut(supervoxels, &scan, gpus)).collect(),
        /// True if `add-back` adds by atomics.
        adds_atomically: bool = add_back == "atomics",
        iterations: u64,
        seed: u64 = request.seed,
        scan: Scan,
    }
}

/// Supervoxels in a colour, with their partition and the views' partition.
struct Colour {
    supervoxels: Vec<i32>,
    /// Grid with a CTA per supervoxel.
    whole: PartitionGrid,
    /// Grid with a CTA per piece in each supervoxel.
    pieces: PartitionGrid,
    /// Grid with a CTA per view.
    views: PartitionGrid,
}

impl Colour {
    fn cut(supervoxels: Vec<i32>, scan: &Scan, gpus: u8) -> Colour {
        let cut = Partition::even(supervoxels.len() as u64, gpus);
        Colour {
            whole: cut.tiles(1, 1),
            pieces: cut.tiles(1, scan.pieces() as u64),
            views: Partition::even(scan.views as u64, gpus).tiles(1, 1),
            supervoxels,
        }
    }
}

impl Reconstruction {
    /// Scanned object: a disc with a square hole, and grains.
    fn phantom(&self, [x, y]: [i32; 2]) -> f64 {
        let side = f64::from(self.scan.side);
        let [across, along] = [x, y].map(|at| (f64::from(at) + 0.5) / side - 0.5);
        let grain = 0.1 * f64::from(noise::unit(self.seed, (y * self.scan.side + x) as u64));
        let hole = (across - 0.1).abs() < 0.1 && along.abs() < 0.15;
        if across.hypot(along) > 0.45 || hole { 0.0 } else { 1.0 + grain }
    }

    /// Initial errors, in sinogram units: the phantom's projection less the first image's projection.
    fn first_errors(&self) -> Vec<i32> {
        let scan = &self.scan;
        let mut errors = vec![0.0_f64; (scan.views * scan.row()) as usize];
        for voxel in (0..scan.side).flat_map(|y| (0..scan.side).map(move |x| [x, y])) {
            let value = (self.phantom(voxel) - START) * LARGEST / 255.0;
            for view in 0..scan.views {
                let start = scan.start(voxel, view);
                for channel in start..(start + scan.shadow()).min(scan.channels) {
                    errors[(view * scan.row() + channel) as usize] +=
                        value * f64::from(scan.entry(voxel, view, channel));
                }
            }
        }
        errors.into_iter().map(|error| (error * UNITS).round() as i32).collect()
    }

    /// Weight for an error: fewer quanta arrive in the middle of the detector. Zero beyond the detector.
    fn weight(&self, index: i32) -> f32 {
        let channel = index % self.scan.row();
        if channel >= self.scan.channels {
            return 0.0;
        }
        let middle = 2.0 * channel as f32 / self.scan.channels as f32 - 1.0;
        0.5 + 0.5 * middle * middle
    }

    /// Places in a supervoxel in update order.
    fn order(&self, supervoxel: i32) -> Vec<i32> {
        let mut places: Vec<i32> =
            (0..self.scan.voxels()).filter(|place| self.scan.voxel(supervoxel, *place).is_some()).collect();
        let seed = noise::noise(self.seed, supervoxel as u64);
        for at in (1..places.len()).rev() {
            places.swap(at, noise::below(seed, at as u64, at as u64 + 1) as usize);
        }
        places
    }

    /// Four matrix entries packed in a word.
    fn word(&self, index: u64) -> u32 {
        let (pieces, room, quads) = (self.scan.pieces() as u64, self.scan.room() as u64, PIECE as u64 / 4);
        let [quad, offset, rest] = [index % quads, index / quads % room, index / quads / room];
        let [piece, rest] = [rest % pieces, rest / pieces].map(|at| at as i32);
        let (supervoxel, place) = (rest / self.scan.voxels(), rest % self.scan.voxels());
        let Some(voxel) = self.scan.voxel(supervoxel, place) else { return 0 };
        let first = self.scan.first(supervoxel, place, piece);
        let byte = |lane: i32| {
            let view = piece * PIECE + quad as i32 * 4 + lane;
            if view >= self.scan.views {
                return 0;
            }
            let channel = self.scan.band_start(supervoxel, view) + first + offset as i32;
            self.scan.entry(voxel, view, channel) << (8 * lane)
        };
        (0..4).map(byte).sum()
    }
}

impl Instance for Reconstruction {
    fn fill(&self, memory: &Memory) {
        let scan = &self.scan;
        memory.fill(self.image, |_| START as f32);
        let errors =
            if memory.backing() == tombolo_workload::simt::Backing::Real { self.first_errors() } else { Vec::new() };
        memory.fill(self.errors, |index| errors[index as usize]);
        memory.fill(self.weights, |index| self.weight(index as i32));
        memory.fill(self.bands, |index| scan.band_start(index as i32 / scan.views, index as i32 % scan.views));
        memory.fill(self.firsts, |index| {
            let (rest, piece) = (index as i32 / scan.pieces(), index as i32 % scan.pieces());
            scan.first(rest / scan.voxels(), rest % scan.voxels(), piece)
        });
        memory.fill(self.matrix, |index| self.word(index));
        [self.buffer, self.original, self.buffer_weights].iter().for_each(|array| memory.clear(*array));
        memory.clear(self.differences);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.image);
        host.copy_to_device(self.errors);
        host.copy_to_device(self.weights);
        host.copy_to_device(self.bands);
        host.copy_to_device(self.firsts);
        host.copy_to_device(self.matrix);
        for _ in 0..self.iterations {
            for colour in &self.colours {
                self.copy_in(host, colour)?;
                self.update(host, colour)?;
                self.store_differences(host, colour)?;
                if self.adds_atomically {
                    self.add_back(host, colour)?;
                } else {
                    self.gather_back(host, colour)?;
                }
            }
        }
        host.copy_to_host(self.image);
        host.copy_to_host(self.errors);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        reference::verify(self, memory)
    }
}
