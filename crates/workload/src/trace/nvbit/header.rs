//! The header of a kernel trace: `-key = value` lines up to the first line that starts with `#`.

use super::cursor::{Cursor, decimal, hex};
use crate::trace::container::Lines;
use crate::trace::error::{Mismatch, TraceError};

/// Tracer versions whose text is understood.
const VERSIONS: std::ops::RangeInclusive<u64> = 3..=6;
/// Largest grid, x, y, z. Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
const LARGEST_GRID: [u64; 3] = [(1 << 31) - 1, 65535, 65535];
/// Most threads of a block. Source: as above.
const MOST_THREADS: u64 = 1024;

/// The header of a kernel trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// Mangled name, or empty.
    pub(super) name: String,
    /// Thread blocks in x, y, z.
    pub(super) grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub(super) block: [u32; 3],
    /// Scratchpad bytes of a block.
    pub(super) shared_bytes: u32,
    /// Registers of a thread, 0 where unknown.
    pub(super) registers: u32,
    /// Handle of the CUDA stream.
    pub(super) stream: u64,
    /// Where generic addresses of the scratchpad begin, 0 where unknown.
    pub(super) shared_base: u64,
    /// Where generic addresses of local memory begin, 0 where unknown.
    pub(super) local_base: u64,
    /// Version of the tracer.
    pub(super) version: u32,
    /// Whether instruction lines begin with a line number.
    pub(super) lineinfo: bool,
}

impl Header {
    /// Reads the header, and the line that ends it.
    pub(super) fn read(lines: &mut Lines) -> Result<Header, TraceError> {
        let mut header = Header::default();
        let mut seen = Seen::default();
        loop {
            let Some(line) = lines.next()? else {
                let expected = "a header of `-key = value` lines that ends with a line that starts with #".to_owned();
                return Err(lines.error(Mismatch { expected, found: "the end of the file".to_owned() }));
            };
            match line.first() {
                None => {}
                Some(b'#') => break,
                Some(b'-') => {
                    let entry = header.entry(&line[1..], &mut seen);
                    entry.map_err(|mismatch| lines.error(mismatch))?;
                }
                Some(_) => {
                    let mismatch =
                        Mismatch::new("`-key = value`, or a line that starts with # to end the header", line);
                    return Err(lines.error(mismatch));
                }
            }
        }
        for (key, there) in
            [("-grid dim", seen.grid), ("-block dim", seen.block), ("-accelsim tracer version", seen.version)]
        {
            if !there {
                let found = format!("a header without `{key}`");
                return Err(lines.error(Mismatch { expected: format!("`{key} = …` before the body"), found }));
            }
        }
        Ok(header)
    }

    fn entry(&mut self, line: &[u8], seen: &mut Seen) -> Result<(), Mismatch> {
        let Some(equals) = line.iter().position(|byte| *byte == b'=') else {
            return Err(Mismatch::new("`-key = value`", line));
        };
        let (key, value) = (line[..equals].trim_ascii(), line[equals + 1..].trim_ascii());
        match key {
            b"kernel name" => {
                let text = std::str::from_utf8(value).map_err(|_| Mismatch::new("a kernel name in UTF-8", value))?;
                text.clone_into(&mut self.name);
            }
            b"grid dim" => {
                self.grid = dimensions(value, "a grid (x,y,z)", LARGEST_GRID)?;
                if grid_size(self.grid).is_none() {
                    return Err(Mismatch::new("a grid of fewer than 2^32 thread blocks", value));
                }
                seen.grid = true;
            }
            b"block dim" => {
                self.block = dimensions(value, "a block (x,y,z)", [MOST_THREADS; 3])?;
                if self.block.iter().map(|side| u64::from(*side)).product::<u64>() > MOST_THREADS {
                    return Err(Mismatch::new("a block of at most 1024 threads", value));
                }
                seen.block = true;
            }
            b"shmem" => self.shared_bytes = number(value, u64::from(u32::MAX), "scratchpad bytes")? as u32,
            b"nregs" => self.registers = number(value, 256, "registers of a thread")? as u32,
            b"cuda stream id" => self.stream = number(value, u64::MAX, "a stream handle")?,
            b"shmem base_addr" => self.shared_base = base(value)?,
            b"local mem base_addr" => self.local_base = base(value)?,
            b"accelsim tracer version" => {
                match decimal(value) {
                    Some(version) if VERSIONS.contains(&version) => self.version = version as u32,
                    _ => return Err(Mismatch::new("a tracer version from 3 to 6", value)),
                }
                seen.version = true;
            }
            b"enable lineinfo" => self.lineinfo = number(value, 1, "0 or 1")? == 1,
            // Kernel id, binary and NVBit version, and what later tracers add, change nothing here.
            _ => {}
        }
        Ok(())
    }

    /// Thread blocks of the grid.
    pub(super) fn blocks(&self) -> u32 {
        grid_size(self.grid).expect("checked when the grid was read")
    }

    /// Threads of a block, at most 1024.
    pub(super) fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Index of thread block `x,y,z`, x fastest.
    pub(super) fn block_index(&self, [x, y, z]: [u32; 3]) -> Option<u32> {
        let inside = x < self.grid[0] && y < self.grid[1] && z < self.grid[2];
        inside.then(|| (z * self.grid[1] + y) * self.grid[0] + x)
    }

    /// `x,y,z` of thread block `index`.
    pub(super) fn block_name(&self, index: u32) -> String {
        let [width, height, _] = self.grid;
        format!("{},{},{}", index % width, index / width % height, index / width / height)
    }
}

/// Which of the entries that must stand in a header did.
#[derive(Default)]
struct Seen {
    grid: bool,
    block: bool,
    version: bool,
}

fn grid_size(grid: [u32; 3]) -> Option<u32> {
    grid[0].checked_mul(grid[1])?.checked_mul(grid[2])
}

fn number(value: &[u8], most: u64, what: &str) -> Result<u64, Mismatch> {
    let mut cursor = Cursor::new(value);
    let number = cursor.count(most, what)?;
    cursor.end(what)?;
    Ok(number)
}

fn base(value: &[u8]) -> Result<u64, Mismatch> {
    hex(value, 16).ok_or_else(|| Mismatch::new("a hexadecimal address", value))
}

/// `(x,y,z)`, each at least 1.
fn dimensions(value: &[u8], what: &str, most: [u64; 3]) -> Result<[u32; 3], Mismatch> {
    let expected = || format!("{what}, each side from 1 to {}, {} and {}", most[0], most[1], most[2]);
    let inside = value.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")"));
    let sides = inside
        .and_then(triple)
        .filter(|sides| sides.iter().zip(most).all(|(side, most)| (1..=most).contains(&u64::from(*side))));
    sides.ok_or_else(|| Mismatch::new(expected(), value))
}

/// `x,y,z` in decimal.
pub(super) fn triple(text: &[u8]) -> Option<[u32; 3]> {
    let mut numbers = text
        .split(|byte| *byte == b',')
        .map(|part| decimal(part.trim_ascii()).and_then(|number| u32::try_from(number).ok()));
    let triple = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(triple)
}
