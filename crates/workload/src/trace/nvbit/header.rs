//! The header of a kernel trace: `-key = value` lines up to the first line that starts with `#`.

use super::cursor::{Cursor, decimal, hex, unquoted};
use super::opcode::LANES;
use crate::trace::container::LineReader;
use crate::trace::error::{Mismatch, TraceError, quoted};

/// Supported tracer versions.
const VERSIONS: std::ops::RangeInclusive<u64> = 3..=6;
/// Grid size limits in x, y, z. Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
const LARGEST_GRID: [u64; 3] = [(1 << 31) - 1, 65535, 65535];
/// Thread limit per block. Source: as above.
const MOST_THREADS: u64 = 1024;
/// Register limit per thread. Source: as above, 255; some tools round up.
const MOST_REGISTERS: u64 = 256;
/// Register limit per block. Source: as above.
const MOST_BLOCK_REGISTERS: u64 = 64 << 10;
/// Maximum scratchpad bytes per block. Source: as above, 227 KB plus 1 KB reserved by the system.
const MOST_SHARED: u64 = 228 << 10;

/// Identity of a CUDA stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StreamKey {
    /// A handle, or a small number.
    Handle(u64),
    /// Any further text, equally good for identification.
    Name(String),
}

/// A minor header field with an impossible value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DoubtfulField {
    /// Key of the field.
    pub(super) key: &'static str,
    /// The field's quoted value, and its interpretation by the reader.
    pub(super) text: String,
}

/// The header of a kernel trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Mangled name, or empty.
    pub(super) name: String,
    /// Thread blocks in x, y, z.
    pub(super) grid: [u32; 3],
    /// Threads per block in x, y, z.
    pub(super) block: [u32; 3],
    /// Scratchpad bytes per block, 0 if unknown.
    pub(super) shared_bytes: u32,
    /// Registers per thread, 0 if unknown.
    pub(super) registers: u32,
    /// CUDA stream for the launch.
    pub(super) stream: StreamKey,
    /// Base of the scratchpad's generic addresses, 0 if unknown.
    pub(super) shared_base: u64,
    /// Base of local memory's generic addresses, 0 if unknown.
    pub(super) local_base: u64,
    /// Compute capability of the binary × 10, 0 if unknown.
    pub(super) binary_version: u32,
    /// Number of the launch in the traced program, from 1; 0 if unknown.
    pub(super) launch: u32,
    /// Tracer version.
    pub(super) version: u32,
    /// True if instruction lines begin with a line number.
    pub(super) lineinfo: bool,
    /// Fields whose values were not used as given.
    pub(super) doubts: Vec<DoubtfulField>,
}

impl Default for Header {
    /// The header for a trace without any fields.
    fn default() -> Header {
        Header {
            name: String::new(),
            grid: [0; 3],
            block: [0; 3],
            shared_bytes: 0,
            registers: 0,
            stream: StreamKey::Handle(0),
            shared_base: 0,
            local_base: 0,
            binary_version: 0,
            launch: 0,
            version: 0,
            lineinfo: false,
            doubts: Vec::new(),
        }
    }
}

impl Header {
    /// Reads the header, including the final line.
    pub(super) fn read(lines: &mut LineReader) -> Result<Header, TraceError> {
        let mut header = Header::default();
        let mut seen = SeenFields::default();
        loop {
            let Some(line) = lines.next()? else {
                let expected = "a header of `-key = value` lines that ends with a line that starts with #".to_owned();
                return Err(lines.error(Mismatch { expected, found: "the end of the file".to_owned() }));
            };
            let line = unquoted(line);
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
        header.doubt_registers();
        Ok(header)
    }

    /// Discards a register count that is impossible for the kernel's block size; an impossible count belongs to a
    /// different kernel.
    fn doubt_registers(&mut self) {
        let block = u64::from(self.registers) * u64::from(self.threads().next_multiple_of(LANES));
        if block > MOST_BLOCK_REGISTERS {
            let found = self.registers.to_string();
            self.registers = 0;
            self.doubt("-nregs", found.as_bytes(), "more than its block can have, and is taken as unknown");
        }
    }

    fn doubt(&mut self, key: &'static str, value: &[u8], what: &str) {
        self.doubts.push(DoubtfulField { key, text: format!("{} is {what}", quoted(value)) });
    }

    /// Parses a number up to `most` from `value`. An invalid value is noted as a doubt and replaced by 0, for unknown.
    fn number_or_unknown(&mut self, key: &'static str, value: &[u8], most: u64) -> u32 {
        let number = decimal(value).filter(|number| *number <= most).and_then(|number| u32::try_from(number).ok());
        number.unwrap_or_else(|| {
            self.doubt(key, value, &format!("no number from 0 to {most}, and is taken as unknown"));
            0
        })
    }

    /// Parses an address from `value`; an invalid value is noted as a doubt and replaced by 0, for unknown.
    fn base_or_unknown(&mut self, key: &'static str, value: &[u8]) -> u64 {
        hex(value, 16).unwrap_or_else(|| {
            self.doubt(key, value, "no hexadecimal address, and is taken as unknown");
            0
        })
    }

    /// Parses the kernel's name from `value`; the name affects nothing else.
    fn label(&mut self, value: &[u8]) -> String {
        if std::str::from_utf8(value).is_err() {
            self.doubt("-kernel name", value, "not UTF-8, and is shown as far as it is");
        }
        String::from_utf8_lossy(value).into_owned()
    }

    /// Parses a stream from `value`: old tracers print the low half of a handle with a sign.
    fn stream_key(&mut self, value: &[u8]) -> StreamKey {
        if let Some(handle) = decimal(value) {
            return StreamKey::Handle(handle);
        }
        self.doubt("-cuda stream id", value, "no handle, and is taken as the stream's name");
        StreamKey::Name(String::from_utf8_lossy(value).into_owned())
    }

    fn entry(&mut self, line: &[u8], seen: &mut SeenFields) -> Result<(), Mismatch> {
        let Some(equals) = line.iter().position(|byte| *byte == b'=') else {
            return Err(Mismatch::new("`-key = value`", line));
        };
        let (key, value) = (unquoted(&line[..equals]), unquoted(&line[equals + 1..]));
        match key {
            b"kernel name" => self.name = self.label(value),
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
            b"shmem" => self.shared_bytes = self.number_or_unknown("-shmem", value, MOST_SHARED),
            b"nregs" => self.registers = self.number_or_unknown("-nregs", value, MOST_REGISTERS),
            b"cuda stream id" => self.stream = self.stream_key(value),
            b"shmem base_addr" => self.shared_base = self.base_or_unknown("-shmem base_addr", value),
            b"local mem base_addr" => self.local_base = self.base_or_unknown("-local mem base_addr", value),
            b"binary version" => {
                self.binary_version = self.number_or_unknown("-binary version", value, u64::from(u32::MAX));
            }
            b"kernel id" => self.launch = self.number_or_unknown("-kernel id", value, u64::from(u32::MAX)),
            b"accelsim tracer version" => {
                match decimal(value) {
                    Some(version) if VERSIONS.contains(&version) => self.version = version as u32,
                    _ => return Err(Mismatch::new("a tracer version from 3 to 6", value)),
                }
                seen.version = true;
            }
            b"enable lineinfo" => self.lineinfo = number(value, 1, "0 or 1")? == 1,
            // The NVBit version, and fields added by later tracers, have no effect here.
            _ => {}
        }
        Ok(())
    }

    /// Thread block count in the grid.
    pub(super) fn blocks(&self) -> u32 {
        grid_size(self.grid).expect("checked when the grid was read")
    }

    /// Threads per block, at most 1024.
    pub(super) fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Warps per block.
    pub(super) fn warps(&self) -> u32 {
        self.threads().div_ceil(LANES)
    }

    /// Index of thread block `x,y,z`, with x varying fastest.
    pub(super) fn block_index(&self, [x, y, z]: [u32; 3]) -> Option<u32> {
        let inside = x < self.grid[0] && y < self.grid[1] && z < self.grid[2];
        inside.then(|| (z * self.grid[1] + y) * self.grid[0] + x)
    }

    /// Coordinates `x,y,z` of thread block `index`.
    pub(super) fn block_name(&self, index: u32) -> String {
        let [width, height, _] = self.grid;
        format!("{},{},{}", index % width, index / width % height, index / width / height)
    }
}

/// Mandatory header entries seen so far.
#[derive(Default)]
struct SeenFields {
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

/// Parses `(x,y,z)`, each at least 1.
fn dimensions(value: &[u8], what: &str, most: [u64; 3]) -> Result<[u32; 3], Mismatch> {
    let expected = || format!("{what}, each side from 1 to {}, {} and {}", most[0], most[1], most[2]);
    let inside = value.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")"));
    let sides = inside
        .and_then(triple)
        .filter(|sides| sides.iter().zip(most).all(|(side, most)| (1..=most).contains(&u64::from(*side))));
    sides.ok_or_else(|| Mismatch::new(expected(), value))
}

/// Parses `x,y,z` in decimal.
pub(super) fn triple(text: &[u8]) -> Option<[u32; 3]> {
    let mut numbers = text
        .split(|byte| *byte == b',')
        .map(|part| decimal(part.trim_ascii()).and_then(|number| u32::try_from(number).ok()));
    let triple = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(triple)
}
