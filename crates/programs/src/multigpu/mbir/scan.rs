//! Scan geometry: projection of voxels onto the detector, supervoxels and their bands in the sinogram.

use std::f64::consts::{PI, SQRT_2};

/// Views per half turn. Source: assumed, like the scans in GPU-ICD (Sabne et al., PPoPP 2017); fewer views cover a
/// smaller angle.
const HALF_TURN: f64 = 720.0;
/// Views per piece; over a piece, a voxel's channels are padded to a rectangle. Source: assumed, a warp.
pub(super) const PIECE: i32 = 32;
/// Band length multiple, in channels, so that rows with differences start at 32-byte boundaries. Source: assumed.
const ALIGNED: i32 = 8;
/// Largest matrix entry: the diagonal of a voxel whose side is 1.
pub(super) const LARGEST: f64 = SQRT_2;
/// Colours in update order. Source: sv-mbirct, src/recon3d.c (`group_id_list`).
pub(super) const COLOURS: [i32; 4] = [0, 3, 1, 2];

/// A parallel-beam scan over a square of voxels; the detector covers the square's diagonal.
pub(super) struct Scan {
    /// Number of voxels along either axis.
    pub(super) side: i32,
    pub(super) views: i32,
    pub(super) channels: i32,
    /// Voxels from a supervoxel's middle to its side.
    pub(super) radius: i32,
    /// Cosine and sine of each view's angle.
    turns: Vec<[f64; 2]>,
    /// First channel in the band, by supervoxel and view: `[supervoxel][view]`.
    bands: Vec<i32>,
}

impl Scan {
    pub(super) fn new(side: i32, views: i32, channels: i32, radius: i32) -> Scan {
        let turn = |view: i32| {
            let angle = PI * f64::from(view) / HALF_TURN;
            [angle.cos(), angle.sin()]
        };
        let turns = (0..views).map(turn).collect();
        let mut scan = Scan { side, views, channels, radius, turns, bands: Vec::new() };
        scan.bands = (0..scan.supervoxels()).flat_map(|of| scan.band_starts(of)).collect();
        scan
    }

    /// Number of channels covered by a voxel side.
    fn magnification(&self) -> f64 {
        f64::from(self.channels) / (f64::from(self.side) * SQRT_2)
    }

    /// Voxels along a supervoxel's side, and spacing between supervoxels: they overlap. Source: sv-mbirct,
    /// src/recon3d.c, with `OVERLAPPINGDISTANCE` 2.
    fn width(&self) -> i32 {
        2 * self.radius + 1
    }

    fn pitch(&self) -> i32 {
        2 * self.radius - 2
    }

    /// Number of supervoxels along an axis.
    fn per_line(&self) -> i32 {
        self.side.cast_unsigned().div_ceil(self.pitch().cast_unsigned()) as i32
    }

    pub(super) fn supervoxels(&self) -> i32 {
        self.per_line() * self.per_line()
    }

    /// Number of voxel places in a supervoxel, including places beyond the image.
    pub(super) fn voxels(&self) -> i32 {
        self.width() * self.width()
    }

    pub(super) fn pieces(&self) -> i32 {
        self.views.cast_unsigned().div_ceil(PIECE as u32) as i32
    }

    /// Maximum number of channels covered by a voxel in a single view.
    pub(super) fn shadow(&self) -> i32 {
        (self.magnification() * SQRT_2).floor() as i32 + 1
    }

    /// Channels reserved for a voxel in a piece: the channels in a view, plus its movement in its supervoxel's band
    /// from view to view.
    pub(super) fn room(&self) -> i32 {
        let angle = f64::from(PIECE - 1) * PI / HALF_TURN;
        (f64::from(2 * self.radius) * self.magnification() * angle).ceil() as i32 + 1 + self.shadow()
    }

    /// Number of channels in a supervoxel's band, over all views.
    pub(super) fn band(&self) -> i32 {
        let across = (f64::from(2 * self.radius) * self.magnification() * SQRT_2).ceil() as i32 + 1;
        (across + self.room()).cast_unsigned().next_multiple_of(ALIGNED as u32) as i32
    }

    /// Values from view to view in the sinogram, padded so that no band extends beyond a view's row.
    pub(super) fn row(&self) -> i32 {
        (self.channels + self.band()).cast_unsigned().next_multiple_of(32) as i32
    }

    /// Supervoxels in a colour: no voxel in one supervoxel is adjacent to another supervoxel's voxel.
    pub(super) fn coloured(&self, colour: i32) -> Vec<i32> {
        let of = |supervoxel: i32| supervoxel / self.per_line() % 2 * 2 + supervoxel % self.per_line() % 2;
        (0..self.supervoxels()).filter(|supervoxel| of(*supervoxel) == colour).collect()
    }

    /// Damping factor for a step: all supervoxels in a colour on a line respond to the same errors.
    pub(super) fn damping(&self) -> f32 {
        1.0 / self.per_line().cast_unsigned().div_ceil(2) as f32
    }

    /// Image index for a voxel's neighbour; beyond the border, the index for the nearest border voxel.
    pub(super) fn neighbour(&self, [x, y]: [i32; 2], [right, down]: [i32; 2]) -> i32 {
        let inside = |at: i32| at.clamp(0, self.side - 1);
        inside(y + down) * self.side + inside(x + right)
    }

    /// Column and row for a place in a supervoxel; `None` beyond the image.
    pub(super) fn voxel(&self, supervoxel: i32, place: i32) -> Option<[i32; 2]> {
        let corner = [supervoxel % self.per_line(), supervoxel / self.per_line()].map(|at| at * self.pitch());
        let voxel = [corner[0] + place % self.width(), corner[1] + place / self.width()];
        voxel.iter().all(|at| *at < self.side).then_some(voxel)
    }

    /// Middle of a voxel's shadow on the detector, in channels, and half the shadow's width.
    fn project(&self, [x, y]: [i32; 2], view: i32) -> [f64; 2] {
        let [cosine, sine] = self.turns[view as usize];
        let [x, y] = [x, y].map(|at| f64::from(at) - f64::from(self.side - 1) / 2.0);
        let middle = f64::from(self.channels - 1) / 2.0 + self.magnification() * (x * cosine + y * sine);
        [middle, self.magnification() * (cosine.abs() + sine.abs()) / 2.0]
    }

    /// First channel on which a voxel's shadow falls.
    pub(super) fn start(&self, voxel: [i32; 2], view: i32) -> i32 {
        let [middle, half] = self.project(voxel, view);
        (middle - half).ceil() as i32
    }

    /// Matrix entry in 255ths of the largest: the length of a ray inside a voxel. A ray hits the middle of a channel.
    pub(super) fn entry(&self, voxel: [i32; 2], view: i32, channel: i32) -> u32 {
        let [cosine, sine] = self.turns[view as usize].map(f64::abs);
        let [middle, half] = self.project(voxel, view);
        let distance = (f64::from(channel) - middle).abs();
        let slope = self.magnification() * cosine.min(sine);
        let length = ((half - distance) / slope.max(1e-9)).clamp(0.0, 1.0) / cosine.max(sine);
        (length / LARGEST * 255.0).round() as u32
    }

    fn band_starts(&self, supervoxel: i32) -> Vec<i32> {
        let places = [0, self.width() - 1, self.voxels() - self.width(), self.voxels() - 1];
        let corner = [supervoxel % self.per_line(), supervoxel / self.per_line()].map(|at| at * self.pitch());
        let corners = places.map(|place| {
            [corner[0] + place % self.width(), corner[1] + place / self.width()].map(|at| at.min(self.side - 1))
        });
        let least = |view: i32| corners.iter().map(|voxel| self.start(*voxel, view)).min().unwrap_or_default();
        (0..self.views).map(least).collect()
    }

    /// First channel in a supervoxel's band, for a given view.
    pub(super) fn band_start(&self, supervoxel: i32, view: i32) -> i32 {
        self.bands[(supervoxel * self.views + view) as usize]
    }

    /// First channel of a voxel's room in a band, for a piece; zero beyond the image.
    pub(super) fn first(&self, supervoxel: i32, place: i32, piece: i32) -> i32 {
        let views = piece * PIECE..self.views.min((piece + 1) * PIECE);
        let Some(voxel) = self.voxel(supervoxel, place) else { return 0 };
        views.map(|view| self.start(voxel, view) - self.band_start(supervoxel, view)).min().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scans() -> [Scan; 4] {
        [[32, 34, 40, 3], [40, 70, 70, 4], [64, 90, 91, 9], [48, 64, 192, 5]]
            .map(|[side, views, channels, radius]| Scan::new(side, views, channels, radius))
    }

    /// Every voxel in every supervoxel, with its place.
    fn voxels(scan: &Scan) -> impl Iterator<Item = (i32, i32, [i32; 2])> {
        let of =
            move |supervoxel| (0..scan.voxels()).map(move |place| (supervoxel, place, scan.voxel(supervoxel, place)));
        (0..scan.supervoxels()).flat_map(of).filter_map(|(of, place, voxel)| Some((of, place, voxel?)))
    }

    #[test]
    fn a_shadow_lies_in_its_room_of_its_band() {
        for scan in scans() {
            for (supervoxel, place, voxel) in voxels(&scan) {
                for view in 0..scan.views {
                    let (start, band) = (scan.start(voxel, view), scan.band_start(supervoxel, view));
                    let first = scan.first(supervoxel, place, view / PIECE);
                    assert!(first >= 0 && first + scan.room() <= scan.band(), "room {first} of {}", scan.band());
                    assert!((0..=scan.room() - scan.shadow()).contains(&(start - band - first)), "{voxel:?} {view}");
                    assert!(band >= 0 && band + scan.band() <= scan.row());
                    assert_eq!(scan.entry(voxel, view, start - 1), 0);
                    assert_eq!(scan.entry(voxel, view, start + scan.shadow()), 0);
                }
            }
        }
    }

    #[test]
    fn rays_through_a_voxel_measure_its_area() {
        let scan = &scans()[3];
        for view in 0..scan.views {
            let area = |at: i32| {
                let voxel = [at % scan.side, at / scan.side];
                let start = scan.start(voxel, view);
                let entries = (start..start + scan.shadow()).map(|channel| scan.entry(voxel, view, channel));
                f64::from(entries.sum::<u32>()) * LARGEST / 255.0 / scan.magnification()
            };
            // Rays hit a voxel by chance, so that only many voxels measure the area.
            let voxels = scan.side * scan.side;
            let mean = (0..voxels).map(area).sum::<f64>() / f64::from(voxels);
            assert!((mean - 1.0).abs() < 0.05, "area {mean} in view {view}");
        }
    }

    #[test]
    fn supervoxels_of_a_colour_are_no_neighbours() {
        for scan in scans() {
            for colour in COLOURS {
                let own = scan.coloured(colour);
                let mut owner = vec![None; (scan.side * scan.side) as usize];
                voxels(&scan).filter(|(of, ..)| own.contains(of)).for_each(|(of, _, [x, y])| {
                    assert_eq!(owner[(y * scan.side + x) as usize].replace(of), None);
                });
                for (of, _, voxel) in voxels(&scan).filter(|(of, ..)| own.contains(of)) {
                    for step in [[1, 0], [-1, 1], [0, 1], [1, 1]] {
                        let neighbour = owner[scan.neighbour(voxel, step) as usize];
                        assert!(neighbour.is_none_or(|other| other == of), "{voxel:?} of {of}");
                    }
                }
            }
            let all: usize = COLOURS.iter().map(|colour| scan.coloured(*colour).len()).sum();
            assert_eq!(all, scan.supervoxels() as usize);
        }
    }
}
