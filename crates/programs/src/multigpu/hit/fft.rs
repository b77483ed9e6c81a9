//! Fourier transforms for lines: 4 to 16 points per thread, passes with equally large radix, exchanges through the
//! scratchpad.
//!
//! With `t` threads per line, thread `j` holds points j, j + t, j + 2t and so on, at the beginning and the end of each
//! pass. A row along z has real points: it is transformed as half as many complex points, then untangled.

use super::{LINES, RecordResult, Turbulence};
use crate::prelude::*;
use std::f64::consts::TAU;

/// Maximum number of points per thread. Source: assumed, so that two radix-16 passes make a 256-point transform.
const POINTS: usize = 16;
/// Minimum number of points per thread. Source: assumed, radix 4.
const FEWEST: usize = 4;
/// Threads per line, if the line has enough points. Source: assumed, so that they touch a 128-byte line at once.
const TEAM: usize = 16;
/// Scratchpad words after which one word is left out, to avoid bank conflicts.
const PAD: usize = 16;
/// Registers per thread: 16 complex points and an equal number for addresses and twiddles. Source: assumed.
const REGISTERS: u32 = 64;
/// Instructions in butterflies with 2, 4, 8, 16 points. Source: counted, real sums and products in split-radix
/// transforms.
const BUTTERFLIES: [u16; 4] = [4, 16, 56, 168];
/// Instructions in a twiddle: its angle and a complex product, and sine and cosine. Source: counted, with `__sincosf`.
const TWIDDLE: (u16, u16) = (5, 2);
/// Instructions per point to derive a row's spectrum from the half-length spectrum. Source: counted.
const UNTANGLE: u16 = 14;
/// Instructions for a thread's first address. Source: counted: its line, its point, bounds.
const ADDRESS: u16 = 8;

/// Real and imaginary part.
pub(super) type Complex = [f32; 2];

/// Points held by a warp's threads: real and imaginary part for each point per thread.
type WarpPoints = Vec<[Lanes<f32>; 2]>;

/// Table with roots of unity.
pub(super) struct Roots(Vec<Complex>);

impl Roots {
    /// Builds a table for lines with up to `points` points, a power of two.
    pub(super) fn of(points: usize) -> Roots {
        let angle = |turn: usize| TAU * turn as f64 / points as f64;
        Roots((0..points).map(|turn| [angle(turn).cos() as f32, angle(turn).sin() as f32]).collect())
    }

    /// Root of unity for `part / whole` turns, forward or inverse.
    fn turn(&self, part: usize, whole: usize, inverse: bool) -> Complex {
        let [cosine, sine] = self.0[part % whole * (self.0.len() / whole)];
        [cosine, if inverse { sine } else { -sine }]
    }
}

fn times(a: Complex, b: Complex) -> Complex {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

fn plus(a: Complex, b: Complex) -> Complex {
    [a[0] + b[0], a[1] + b[1]]
}

fn minus(a: Complex, b: Complex) -> Complex {
    [a[0] - b[0], a[1] - b[1]]
}

/// A transform for a line whose length is a power of two.
pub(super) struct Transform {
    points: usize,
    /// Points per thread.
    each: usize,
    radices: Vec<usize>,
}

/// Distribution of a CTA's lines over its threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ThreadLayout {
    /// Neighbouring threads have neighbouring points in a line.
    Along,
    /// Neighbouring threads have neighbouring lines.
    Across,
}

impl Transform {
    pub(super) fn of(points: usize) -> Transform {
        let each = (points / TEAM).clamp(FEWEST, POINTS);
        let (mut radices, mut left) = (Vec::new(), points);
        while left > 1 {
            radices.push(left.min(each));
            left /= left.min(each);
        }
        Transform { points, each, radices }
    }

    /// Points per thread.
    fn each(&self) -> usize {
        self.each
    }

    /// Threads per line.
    pub(super) fn threads(&self) -> usize {
        self.points / self.each()
    }

    /// Scratchpad words per line.
    fn words(&self) -> usize {
        self.points + self.points / PAD
    }

    /// Scratchpad word for point `point` in line `line`.
    fn word(&self, lay: ThreadLayout, line: Lanes<i32>, point: Lanes<i32>) -> Lanes<i32> {
        let padded = point + point / PAD as i32;
        match lay {
            ThreadLayout::Along => line * self.words() as i32 + padded,
            ThreadLayout::Across => padded * LINES as i32 + line,
        }
    }

    /// Line and first point for each thread.
    fn place(&self, lay: ThreadLayout, warp: &Warp<'_>) -> [Lanes<i32>; 2] {
        let (thread, threads) = (warp.thread(), self.threads() as i32);
        match lay {
            ThreadLayout::Along => [thread / threads, thread % threads],
            ThreadLayout::Across => [thread % LINES as i32, thread / LINES as i32],
        }
    }

    /// Position for result `k` of butterfly `b`, in a pass with radix `radix` that joins lines with `joined` points.
    fn result(&self, first: Lanes<i32>, b: usize, k: usize, (radix, joined): (usize, usize)) -> Lanes<i32> {
        let j = first + (b * self.threads()) as i32;
        j / joined as i32 * (joined * radix) as i32 + j % joined as i32 + (k * joined) as i32
    }

    /// Transforms a CTA's lines; `all` holds the points by warp.
    fn run(&self, cta: &mut Cta<'_>, lay: ThreadLayout, all: &mut [WarpPoints], roots: &Roots, inverse: bool) {
        let mut joined = 1;
        for radix in &self.radices {
            let pass = (*radix, joined);
            cta.each_warp(|warp| self.pass(warp, lay, &mut all[warp.index() as usize], pass, roots, inverse));
            joined *= radix;
            if joined < self.points {
                let each = self.each();
                self.exchange(cta, lay, all, |first, slot| {
                    let (b, k) = (slot % (each / pass.0), slot / (each / pass.0));
                    self.result(first, b, k, pass)
                });
            }
        }
    }

    /// Computes the twiddles and butterflies in one pass.
    fn pass(
        &self,
        warp: &mut Warp<'_>,
        lay: ThreadLayout,
        points: &mut WarpPoints,
        (radix, joined): (usize, usize),
        roots: &Roots,
        inverse: bool,
    ) {
        let butterflies = self.each() / radix;
        for point in points.iter_mut() {
            *point = warp.compute(ComputeClass::Fp32, 0, *point);
        }
        if joined > 1 {
            // Twiddles for different points share no subexpressions, and neither do different butterflies.
            let twiddles = (butterflies * (radix - 1)) as u16;
            warp.compute_wide(ComputeClass::Fp32, TWIDDLE.0 * twiddles, twiddles, ());
            warp.compute_wide(ComputeClass::Special, TWIDDLE.1 * twiddles, twiddles, ());
        }
        let instructions = BUTTERFLIES[radix.trailing_zeros() as usize - 1];
        warp.compute_wide(ComputeClass::Fp32, instructions * butterflies as u16, butterflies as u16, ());
        if !warp.computes() {
            return;
        }
        let [_, first] = self.place(lay, warp);
        let mut lanes = vec![[[0.0_f32; 2]; POINTS]; warp.width() as usize];
        for (lane, held) in (0..).zip(&mut lanes) {
            for b in 0..butterflies {
                let j = first.lane(lane) as usize + b * self.threads();
                let mut values: Vec<Complex> = (0..radix)
                    .map(|r| {
                        let point = points[b + r * butterflies].map(|part| part.lane(lane));
                        times(point, roots.turn(j % joined * r, joined * radix, inverse))
                    })
                    .collect();
                butterfly(&mut values, roots, inverse);
                values.iter().enumerate().for_each(|(r, value)| held[b + r * butterflies] = *value);
            }
        }
        let of = |slot: usize, part: usize| {
            Lanes::by_lane(|lane| lanes.get(lane as usize).map_or(0.0, |held| held[slot][part]))
        };
        points.iter_mut().enumerate().for_each(|(slot, point)| *point = [of(slot, 0), of(slot, 1)]);
    }

    /// Moves points from the positions given by `written` to each thread's own positions: real parts, then imaginary
    /// parts in the same words.
    fn exchange(
        &self,
        cta: &mut Cta<'_>,
        lay: ThreadLayout,
        all: &mut [WarpPoints],
        written: impl Fn(Lanes<i32>, usize) -> Lanes<i32>,
    ) {
        let mut shared: Shared<f32> = cta.shared(cta.threads() as usize / self.threads() * self.words());
        for part in 0..2 {
            cta.each_warp(|warp| {
                let [line, first] = self.place(lay, warp);
                for (slot, point) in all[warp.index() as usize].iter().enumerate() {
                    warp.store_shared(&mut shared, self.word(lay, line, written(first, slot)), point[part]);
                }
            });
            cta.barrier();
            cta.each_warp(|warp| {
                let [line, first] = self.place(lay, warp);
                for (slot, point) in all[warp.index() as usize].iter_mut().enumerate() {
                    let own = first + (slot * self.threads()) as i32;
                    point[part] = warp.load_shared(&shared, self.word(lay, line, own));
                }
            });
            cta.barrier();
        }
    }
}

/// Transforms a power of two values, in natural order.
fn butterfly(values: &mut [Complex], roots: &Roots, inverse: bool) {
    let count = values.len();
    let bits = count.trailing_zeros();
    for at in 0..count {
        let mirrored = at.reverse_bits() >> (usize::BITS - bits);
        if mirrored > at {
            values.swap(at, mirrored);
        }
    }
    let mut size = 1;
    while size < count {
        for start in (0..count).step_by(2 * size) {
            for k in 0..size {
                let (even, odd) = (values[start + k], values[start + k + size]);
                let odd = times(odd, roots.turn(k, 2 * size, inverse));
                values[start + k] = plus(even, odd);
                values[start + k + size] = minus(even, odd);
            }
        }
        size *= 2;
    }
}

/// Runs `body(warp, value)` for `values` values, with neighbouring threads at neighbouring values.
fn each_value(cta: &mut Cta<'_>, values: i32, mut body: impl FnMut(&mut Warp<'_>, Lanes<i32>)) {
    let threads = cta.threads() as usize;
    cta.each_warp(|warp| {
        for first in (0..values).step_by(threads) {
            let value = warp.compute(ComputeClass::Int, 3, warp.thread() + first);
            warp.when(value.lt(values), |warp| body(warp, value));
        }
    });
}

impl Turbulence {
    /// Transforms lines along y in a spectrum with layout [x][z][y].
    pub(super) fn along_y(&self, host: &mut Host<'_>, from: Array<f32>, to: Array<f32>, inverse: bool) -> RecordResult {
        self.lines(host, "fft-y", ThreadLayout::Along, [from, to], inverse)
    }

    /// Transforms lines along x in a field with layout [y][x][z], in place.
    pub(super) fn along_x(&self, host: &mut Host<'_>, field: Array<f32>, inverse: bool) -> RecordResult {
        self.lines(host, "fft-x", ThreadLayout::Across, [field; 2], inverse)
    }

    /// First value in a line, and stride from point to point.
    fn line(&self, lay: ThreadLayout, line: Lanes<i32>) -> (Lanes<i32>, i32) {
        let (half, plane) = (self.mesh.half(), self.mesh.plane());
        match lay {
            ThreadLayout::Along => (line * self.mesh.side, 1),
            ThreadLayout::Across => (line / half * plane + line % half, half),
        }
    }

    /// Transforms complex lines, 16 per CTA.
    fn lines(
        &self,
        host: &mut Host<'_>,
        name: &str,
        lay: ThreadLayout,
        [from, to]: [Array<f32>; 2],
        inverse: bool,
    ) -> RecordResult {
        let transform = &self.along_side;
        let (threads, each) = (LINES as usize * transform.threads(), transform.each());
        let grid = self.lines.grid(name, threads as u32).registers(REGISTERS);
        host.launch(grid.shared_bytes(4 * LINES as u32 * transform.words() as u32), |cta| {
            let lines = self.lines.tile(cta.index()).items;
            let mut all: Vec<WarpPoints> = vec![vec![[Lanes::all(0.0); 2]; each]; cta.warps() as usize];
            let place = |warp: &mut Warp<'_>| {
                let [line, point] = transform.place(lay, warp);
                let line = line + lines.start as i32;
                let (first, stride) = self.line(lay, line);
                let at = warp.compute(ComputeClass::Int, ADDRESS, (first + point * stride) * 2);
                (line.lt(lines.end as i32), at, 2 * stride * transform.threads() as i32)
            };
            cta.each_warp(|warp| {
                let (is_line, at, step) = place(warp);
                for (slot, point) in (0..).zip(&mut all[warp.index() as usize]) {
                    *point = warp.load_vector_if(is_line, from, at + slot * step);
                }
            });
            transform.run(cta, lay, &mut all, &self.roots, inverse);
            cta.each_warp(|warp| {
                let (is_line, at, step) = place(warp);
                let points = &all[warp.index() as usize];
                warp.when(is_line, |warp| {
                    for (slot, point) in (0..).zip(points) {
                        warp.store_vector(to, at + slot * step, *point);
                    }
                });
            });
        })
    }

    /// Transforms rows with real points along z to their spectra, in place.
    pub(super) fn z_from_real(&self, host: &mut Host<'_>, field: Array<f32>) -> RecordResult {
        self.rows(host, field, |cta, stage| {
            let (transform, half) = (&self.along_depth, self.mesh.half());
            let mut all = self.pick(cta, stage, |own| own);
            transform.run(cta, ThreadLayout::Along, &mut all, &self.roots, false);
            self.place_points(cta, stage, &all);
            cta.barrier();
            let mirrored = self.pick(cta, stage, |own| own.map(|own| (half - 1 - own) % (half - 1)));
            cta.barrier();
            cta.each_warp(|warp| {
                let (index, [line, first]) = (warp.index() as usize, transform.place(ThreadLayout::Along, warp));
                for (slot, point) in all[index].iter_mut().enumerate() {
                    let own = first + (slot * transform.threads()) as i32;
                    let [value, last] = self.untangle(warp, [*point, mirrored[index][slot]], own, false);
                    *point = value;
                    if slot == 0 {
                        let end = (line * half + (half - 1)) * 2;
                        warp.when(first.eq(0), |warp| warp.store_shared_vector(stage, end, last));
                    }
                }
            });
            self.place_points(cta, stage, &all);
        })
    }

    /// Transforms spectra along z to rows with real points, in place.
    pub(super) fn z_to_real(&self, host: &mut Host<'_>, field: Array<f32>) -> RecordResult {
        self.rows(host, field, |cta, stage| {
            let (transform, half) = (&self.along_depth, self.mesh.half());
            let mut all = self.pick(cta, stage, |own| own);
            let mirrored = self.pick(cta, stage, |own| own.map(|own| half - 1 - own));
            cta.each_warp(|warp| {
                let (index, [_, first]) = (warp.index() as usize, transform.place(ThreadLayout::Along, warp));
                for (slot, point) in all[index].iter_mut().enumerate() {
                    let own = first + (slot * transform.threads()) as i32;
                    let [value, _] = self.untangle(warp, [*point, mirrored[index][slot]], own, true);
                    *point = value;
                }
            });
            transform.run(cta, ThreadLayout::Along, &mut all, &self.roots, true);
            self.place_points(cta, stage, &all);
        })
    }

    /// Processes several adjacent rows per CTA: loads them whole to the scratchpad, runs `kernel`, and stores them
    /// back.
    fn rows(
        &self,
        host: &mut Host<'_>,
        field: Array<f32>,
        kernel: impl Fn(&mut Cta<'_>, &mut Shared<f32>) + Sync,
    ) -> RecordResult {
        let (transform, half, threads) = (&self.along_depth, self.mesh.half(), self.mesh.side);
        let rows = threads / transform.threads() as i32;
        let words = rows * (transform.words() as i32 + 2 * half);
        let grid = self.rows.grid("fft-z", threads.cast_unsigned()).registers(REGISTERS);
        host.launch(grid.shared_bytes(4 * words.cast_unsigned()), |cta| {
            let start = self.rows.tile(cta.index()).items.start as i32 * half;
            let mut stage: Shared<f32> = cta.shared(2 * (rows * half) as usize);
            each_value(cta, rows * half, |warp, value| {
                let loaded: [_; 2] = warp.load_vector(field, (value + start) * 2);
                warp.store_shared_vector(&mut stage, value * 2, loaded);
            });
            cta.barrier();
            kernel(cta, &mut stage);
            cta.barrier();
            each_value(cta, rows * half, |warp, value| {
                let kept: [_; 2] = warp.load_shared_vector(&stage, value * 2);
                warp.store_vector(field, (value + start) * 2, kept);
            });
        })
    }

    /// For each thread's points, by warp: the row's value at `index` of the point.
    fn pick(
        &self,
        cta: &mut Cta<'_>,
        stage: &Shared<f32>,
        index: impl Fn(Lanes<i32>) -> Lanes<i32>,
    ) -> Vec<WarpPoints> {
        let (transform, half) = (&self.along_depth, self.mesh.half());
        let mut all = Vec::new();
        cta.each_warp(|warp| {
            let [line, first] = transform.place(ThreadLayout::Along, warp);
            warp.compute(ComputeClass::Int, ADDRESS, ());
            let point = |slot: usize| {
                let at = index(first + (slot * transform.threads()) as i32);
                warp.load_shared_vector(stage, (line * half + at) * 2)
            };
            all.push((0..transform.each()).map(point).collect());
        });
        all
    }

    /// Stores each thread's points to their positions in the scratchpad.
    fn place_points(&self, cta: &mut Cta<'_>, stage: &mut Shared<f32>, all: &[WarpPoints]) {
        let (transform, half) = (&self.along_depth, self.mesh.half());
        cta.each_warp(|warp| {
            let [line, first] = transform.place(ThreadLayout::Along, warp);
            for (slot, point) in all[warp.index() as usize].iter().enumerate() {
                let own = first + (slot * transform.threads()) as i32;
                warp.store_shared_vector(stage, (line * half + own) * 2, *point);
            }
        });
    }

    /// Combines a point and its mirror: gives the row's spectrum at the point and, for point 0, at the end; or the
    /// inverse.
    fn untangle(
        &self,
        warp: &mut Warp<'_>,
        pair: [[Lanes<f32>; 2]; 2],
        own: Lanes<i32>,
        inverse: bool,
    ) -> [[Lanes<f32>; 2]; 2] {
        let pair = warp.compute(ComputeClass::Special, TWIDDLE.1, pair);
        warp.compute(ComputeClass::Fp32, UNTANGLE, ());
        if !warp.computes() {
            return [pair[0]; 2];
        }
        let depth = self.mesh.depth as usize;
        let values: Vec<[Complex; 2]> = (0..warp.width())
            .map(|lane| {
                let [value, [real, imaginary]] = pair.map(|value| value.map(|part| part.lane(lane)));
                let mirror = [real, -imaginary];
                let turn = self.roots.turn(own.lane(lane) as usize, depth, inverse);
                let (sum, difference) = (plus(value, mirror), minus(value, mirror));
                // Spectrum over odd points, times i; the sum is the spectrum over even points.
                let [a, b] = times(difference, turn);
                if inverse {
                    return [plus(sum, [-b, a]); 2];
                }
                [plus(sum, [b, -a]), minus(sum, [b, -a])].map(|value| value.map(|part| part / 2.0))
            })
            .collect();
        let of = |which: usize, part: usize| {
            Lanes::by_lane(|lane| values.get(lane as usize).map_or(0.0, |values| values[which][part]))
        };
        [0, 1].map(|which| [of(which, 0), of(which, 1)])
    }
}
