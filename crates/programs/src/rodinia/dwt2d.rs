//! Rodinia dwt2d: the forward 5/3 wavelet transform for a colour image, level by level.
//!
//! `split` converts the image's bytes to three sample arrays. Then each colour passes its levels, with a launch of
//! `transform` per level. The kernel writes four bands, each with every second row and column: low and high along both
//! axes. The host copies the low-low band back for the next level.
//!
//! A CTA slides a window with eight rows down a stretch of the image. Each thread transforms a column and stores it in
//! the scratchpad, with even and odd columns separate. Then the threads transform the rows together. The window reaches
//! three columns and three rows beyond its output; at the image's border these are mirrored.
//!
//! Rodinia's `run` and CPElide's public scripts use the 5/3 transform (`-5`); the 9/7 transform is not implemented.
//! Rodinia keeps an unused copy of each colour's samples: it is left out.

use crate::prelude::*;

/// Colours per pixel.
const COLOURS: usize = 3;
/// Threads per CTA in `split`, with a pixel each. Source: Rodinia 3.1 dwt2d, components.cu (`THREADS`).
const PIXELS: u32 = 256;
/// 4-byte words for a CTA's pixels.
const WORDS: u32 = PIXELS * COLOURS as u32 / 4;
/// Offset subtracted from a byte, so that samples lie around 0. Source: Rodinia 3.1 dwt2d (`storeComponents`).
const MIDDLE: i32 = 128;
/// Rows per window. Source: Rodinia 3.1 dwt2d, fdwt53.cu (`WIN_SIZE_Y`).
const HIGH: i32 = 8;
/// Rows in the scratchpad: all rows in the window, two rows above it and one below. Source: Rodinia 3.1 dwt2d
/// (`FDWT53Buffer`).
const HELD: i32 = HIGH + 3;
/// Columns reserved in the scratchpad on each side of a window. Source: Rodinia 3.1 dwt2d (`FDWT53Buffer`).
const BESIDE: i32 = 2;
/// Columns loaded beyond a window: the next column on its right, two columns on its left. Source: Rodinia 3.1 dwt2d.
const EXTRA: i32 = 3;
/// Maximum number of CTAs along the rows. Source: Rodinia 3.1 dwt2d, fdwt53.cu (`launchFDWT53Kernel`).
const BANDS: u64 = 15;
/// Scratchpad banks assumed for the padding between even and odd columns. Source: Rodinia 3.1 dwt2d (`SHM_BANKS`).
const BANKS: i32 = 32;

program! {
    /// wavelet transform of an image: three levels a colour, windows that slide down it, bands far apart
    pub(crate) static DWT2D = "dwt2d",
        "Rodinia 3.1 dwt2d (hal-uw/gem5-bmks-micro24, rodinia/dwt2d/dwt_hip/fdwt53.cpp); CPElide, Table II";
    properties: data_independent;
    parameters {
        /// columns of the image, at scale 1; scales by the root
        columns: count(2..=1 << 15) = 4096, "CPElide, Table II: rgb.bmp 4096x4096";
        /// rows of the image, at scale 1; scales by the root
        rows: count(2..=1 << 15) = 4096, "CPElide, Table II: rgb.bmp 4096x4096";
        /// levels, each of a quarter of the one before
        levels: count(1..=15) = 3, "Rodinia 3.1 dwt2d (`dwtLvls`; `run`: -f -5 -l 3)";
    }
    lay_out(name, request, memory) {
        let [columns, rows] = ["columns", "rows"].map(|name| request.scale.side_of(request.values.count(name)));
        let levels = levels as u32;
        let fits = columns.min(rows) >= 1 << levels;
        require(name, fits, || {
            format!("{levels} levels of {columns} × {rows} pixels: the last needs two along each side")
        })?;
        let pixels = columns * rows;
        let words = pixels.div_ceil(u64::from(PIXELS)) * u64::from(WORDS);
        check_indices(name, pixels, "pixels")?;
    }
    struct WaveletTransform {
        /// Samples per colour, `[row][column]`; later the low-low band for the next level.
        samples: [Array<i32>; COLOURS]["red", "green", "blue"; pixels],
        /// Bands per colour in sequence, with the last level's bands first.
        bands: [Array<i32>; COLOURS]["red-bands", "green-bands", "blue-bands"; pixels],
        /// Bytes for red, green and blue per pixel in turn, four bytes per word, padded to whole CTAs for `split`.
        source: Array<u32>[words],
        size: LevelSize = LevelSize { columns: columns as i32, rows: rows as i32 },
        levels: u32,
        seed: u64 = request.seed,
    }
}

/// New value for a sample at an odd position, from its neighbours: its distance from their mean.
fn predicted([before, own, behind]: [i32; 3]) -> i32 {
    own - (before + behind) / 2
}

/// New value for a sample at an even position, from the neighbouring distances.
fn updated([before, own, behind]: [i32; 3]) -> i32 {
    own + (before + behind + 2) / 4
}

/// Computes a transform step in each lane: five or six instructions, two for a division with rounding towards zero.
fn lift(warp: &mut Warp<'_>, step: fn([i32; 3]) -> i32, operands: [Lanes<i32>; 3]) -> Lanes<i32> {
    let [result] = warp.calculate(ComputeClass::Int, 6, operands, |operands| [step(operands)]);
    result
}

/// Mirrored position for a position that may lie beyond the border. Farther positions are clamped; their samples are
/// loaded and not used.
fn mirrored(place: i32, size: i32) -> i32 {
    let place = if place >= size { 2 * size - 2 - place } else { place.abs() };
    place.clamp(0, size - 1)
}

/// Size of a level in samples.
#[derive(Clone, Copy)]
struct LevelSize {
    columns: i32,
    rows: i32,
}

impl LevelSize {
    /// Size of the low-low band.
    fn half(self) -> LevelSize {
        LevelSize { columns: (self.columns + 1) / 2, rows: (self.rows + 1) / 2 }
    }

    fn samples(self) -> u64 {
        self.columns as u64 * self.rows as u64
    }

    /// Start of a row in the bands for even columns, and in the bands for odd columns.
    fn rows_of_bands(self, row: i32) -> [i32; 2] {
        let (low, odd) = (self.half(), row % 2);
        let right = self.columns / 2;
        [
            row / 2 * low.columns + odd * self.columns * low.rows,
            low.columns * low.rows + row / 2 * right + odd * (self.columns * self.rows / 2),
        ]
    }
}

/// Parameters for one launch.
struct LevelLaunch {
    from: Array<i32>,
    to: Array<i32>,
    size: LevelSize,
    /// Columns per window, and threads per CTA.
    wide: i32,
    /// Number of windows per CTA, from top to bottom.
    steps: i32,
}

/// State for an image column, held in its thread.
#[derive(Clone, Copy)]
struct ImageColumn {
    /// Column index in the image, mirrored at the border.
    x: Lanes<i32>,
    /// Column's offset in the scratchpad.
    offset: Lanes<i32>,
    /// Last three samples, which are the first three in the next window.
    last: [Lanes<i32>; 3],
}

impl LevelLaunch {
    fn new(from: Array<i32>, to: Array<i32>, size: LevelSize) -> LevelLaunch {
        // Source: Rodinia 3.1 dwt2d, fdwt53.cu (`fdwt53`).
        let wide = match size.columns {
            960.. => 192,
            480.. => 128,
            _ => 64,
        };
        let steps = (size.rows as u64).div_ceil(BANDS * HIGH as u64) as i32;
        LevelLaunch { from, to, size, wide, steps }
    }

    fn grid(&self) -> Grid {
        let down = (self.size.rows as u64).div_ceil((HIGH * self.steps) as u64);
        let bytes = 4 * (self.odd() + self.pitch() * HELD) as u32;
        Grid::new("transform", self.across() * down, self.wide as u32).shared_bytes(bytes)
    }

    /// Number of CTAs side by side, along the columns.
    fn across(&self) -> u64 {
        (self.size.columns as u64).div_ceil(self.wide as u64)
    }

    /// Number of even or odd columns in a scratchpad row.
    fn pitch(&self) -> i32 {
        BESIDE + self.wide / 2
    }

    /// Offset for the odd columns in the scratchpad.
    fn odd(&self) -> i32 {
        let even = self.pitch() * HELD;
        even + BANKS - (even + BANKS / 2) % BANKS
    }

    /// Scratchpad offset for a window's column.
    fn offset(&self, warp: &mut Warp<'_>, column: Lanes<i32>) -> Lanes<i32> {
        let place = column + BESIDE;
        warp.compute(ComputeClass::Int, 4, place / 2 + place % 2 * self.odd())
    }

    /// Loads a sample from a column.
    fn sample(&self, warp: &mut Warp<'_>, x: Lanes<i32>, row: i32) -> Lanes<i32> {
        let at = x + mirrored(row, self.size.rows) * self.size.columns;
        let at = warp.compute(ComputeClass::Int, 2, at);
        warp.load(self.from, at)
    }

    /// Loads a column for the window whose first row is `top`.
    fn column(&self, warp: &mut Warp<'_>, left: i32, top: i32, column: Lanes<i32>) -> ImageColumn {
        let x = (column + left).map(|x| mirrored(x, self.size.columns));
        let x = warp.compute(ComputeClass::Int, 6 + ADDRESS, x);
        let last = [-2, -1, 0].map(|row| self.sample(warp, x, top + row));
        ImageColumn { x, offset: self.offset(warp, column), last }
    }

    fn transform(&self, cta: &mut Cta<'_>) {
        let across = self.across() as u32;
        let (left, top) =
            ((cta.index() % across) as i32 * self.wide, (cta.index() / across) as i32 * HIGH * self.steps);
        let mut held = cta.shared::<i32>((self.odd() + self.pitch() * HELD) as usize);
        let mut columns = Vec::new();
        cta.each_warp(|warp| {
            let thread = warp.thread();
            let own = self.column(warp, left, top, thread);
            let mut beside = own;
            warp.when(thread.lt(EXTRA), |warp| {
                let column = thread.eq(0).select(Lanes::all(self.wide), thread - EXTRA);
                let column = warp.compute(ComputeClass::Int, 2, column);
                beside = self.column(warp, left, top, column);
            });
            columns.push([own, beside]);
        });
        for step in 0..self.steps {
            let top = top + step * HIGH;
            cta.each_warp(|warp| {
                let [own, beside] = &mut columns[warp.index() as usize];
                self.down(warp, top, own, &mut held);
                let extra = warp.thread().lt(EXTRA);
                warp.when(extra, |warp| self.down(warp, top, beside, &mut held));
            });
            cta.barrier();
            let (first, odd) = (2 * self.pitch(), self.odd());
            self.along(cta, &mut held, predicted, [first, first + odd, first + 1]);
            cta.barrier();
            self.along(cta, &mut held, updated, [first + odd, first + 1, first + odd + 1]);
            cta.barrier();
            self.write(cta, left, top, &held);
            cta.barrier();
        }
    }

    /// Transforms a column in the window from `top` on in registers, and stores it in the scratchpad.
    fn down(&self, warp: &mut Warp<'_>, top: i32, column: &mut ImageColumn, held: &mut Shared<i32>) {
        let mut samples = [Lanes::all(0); HELD as usize];
        samples[..3].copy_from_slice(&column.last);
        for row in 0..HIGH {
            samples[row as usize + 3] = self.sample(warp, column.x, top + 1 + row);
        }
        column.last.copy_from_slice(&samples[HIGH as usize..]);
        for row in (1..samples.len() - 1).step_by(2) {
            samples[row] = lift(warp, predicted, [samples[row - 1], samples[row], samples[row + 1]]);
        }
        for row in (2..samples.len() - 1).step_by(2) {
            samples[row] = lift(warp, updated, [samples[row - 1], samples[row], samples[row + 1]]);
        }
        for row in 2..2 + HIGH {
            warp.store_shared(held, column.offset + row * self.pitch(), samples[row as usize]);
        }
    }

    /// Applies a step along all rows in the window, for each sample. `places` holds the first positions: previous
    /// sample, own sample, next sample.
    fn along(&self, cta: &mut Cta<'_>, held: &mut Shared<i32>, step: fn([i32; 3]) -> i32, places: [i32; 3]) {
        let count = HIGH * self.pitch() - 1;
        cta.each_warp(|warp| {
            let thread = warp.thread();
            let mut at = |warp: &mut Warp<'_>, start: i32| {
                let operands = places.map(|place| warp.load_shared(held, thread + (place + start)));
                let result = lift(warp, step, operands);
                warp.store_shared(held, thread + (places[1] + start), result);
            };
            let whole = count / self.wide * self.wide;
            (0..whole).step_by(self.wide as usize).for_each(|start| at(warp, start));
            warp.when(thread.lt(count - whole), |warp| at(warp, whole));
        });
    }

    /// Writes the window from `top` on to the bands: the first half of the threads writes even columns, the second half
    /// odd columns.
    fn write(&self, cta: &mut Cta<'_>, left: i32, top: i32, held: &Shared<i32>) {
        let half = self.wide / 2;
        cta.each_warp(|warp| {
            let thread = warp.thread();
            let odd = thread.ge(half);
            let column = odd.select((thread - half) * 2 + 1, thread * 2);
            let (x, offset) = (column + left, self.offset(warp, column));
            warp.when(x.lt(self.size.columns), |warp| {
                for row in (0..HIGH).filter(|row| top + row < self.size.rows) {
                    let value = warp.load_shared(held, offset + (row + 2) * self.pitch());
                    let [even_start, odd_start] = self.size.rows_of_bands(top + row).map(Lanes::all);
                    let at = warp.compute(ComputeClass::Int, 1, odd.select(odd_start, even_start) + x / 2);
                    warp.store(self.to, at, value);
                }
            });
        });
    }
}

impl WaveletTransform {
    /// Converts the bytes for 256 pixels to samples.
    fn split(&self, cta: &mut Cta<'_>) {
        let first = (cta.index() * WORDS) as i32;
        let mut words = cta.shared::<u32>(WORDS as usize);
        cta.each_warp(|warp| {
            let thread = warp.thread();
            warp.when(thread.lt(WORDS as i32), |warp| {
                let at = warp.compute(ComputeClass::Int, 1 + ADDRESS, thread + first);
                let word = warp.load(self.source, at);
                warp.store_shared(&mut words, thread, word);
            });
        });
        cta.barrier();
        cta.each_warp(|warp| {
            let thread = warp.thread();
            let [red, green, blue] = [0, 1, 2].map(|colour| warp.load_shared(&words, (thread * 3 + colour) / 4));
            let operands = [red, green, blue, thread.cast::<u32>()];
            let samples = warp.calculate(ComputeClass::Int, 9, operands, |[red, green, blue, thread]| {
                [(0, red), (1, green), (2, blue)].map(|(colour, word)| sample(word, 3 * thread + colour))
            });
            let pixel = warp.compute(ComputeClass::Int, 2 + 3 * ADDRESS, warp.global_thread());
            warp.when(pixel.lt(self.size.samples() as i32), |warp| {
                for (array, value) in self.samples.into_iter().zip(samples) {
                    warp.store(array, pixel, value);
                }
            });
        });
    }

    /// Word with four random bytes in the image.
    fn word(&self, index: u64) -> u32 {
        noise::noise(self.seed, index) as u32
    }

    /// Reference bands for a colour, computed over whole rows and whole columns.
    fn reference(&self, colour: u64) -> Vec<i32> {
        let mut bands = vec![0; self.size.samples() as usize];
        let sample = |pixel: u64| {
            let byte = 3 * pixel + colour;
            i32::from(self.word(byte / 4).to_le_bytes()[byte as usize % 4]) - MIDDLE
        };
        let mut plane: Vec<i32> = (0..self.size.samples()).map(sample).collect();
        let mut size = self.size;
        for _ in 0..self.levels {
            let [columns, rows] = [size.columns, size.rows].map(|side| side as usize);
            for column in 0..columns {
                let line: Vec<i32> = (0..rows).map(|row| plane[row * columns + column]).collect();
                let line = transformed(line);
                (0..rows).for_each(|row| plane[row * columns + column] = line[row]);
            }
            for row in plane.chunks_mut(columns) {
                let line = transformed(row.to_vec());
                row.copy_from_slice(&line);
            }
            // Low-low band, then the bands from odd columns, from odd rows, and from both.
            let mut at = 0;
            for (odd_row, odd_column) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                for row in (odd_row..rows).step_by(2) {
                    for column in (odd_column..columns).step_by(2) {
                        bands[at] = plane[row * columns + column];
                        at += 1;
                    }
                }
            }
            size = size.half();
            plane = bands[..size.samples() as usize].to_vec();
        }
        bands
    }
}

/// Extracts a byte from a word, as a sample.
fn sample(word: u32, byte: u32) -> i32 {
    (word >> (8 * (byte % 4)) & 0xff) as i32 - MIDDLE
}

/// Transforms a row or a column with at least two samples, in place.
fn transformed(mut line: Vec<i32>) -> Vec<i32> {
    let end = line.len() - 1;
    let beside = |line: &[i32], at: usize| {
        let before = if at == 0 { line[1] } else { line[at - 1] };
        let behind = if at == end { line[end - 1] } else { line[at + 1] };
        before + behind
    };
    for at in (1..=end).step_by(2) {
        line[at] -= beside(&line, at) / 2;
    }
    for at in (0..=end).step_by(2) {
        line[at] += (beside(&line, at) + 2) / 4;
    }
    line
}

impl Instance for WaveletTransform {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.source, |index| self.word(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.source);
        let ctas = self.source.len() / u64::from(WORDS);
        host.launch(Grid::new("split", ctas, PIXELS).shared_bytes(4 * WORDS), |cta| self.split(cta))?;
        for (samples, bands) in self.samples.into_iter().zip(self.bands) {
            let mut size = self.size;
            for level in 0..self.levels {
                if level > 0 {
                    host.memory().copy(bands, samples, size.samples());
                }
                let launch = LevelLaunch::new(samples, bands, size);
                host.launch(launch.grid(), |cta| launch.transform(cta))?;
                size = size.half();
            }
        }
        self.bands.into_iter().for_each(|bands| host.copy_to_host(bands));
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        for (colour, bands) in (0..).zip(self.bands) {
            let (found, expected) = (memory.to_vec(bands), self.reference(colour));
            if let Some(at) = found.iter().zip(&expected).position(|(found, expected)| found != expected) {
                return Err(format!("colour {colour}: coefficient {at} is {}, expected {}", found[at], expected[at]));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_window_of_a_level_reaches_its_end() {
        let memory = &mut Memory::new(tombolo_workload::simt::Backing::AddressOnly);
        let array = memory.array("samples", 1 << 24, Scaling::Scales);
        let grid = |side| LevelLaunch::new(array, array, LevelSize { columns: side, rows: side }).grid();
        // 22 windows with 192 columns side by side, 15 bands with 35 windows, each 8 rows high, from top to bottom.
        let ctas = [4096, 2048, 1024].map(|side| grid(side).ctas());
        assert_eq!(ctas, [22 * 15, 11 * 15, 6 * 15]);
    }

    #[test]
    fn a_straight_line_is_low_alone() {
        let line = transformed((0..9).map(|at| 4 * at).collect());
        assert!(line.iter().skip(1).step_by(2).all(|high| *high == 0));
    }
}
