//! The four kernels that process a colour.

use super::scan::{LARGEST, PIECE};
use super::{Colour, Reconstruction, UNITS};
use crate::prelude::*;

/// Threads per CTA. Source: assumed, so that each thread has a view in three pieces with 720 views.
const THREADS: u32 = 256;
/// Number of thread rows, each as wide as a piece.
const ROWS: i32 = THREADS as i32 / PIECE;
/// Scratchpad words from channel to channel in a tile, to avoid bank conflicts.
const PITCH: i32 = PIECE + 1;
/// Offsets to a voxel's neighbours, along the axes first, and their weights. Source: sv-mbirct, src/icd3d.c and the
/// demo's `b_nearest` and `b_diag`, scaled to sum 1 like in svmbir.
pub(super) const NEIGHBOURS: [([i32; 2], f32); 8] = [
    ([1, 0], NEAREST),
    ([-1, 0], NEAREST),
    ([0, 1], NEAREST),
    ([0, -1], NEAREST),
    ([1, 1], DIAGONAL),
    ([-1, 1], DIAGONAL),
    ([1, -1], DIAGONAL),
    ([-1, -1], DIAGONAL),
];
const NEAREST: f32 = 1.0 / (4.0 + 4.0 * 0.707);
const DIAGONAL: f32 = 0.707 * NEAREST;
/// The q-generalized Gaussian prior: near and far exponents, and the difference at which the far range starts. Source:
/// svmbir's defaults (`p`, `q`, `T`); `SIGMA` is assumed, a fifth of the phantom's value.
const NEAR: f32 = 2.0;
const FAR: f32 = 1.2;
const THRESHOLD: f32 = 1.0;
const SIGMA: f32 = 0.2;
/// Instructions for a neighbour's coefficient: two powers, sums, products and a division. Source: counted, for
/// `QGGMRF_SurrogateCoeff`.
const COEFFICIENT: (u16, u16) = (14, 5);
/// Integer instructions for a band index or a buffer index. Source: counted.
const INDEX: u16 = 6;

type RecordResult = Result<(), RecordError>;

/// Weight that pulls a neighbour difference to zero: the curvature of the quadratic that touches the prior.
pub(super) fn coefficient(difference: f32) -> f32 {
    let (near, far) = (SIGMA.powf(NEAR), SIGMA.powf(FAR));
    let size = difference.abs();
    if size == 0.0 {
        return 2.0 / (FAR * near * THRESHOLD.powf(NEAR - FAR));
    }
    let ratio = (size / (THRESHOLD * SIGMA)).powf(NEAR - FAR);
    (NEAR / FAR + ratio) * size.powf(FAR - 2.0) * ratio / (far * (1.0 + ratio) * (1.0 + ratio))
}

/// Column and row for a thread, in rows as wide as a piece.
fn thread(warp: &Warp<'_>) -> [Lanes<i32>; 2] {
    [warp.thread() % PIECE, warp.thread() / PIECE]
}

/// Work item for a CTA.
#[derive(Clone, Copy)]
struct PieceWork {
    /// Index of the supervoxel among the supervoxels in its colour.
    slot: i32,
    supervoxel: i32,
    piece: i32,
}

/// The voxel that a CTA updates.
struct Voxel {
    at: [i32; 2],
    /// Index of the voxel's place among the places in all supervoxels.
    index: i32,
    /// First channel of the voxel's room in the band, by piece.
    firsts: Vec<i32>,
}

/// Sums over a voxel's rays: error times entry, and squared entries, both multiplied by the error's weight.
type RaySums = [Lanes<f32>; 2];

impl Reconstruction {
    /// Buffer index for a channel and a view in a piece.
    fn at(&self, part: PieceWork, channel: Lanes<i32>, view: Lanes<i32>) -> Lanes<i32> {
        let rows = (part.slot * self.scan.pieces() + part.piece) * self.scan.band();
        (channel + rows) * PIECE + view
    }

    /// Launches a kernel with a CTA for each piece of each supervoxel's band.
    fn each_piece(
        &self,
        host: &mut Host<'_>,
        (name, tiles): (&str, u32),
        colour: &Colour,
        kernel: impl Fn(&mut Cta<'_>, PieceWork) + Sync,
    ) -> RecordResult {
        let words = tiles * (self.scan.band() * PITCH).cast_unsigned();
        host.launch(colour.pieces.grid(name, THREADS).shared_bytes(4 * words), |cta| {
            let tile = colour.pieces.tile(cta.index());
            let slot = tile.items.start as usize;
            kernel(
                cta,
                PieceWork { slot: slot as i32, supervoxel: colour.supervoxels[slot], piece: tile.across as i32 },
            );
        })
    }

    /// Runs `body(warp, view of the piece, view, channel)` with neighbouring threads at neighbouring channels in a
    /// band.
    fn by_channel(
        &self,
        cta: &mut Cta<'_>,
        part: PieceWork,
        mut body: impl FnMut(&mut Warp<'_>, Lanes<i32>, Lanes<i32>, Lanes<i32>),
    ) {
        cta.each_warp(|warp| {
            let [column, row] = thread(warp);
            for first in (0..PIECE).step_by(ROWS as usize) {
                let view = row + first;
                let of_scan = view + part.piece * PIECE;
                for channel in (0..self.scan.band()).step_by(PIECE as usize).map(|first| column + first) {
                    let is_inside = channel.lt(self.scan.band()) & of_scan.lt(self.scan.views);
                    warp.when(is_inside, |warp| body(warp, view, of_scan, channel));
                }
            }
        });
    }

    /// Runs `body(warp, channel, view of the piece)` with neighbouring threads at neighbouring views.
    fn by_view(&self, cta: &mut Cta<'_>, part: PieceWork, mut body: impl FnMut(&mut Warp<'_>, Lanes<i32>, Lanes<i32>)) {
        cta.each_warp(|warp| {
            let [view, row] = thread(warp);
            for first in (0..self.scan.band()).step_by(ROWS as usize) {
                let channel = row + first;
                let is_inside = channel.lt(self.scan.band()) & (view + part.piece * PIECE).lt(self.scan.views);
                warp.when(is_inside, |warp| body(warp, channel, view));
            }
        });
    }

    /// Sinogram index for a channel in a supervoxel's band, after a load from the band table.
    fn sinogram_index(
        &self,
        warp: &mut Warp<'_>,
        supervoxel: Lanes<i32>,
        view: Lanes<i32>,
        channel: Lanes<i32>,
    ) -> Lanes<i32> {
        let start = warp.load(self.bands, supervoxel * self.scan.views + view);
        warp.compute(ComputeClass::Int, INDEX, start);
        let last = self.scan.views - 1;
        let start = supervoxel.zip(view, |supervoxel, view| self.scan.band_start(supervoxel, view.min(last)));
        view * self.scan.row() + start + channel
    }

    /// Copies bands from the sinogram to buffers, transposed so that views are neighbours.
    pub(super) fn copy_in(&self, host: &mut Host<'_>, colour: &Colour) -> RecordResult {
        self.each_piece(host, ("copy-in", 2), colour, |cta, part| {
            let words = (self.scan.band() * PITCH) as usize;
            let (mut errors, mut weights): (Shared<f32>, Shared<f32>) = (cta.shared(words), cta.shared(words));
            self.by_channel(cta, part, |warp, view, of_scan, channel| {
                let at = self.sinogram_index(warp, Lanes::all(part.supervoxel), of_scan, channel);
                let (error, weight) = (warp.load(self.errors, at), warp.load(self.weights, at));
                let error = warp.compute(ComputeClass::Fp32, 2, error).map(|units| (f64::from(units) / UNITS) as f32);
                warp.store_shared(&mut errors, channel * PITCH + view, error);
                warp.store_shared(&mut weights, channel * PITCH + view, weight);
            });
            cta.barrier();
            self.by_view(cta, part, |warp, channel, view| {
                let at = warp.compute(ComputeClass::Int, INDEX, self.at(part, channel, view));
                let error = warp.load_shared(&errors, channel * PITCH + view);
                let weight = warp.load_shared(&weights, channel * PITCH + view);
                warp.store(self.buffer, at, error);
                warp.store(self.original, at, error);
                warp.store(self.buffer_weights, at, weight);
            });
        })
    }

    /// Stores the update's changes in the buffers, in sinogram units, view by view.
    pub(super) fn store_differences(&self, host: &mut Host<'_>, colour: &Colour) -> RecordResult {
        self.each_piece(host, ("differences", 1), colour, |cta, part| {
            let mut tile: Shared<i32> = cta.shared((self.scan.band() * PITCH) as usize);
            self.by_view(cta, part, |warp, channel, view| {
                let at = warp.compute(ComputeClass::Int, INDEX, self.at(part, channel, view));
                let (new, old) = (warp.load(self.buffer, at), warp.load(self.original, at));
                let change = warp.compute(ComputeClass::Fp32, 3, new - old).map(units);
                warp.store_shared(&mut tile, channel * PITCH + view, change);
            });
            cta.barrier();
            self.by_channel(cta, part, |warp, view, of_scan, channel| {
                let at = (of_scan + part.slot * self.scan.views) * self.scan.band() + channel;
                let at = warp.compute(ComputeClass::Int, INDEX, at);
                let change = warp.load_shared(&tile, channel * PITCH + view);
                warp.store(self.differences, at, change);
            });
        })
    }

    /// Adds differences back to the sinogram with a CTA per view: each thread row processes every eighth supervoxel.
    pub(super) fn add_back(&self, host: &mut Host<'_>, colour: &Colour) -> RecordResult {
        let (scan, slots) = (&self.scan, colour.supervoxels.len() as i32);
        host.launch(colour.views.grid("add-back", THREADS), |cta| {
            let view = colour.views.tile(cta.index()).items.start as i32;
            cta.each_warp(|warp| {
                let [column, row] = thread(warp);
                for slot in (0..slots).step_by(ROWS as usize).map(|first| row + first) {
                    warp.when(slot.lt(slots), |warp| {
                        let supervoxel = slot.map(|slot| colour.supervoxels[(slot.min(slots - 1)) as usize]);
                        for channel in (0..scan.band()).step_by(PIECE as usize).map(|first| column + first) {
                            warp.when(channel.lt(scan.band()), |warp| {
                                let at = self.sinogram_index(warp, supervoxel, Lanes::all(view), channel);
                                let from = (slot * scan.views + view) * scan.band() + channel;
                                let from = warp.compute(ComputeClass::Int, INDEX, from);
                                let change = warp.load(self.differences, from);
                                warp.reduce(Reduction::Add, self.errors, at, change, Order::relaxed(Scope::Gpu));
                            });
                        }
                    });
                }
            });
        })
    }

    /// Adds differences back to the sinogram without atomics: a CTA per view, a thread per channel. Each warp finds the
    /// supervoxels whose bands overlap its channels, as many supervoxels at once as it has lanes.
    pub(super) fn gather_back(&self, host: &mut Host<'_>, colour: &Colour) -> RecordResult {
        let (scan, slots) = (&self.scan, colour.supervoxels.len() as i32);
        host.launch(colour.views.grid("add-back", THREADS), |cta| {
            let view = colour.views.tile(cta.index()).items.start as i32;
            cta.each_warp(|warp| {
                let width = warp.width() as i32;
                for strip in (0..scan.row()).step_by(THREADS as usize) {
                    let first = strip + warp.index() as i32 * width;
                    let channel = warp.compute(ComputeClass::Int, 2, warp.thread() + strip);
                    warp.when(channel.lt(scan.row()), |warp| {
                        let mut changes = Vec::new();
                        for slot in (0..slots).step_by(width as usize) {
                            self.look_up_bands(warp, colour, slot, view);
                            for slot in slot..(slot + width).min(slots) {
                                let start = scan.band_start(colour.supervoxels[slot as usize], view);
                                if start < first + width && first < start + scan.band() {
                                    changes.push(self.difference(warp, slot, view, channel - start));
                                }
                            }
                        }
                        self.add_changes(warp, &changes, channel + view * scan.row());
                    });
                }
            });
        })
    }

    /// Loads the bands' first channels for the supervoxels from `slot` on, a lane each, and votes on overlaps.
    fn look_up_bands(&self, warp: &mut Warp<'_>, colour: &Colour, slot: i32, view: i32) {
        let slots = colour.supervoxels.len() as i32;
        let own = warp.lane() + slot;
        warp.when(own.lt(slots), |warp| {
            let supervoxel = own.map(|own| colour.supervoxels[own.min(slots - 1) as usize]);
            let start = warp.load(self.bands, supervoxel * self.scan.views + view);
            // Two comparisons and the vote.
            warp.compute(ComputeClass::Int, 3, start);
        });
    }

    /// Loads a supervoxel's difference for each lane whose channel `offset` lies in the supervoxel's band; zero for
    /// other lanes. The band's first channel comes from another lane by a shuffle.
    fn difference(&self, warp: &mut Warp<'_>, slot: i32, view: i32, offset: Lanes<i32>) -> Lanes<i32> {
        let offset = warp.compute(ComputeClass::Other, 1, offset);
        let from = warp.compute(ComputeClass::Int, INDEX, offset + (slot * self.scan.views + view) * self.scan.band());
        let [change] = warp.load_vector_if(offset.ge(0) & offset.lt(self.scan.band()), self.differences, from);
        change
    }

    /// Adds differences to an error, and stores it. Errors that no band covers stay.
    fn add_changes(&self, warp: &mut Warp<'_>, changes: &[Lanes<i32>], at: Lanes<i32>) {
        if changes.is_empty() {
            return;
        }
        let error = warp.load(self.errors, at);
        let sum = changes.iter().fold(error, |sum, change| sum + *change);
        let sum = warp.compute(ComputeClass::Int, changes.len() as u16, sum);
        warp.store(self.errors, at, sum);
    }

    /// Updates the voxels in each supervoxel, voxel after voxel.
    pub(super) fn update(&self, host: &mut Host<'_>, colour: &Colour) -> RecordResult {
        let grid = colour.whole.grid("update", THREADS).shared_bytes(4 * (2 * THREADS / PIECE as u32 + 1));
        host.launch(grid, |cta| {
            let slot = colour.whole.tile(cta.index()).items.start as usize;
            let part = PieceWork { slot: slot as i32, supervoxel: colour.supervoxels[slot], piece: 0 };
            let mut partial: [Shared<f32>; 2] = [cta.shared(ROWS as usize), cta.shared(ROWS as usize)];
            let mut change: Shared<f32> = cta.shared(1);
            for place in self.order(part.supervoxel) {
                let Some(at) = self.scan.voxel(part.supervoxel, place) else { continue };
                let first = |piece| self.scan.first(part.supervoxel, place, piece);
                let voxel = Voxel {
                    at,
                    index: part.supervoxel * self.scan.voxels() + place,
                    firsts: (0..self.scan.pieces()).map(first).collect(),
                };
                cta.each_warp(|warp| {
                    let sums = self.rays(warp, part.slot, &voxel);
                    let sums = sums.map(|sum| warp.sum_lanes(ComputeClass::Fp32, sum, warp.width()));
                    let index = Lanes::all(warp.index());
                    warp.single(|warp| {
                        partial.iter_mut().zip(sums).for_each(|(all, sum)| warp.store_shared(all, index, sum));
                    });
                });
                cta.barrier();
                let warps = cta.warps() as i32;
                cta.warp(0, |warp| {
                    let lane = warp.lane();
                    let sums = [0, 1].map(|which| {
                        let mut sum = Lanes::all(0.0_f32);
                        warp.when(lane.lt(warps), |warp| {
                            let loaded = warp.load_shared(&partial[which], lane);
                            sum = warp.update(sum, loaded);
                        });
                        warp.sum_lanes(ComputeClass::Fp32, sum, warp.width())
                    });
                    self.step(warp, voxel.at, sums, &mut change);
                });
                cta.barrier();
                cta.each_warp(|warp| self.subtract_change(warp, part.slot, &voxel, &change));
            }
        })
    }

    /// Runs `body(warp, index of the buffers, entry of the matrix)` for each channel that a voxel covers, a view per
    /// thread.
    fn each_ray(
        &self,
        warp: &mut Warp<'_>,
        slot: i32,
        voxel: &Voxel,
        mut body: impl FnMut(&mut Warp<'_>, Lanes<i32>, Lanes<f32>),
    ) {
        let (scan, [lane, row]) = (&self.scan, thread(warp));
        let (pieces, room) = (scan.pieces(), scan.room());
        for piece in (0..pieces).step_by(ROWS as usize).map(|first| row + first) {
            warp.when((piece * PIECE + lane).lt(scan.views), |warp| {
                let table = warp.load(self.firsts, piece + voxel.index * pieces);
                warp.compute(ComputeClass::Int, 2 * INDEX, table);
                let words = (piece + voxel.index * pieces) * (room * PIECE / 4) + lane / 4;
                let first = (piece + slot * pieces) * scan.band() + piece.pick(&voxel.firsts);
                for channel in 0..room {
                    let word = warp.load(self.matrix, words + channel * (PIECE / 4));
                    let byte = word.zip(lane, |word, lane| (word >> (8 * (lane % 4)) & 255) as f32);
                    let byte = warp.compute(ComputeClass::Int, 3, byte);
                    body(warp, (first + channel) * PIECE + lane, byte);
                }
            });
        }
    }

    /// Sums over a voxel's rays, restricted to each thread's views.
    fn rays(&self, warp: &mut Warp<'_>, slot: i32, voxel: &Voxel) -> RaySums {
        let mut sums = [Lanes::all(0.0_f32); 2];
        self.each_ray(warp, slot, voxel, |warp, at, entry| {
            let (error, weight) = (warp.load(self.buffer, at), warp.load(self.buffer_weights, at));
            let given = [sums[0], sums[1], entry, weight, error];
            let added = warp.calculate(ComputeClass::Fp32, 4, given, |[first, second, entry, weight, error]| {
                [first + entry * weight * error, second + entry * weight * entry]
            });
            sums = [warp.update(sums[0], added[0]), warp.update(sums[1], added[1])];
        });
        sums
    }

    /// Computes a voxel's new value and its change, from its rays and its neighbours.
    fn step(&self, warp: &mut Warp<'_>, [x, y]: [i32; 2], rays: RaySums, change: &mut Shared<f32>) {
        let (scan, lane) = (&self.scan, warp.lane());
        let own = Lanes::all(y * scan.side + x);
        let centre = warp.load(self.image, own);
        let mut prior = [Lanes::all(0.0_f32); 2];
        warp.when(lane.lt(NEIGHBOURS.len() as i32), |warp| {
            let neighbour = lane.map(|lane| NEIGHBOURS[lane as usize % NEIGHBOURS.len()]);
            let at = neighbour.map(|([right, down], _)| scan.neighbour([x, y], [right, down]));
            let weight = neighbour.map(|(_, weight)| weight);
            let at = warp.compute(ComputeClass::Int, 8, at);
            let value = warp.load(self.image, at);
            let value = warp.compute(ComputeClass::Special, COEFFICIENT.1, value);
            let terms =
                warp.calculate(ComputeClass::Fp32, COEFFICIENT.0, [centre, value, weight], |[own, value, weight]| {
                    let curve = weight * coefficient(own - value);
                    [curve * (own - value), curve]
                });
            prior = [warp.update(prior[0], terms[0]), warp.update(prior[1], terms[1])];
        });
        let prior = prior.map(|sum| warp.sum_lanes(ComputeClass::Fp32, sum, NEIGHBOURS.len() as u32));
        let (entry, damping) = ((LARGEST / 255.0) as f32, scan.damping());
        let given = [centre, rays[0], rays[1], prior[0], prior[1]];
        let moved = warp.calculate(ComputeClass::Fp32, 12, given, |[old, first, second, slope, curve]| {
            let step = (first * entry - slope) / (second * entry * entry + curve);
            let new = (old + damping * step).max(0.0);
            [new, new - old]
        });
        warp.compute(ComputeClass::Special, 1, ());
        warp.single(|warp| {
            warp.store(self.image, own, moved[0]);
            warp.store_shared(change, Lanes::all(0), moved[1]);
        });
    }

    /// Subtracts a voxel's change from the errors on all its rays.
    fn subtract_change(&self, warp: &mut Warp<'_>, slot: i32, voxel: &Voxel, change: &Shared<f32>) {
        let change = warp.load_shared(change, Lanes::all(0));
        let change = warp.compute(ComputeClass::Fp32, 1, change * (LARGEST / 255.0) as f32);
        self.each_ray(warp, slot, voxel, |warp, at, entry| {
            let error = warp.load(self.buffer, at);
            let [left] = warp.calculate(ComputeClass::Fp32, 1, [error, entry, change], |[error, entry, change]| {
                [error - entry * change]
            });
            warp.store(self.buffer, at, left);
        });
    }
}

/// Error in sinogram units.
fn units(error: f32) -> i32 {
    (f64::from(error) * UNITS).round() as i32
}
