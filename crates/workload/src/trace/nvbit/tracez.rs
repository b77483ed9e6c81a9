//! Kernel traces of Accel-Sim 2 (`.tracez`): the text form of a trace, compressed warp by warp.
//!
//! ```text
//! header text, as in the text form
//! 0 byte
//! u32 dictionary bytes, u32 instructions per sub-chunk (a target, not used here)
//! dictionary
//! per warp: u32 instructions, u32 sub-chunks, then per sub-chunk u32 bytes and a zstd frame of instruction lines
//! index: u32 thread blocks, then per block
//!     u32 x, y, z; u32 cluster x, y, z; u32 place in the cluster x, y, z; u32 rank in the cluster; u32 warps, then per warp
//!         u32 instructions, u32 sub-chunks, u64 place of the warp in the file, then per sub-chunk u32 instructions
//! u64 place of the index in the file
//! ```
//!
//! Numbers are little endian. Source: Accel-Sim 2.0, `tracez_format.h` and `post-traces-processing.cpp`. Nothing is
//! read ahead of its use: memory holds a dictionary and a sub-chunk.

use super::kernel::BodyParser;
use super::spill::Spill;
use crate::trace::container::{LineReader, head, open_file};
use crate::trace::error::{Mismatch, TraceError};
use crate::trace::foreign::{LOOKED_AT, is_per_warp};
use rustc_hash::FxHashSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use zstd::bulk::Decompressor;
use zstd::zstd_safe::get_frame_content_size;

/// Size limit of a dictionary in bytes. Source: Accel-Sim's tool trains dictionaries of at most 64 KiB.
const LARGEST_DICTIONARY: u32 = 16 << 20;
/// Size limit of an unpacked sub-chunk in bytes: a sub-chunk of 2048 instructions, the default, takes about a megabyte.
const LARGEST_SUBCHUNK: u64 = 256 << 20;
/// Bytes of the place of the index, at the end of the file.
const FOOTER: u64 = 8;

/// A file of compressed warps, behind its header and dictionary.
pub(super) struct PerWarpFile {
    path: PathBuf,
    header: Vec<u8>,
    /// Place of the index in the file.
    index: u64,
    /// Place of the index's end in the file.
    end: u64,
    file: File,
    unpacker: Decompressor<'static>,
    packed: Vec<u8>,
    text: Vec<u8>,
}

/// A warp's record in the index.
struct WarpRecord {
    instructions: u32,
    subchunks: u32,
    /// Place of the warp in the file.
    place: u64,
}

/// True if the file at `path` is a kernel trace of compressed warps, by its content.
pub(super) fn is_tracez(path: &Path) -> Result<bool, TraceError> {
    Ok(is_per_warp(&head(&mut open_file(path)?, path, LOOKED_AT)?))
}

impl PerWarpFile {
    /// Opens the file at `path`, or returns `None` if its content is of another form.
    pub(super) fn open(path: &Path) -> Result<Option<PerWarpFile>, TraceError> {
        let mut file = open_file(path)?;
        let mut header = head(&mut file, path, LOOKED_AT)?;
        if !is_per_warp(&header) {
            return Ok(None);
        }
        header.truncate(header.iter().position(|byte| *byte == 0).unwrap_or(header.len()));
        let end = file.seek(SeekFrom::End(0)).map_err(TraceError::io(path, "read"))?;
        let mut opened = PerWarpFile {
            path: path.to_owned(),
            index: 0,
            end,
            file,
            unpacker: Decompressor::new().map_err(TraceError::io(path, "start the zstd decoder"))?,
            packed: Vec::new(),
            text: Vec::new(),
            header,
        };
        opened.read_dictionary()?;
        Ok(Some(opened))
    }

    /// Reads the dictionary and the place of the index.
    fn read_dictionary(&mut self) -> Result<(), TraceError> {
        let begin = self.header.len() as u64 + 1;
        let [size, _] = self.numbers(begin)?;
        if size > LARGEST_DICTIONARY {
            return Err(self.damaged(begin, format!("a dictionary of {size} bytes, more than {LARGEST_DICTIONARY}")));
        }
        let dictionary = begin + 8;
        let mut bytes = vec![0; size as usize];
        self.bytes(dictionary, &mut bytes)?;
        if size > 0 {
            self.unpacker =
                Decompressor::with_dictionary(&bytes).map_err(TraceError::io(&self.path, "read the dictionary"))?;
        }
        let footer = self.end.saturating_sub(FOOTER);
        let mut place = [0; FOOTER as usize];
        self.bytes(footer, &mut place)?;
        let index = u64::from_le_bytes(place);
        if !(dictionary + u64::from(size)..footer).contains(&index) {
            return Err(self.damaged(footer, format!("the index is at byte {index}, outside the file's middle")));
        }
        (self.index, self.end) = (index, footer);
        Ok(())
    }

    /// The header's text.
    pub(super) fn header(&self) -> LineReader {
        LineReader::of(&self.path, self.header.clone())
    }

    #[cold]
    fn damaged(&self, offset: u64, message: impl Into<String>) -> TraceError {
        TraceError::Damaged { path: self.path.clone(), offset, message: message.into() }
    }

    /// Fills `into` with the file's bytes from `offset`.
    fn bytes(&mut self, offset: u64, into: &mut [u8]) -> Result<(), TraceError> {
        if offset.checked_add(into.len() as u64).is_none_or(|end| end > self.end) {
            return Err(self.damaged(offset, format!("{} bytes are missing", into.len())));
        }
        let read = self.file.seek(SeekFrom::Start(offset)).and_then(|_| self.file.read_exact(into));
        read.map_err(TraceError::io(&self.path, "read"))
    }

    /// The `N` numbers at `offset`.
    fn numbers<const N: usize>(&mut self, offset: u64) -> Result<[u32; N], TraceError> {
        let mut numbers = [0; N];
        for (place, number) in numbers.iter_mut().enumerate() {
            let mut bytes = [0; 4];
            self.bytes(offset.saturating_add(4 * place as u64), &mut bytes)?;
            *number = u32::from_le_bytes(bytes);
        }
        Ok(numbers)
    }

    /// Unpacks the sub-chunk whose size is at `offset`; returns the offset behind it.
    fn unpack(&mut self, offset: u64) -> Result<u64, TraceError> {
        let [size] = self.numbers(offset)?;
        let begin = offset + 4;
        let end = begin + u64::from(size);
        if end > self.index {
            return Err(self.damaged(offset, format!("a sub-chunk of {size} bytes reaches into the index")));
        }
        let mut packed = std::mem::take(&mut self.packed);
        packed.resize(size as usize, 0);
        let read = self.bytes(begin, &mut packed);
        self.packed = packed;
        read?;
        let unpacked = match get_frame_content_size(&self.packed) {
            Ok(Some(unpacked)) if unpacked <= LARGEST_SUBCHUNK => unpacked,
            Ok(Some(unpacked)) => {
                let message = format!("a sub-chunk of {unpacked} unpacked bytes, more than {LARGEST_SUBCHUNK}");
                return Err(self.damaged(begin, message));
            }
            Ok(None) | Err(_) => return Err(self.damaged(begin, "no zstd frame that states its unpacked size")),
        };
        self.text.clear();
        self.text.reserve_exact(unpacked as usize);
        match self.unpacker.decompress_to_buffer(&self.packed[..], &mut self.text) {
            Ok(_) => Ok(end),
            Err(error) => Err(self.damaged(begin, format!("a sub-chunk cannot be unpacked: {error}"))),
        }
    }
}

/// Reads the thread blocks of `file` into `body`. Encoded CTAs are written to `spill`.
pub(super) fn read(file: &mut PerWarpFile, body: &mut BodyParser, spill: &mut Spill) -> Result<(), TraceError> {
    let mut index = Index::open(file)?;
    let mut seen = FxHashSet::default();
    for block in 1..=index.number()? {
        let offset = index.offset;
        let place = index.triple()?;
        let (_cluster, _place_in_cluster) = (index.triple()?, index.triple()?);
        let (rank, warps) = (index.number()?, index.number()?);
        let [x, y, z] = place;
        let Some(cta) = body.header.block_index(place) else {
            let [width, height, depth] = body.header.grid;
            let message = format!("thread block {x},{y},{z} is outside the grid of {width},{height},{depth}");
            return Err(file.damaged(offset, message));
        };
        if !seen.insert(cta) {
            return Err(file.damaged(offset, format!("thread block {x},{y},{z} stands in the index again")));
        }
        let mut sections = body.begin_block();
        body.in_cluster(rank);
        for warp in 0..warps {
            let offset = index.offset;
            let Some(warp) = body.warp(u64::from(warp)) else {
                return Err(file.damaged(offset, format!("thread block {x},{y},{z} has {warps} warps")));
            };
            let record = WarpRecord { instructions: index.number()?, subchunks: index.number()?, place: index.long()? };
            body.begin_warp(warp, Some(u64::from(record.instructions)), cta, &mut sections);
            let name = format!("warp {warp} of thread block {x},{y},{z}");
            read_warp(file, &mut index, &record, &name, body)?;
        }
        body.end_block(cta, u64::from(block), sections, spill)?;
    }
    if index.offset != file.end {
        return Err(file.damaged(index.offset, format!("{} bytes behind the index", file.end - index.offset)));
    }
    Ok(())
}

/// Reads the sub-chunks of a warp, whose sizes in instructions come next in `index`.
fn read_warp(
    file: &mut PerWarpFile,
    index: &mut Index,
    record: &WarpRecord,
    name: &str,
    body: &mut BodyParser,
) -> Result<(), TraceError> {
    if file.numbers(record.place)? != [record.instructions, record.subchunks] {
        return Err(file.damaged(record.place, format!("{name} has other sizes than in the index")));
    }
    let mut offset = record.place + 8;
    let mut read = 0_u64;
    for _ in 0..record.subchunks {
        let announced = u64::from(index.number()?);
        let begin = offset;
        offset = file.unpack(offset)?;
        let text = file.text.strip_suffix(b"\n").unwrap_or(&file.text);
        let mut lines = 0;
        for line in text.split(|byte| *byte == b'\n').filter(|_| !text.is_empty()) {
            lines += 1;
            let line = line.trim_ascii();
            body.instruction(line).map_err(|Mismatch { expected, found }| {
                let found = format!("{found} in instruction {} of {name}", read + lines);
                Mismatch { expected, found }.at(&file.path, read + lines)
            })?;
        }
        if lines != announced {
            let message = format!("a sub-chunk of {name} has {lines} instructions, the index says {announced}");
            return Err(file.damaged(begin, message));
        }
        read += lines;
    }
    if read != u64::from(record.instructions) {
        let message = format!("{name} has {read} instructions, the index says {}", record.instructions);
        return Err(file.damaged(record.place, message));
    }
    Ok(())
}

/// Reader of the index, with a file handle of its own.
struct Index {
    path: PathBuf,
    bytes: BufReader<File>,
    /// Place of the next byte in the file.
    offset: u64,
    end: u64,
}

impl Index {
    fn open(file: &PerWarpFile) -> Result<Index, TraceError> {
        let mut bytes = BufReader::new(open_file(&file.path)?);
        bytes.seek(SeekFrom::Start(file.index)).map_err(TraceError::io(&file.path, "read"))?;
        Ok(Index { path: file.path.clone(), bytes, offset: file.index, end: file.end })
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], TraceError> {
        if self.end - self.offset < N as u64 {
            let message = "the index ends early".to_owned();
            return Err(TraceError::Damaged { path: self.path.clone(), offset: self.offset, message });
        }
        let mut bytes = [0; N];
        self.bytes.read_exact(&mut bytes).map_err(TraceError::io(&self.path, "read"))?;
        self.offset += N as u64;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u32, TraceError> {
        self.take().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Result<u64, TraceError> {
        self.take().map(u64::from_le_bytes)
    }

    fn triple(&mut self) -> Result<[u32; 3], TraceError> {
        Ok([self.number()?, self.number()?, self.number()?])
    }
}
