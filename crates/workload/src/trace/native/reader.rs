//! Reads a native trace through a memory map.

use super::checksum::checksum;
use super::header::{CheckedHeader, Header, RequiredFeatures};
use super::index::{self, BlockEntry, KernelIndex, take};
use super::{FOOTER, MAGIC, OLDEST, PREFIX, VERSION};
use crate::encode::decode;
use crate::trace::error::TraceError;
use crate::trace::info::Origin;
use crate::unpack::unpack;
use memmap2::Mmap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tombolo_types::stream::{Command, CtaStream, KernelInfo, Program, StreamError};
use tombolo_types::{ArrayInfo, HostPhase, LineSize};

/// Size of an entry in a block's table of CTA ends, in bytes.
const END: usize = 4;

/// End offset of CTA `cta` in a block, counted from the end of the table.
fn end(table: &[u8], cta: usize) -> u32 {
    let (ends, _) = table.as_chunks::<END>();
    u32::from_le_bytes(ends[cta])
}

/// An opened native trace.
pub(in crate::trace) struct NativeProgram {
    path: PathBuf,
    map: Mmap,
    header: CheckedHeader,
    /// Line size in which streams are returned.
    line_size: LineSize,
    kernels: Vec<KernelIndex>,
    /// Unpacked blocks, up to one per decoding thread: CTAs are mostly requested in order.
    unpacked: Mutex<Vec<UnpackedBlock>>,
}

/// An unpacked block with its kernel and block number.
#[derive(Default)]
struct UnpackedBlock {
    kernel: u32,
    block: usize,
    bytes: Vec<u8>,
}

/// A defect at a byte offset in the file.
struct Damage {
    offset: u64,
    message: String,
}

impl Damage {
    fn new(offset: u64, message: impl Into<String>) -> Damage {
        Damage { offset, message: message.into() }
    }
}

impl NativeProgram {
    /// Maps `file`, located at `path`, and checks everything except the blocks. Streams are returned in lines of
    /// `line_size`, or in the file's own line size.
    pub(in crate::trace) fn open(
        path: &Path,
        file: &File,
        line_size: Option<LineSize>,
    ) -> Result<NativeProgram, TraceError> {
        // SAFETY: the bytes are only read, and nothing read is trusted or assumed to stay. A file that another
        // process cuts while it is mapped ends this process with a bus error; like every program that maps
        // its input, we ask users not to do that. Our own writer never changes a file in place.
        let map = unsafe { Mmap::map(file) }.map_err(TraceError::io(path, "map"))?;
        if let Some(version) = map.get(8..12) {
            let found = u32::from_le_bytes(version.try_into().expect("four bytes"));
            if !(OLDEST..=VERSION).contains(&found) {
                return Err(TraceError::Version { path: path.to_owned(), found, oldest: OLDEST, newest: VERSION });
            }
        }
        let damaged = |damage: Damage| damage.error(path);
        let (header, start) = read_header(&map).map_err(damaged)?;
        let line_size = line_size.unwrap_or(header.line_size);
        let defect = |message| damaged(Damage::new(PREFIX as u64, format!("the header: {message}")));
        header.arrays_apart(line_size).map_err(defect)?;
        let kernels = read_index(&map, &header, start).map_err(damaged)?;
        Ok(NativeProgram { path: path.to_owned(), map, line_size, header, kernels, unpacked: Mutex::default() })
    }

    /// Information from the recorder beyond the streams.
    pub(in crate::trace) fn origin(&self) -> Option<&Origin> {
        self.header.origin.as_ref()
    }

    /// Decodes the CTA at position `place` of an unpacked block, for a kernel with up to `warps` warps per CTA.
    fn decode(
        &self,
        block: &BlockEntry,
        place: u32,
        warps: u32,
        bytes: &[u8],
        into: &mut CtaStream,
    ) -> Result<(), Damage> {
        let damage = |message: String| Damage::new(block.offset, format!("in the block that begins here, {message}"));
        let (table, encodings) = bytes.split_at(block.ctas as usize * END);
        let end = |cta: u32| end(table, cta as usize) as usize;
        let start = if place == 0 { 0 } else { end(place - 1) };
        let encoded = &encodings[start..end(place)];
        let used = decode(encoded, into).map_err(|error| damage(error.message))?;
        if used != encoded.len() {
            return Err(damage(format!("a CTA of {} bytes ends after {used}", encoded.len())));
        }
        if into.warps.len() > warps as usize {
            return Err(damage(format!("a CTA has {} warps, its kernel's have {warps}", into.warps.len())));
        }
        super::lines::adapt(into, self.header.line_size, self.line_size).map_err(|error| damage(error.message))
    }

    /// Unpacks a block and checks that its parts add up.
    fn unpack(&self, block: &BlockEntry, into: &mut Vec<u8>) -> Result<(), Damage> {
        let damage = |message: String| Damage::new(block.offset, message);
        let packed = &self.map[block.offset as usize..block.offset as usize + block.length as usize];
        if checksum(packed) != block.checksum {
            return Err(damage(format!("the checksum of the block of {} bytes does not match", block.length)));
        }
        unpack(packed, block.unpacked as usize, into)
            .map_err(|error| damage(format!("the block cannot be unpacked: {error}")))?;
        if into.len() != block.unpacked as usize {
            return Err(damage(format!("the block unpacks to {} bytes, expected {}", into.len(), block.unpacked)));
        }
        let Some((table, encodings)) = into.split_at_checked(block.ctas as usize * END) else {
            return Err(damage(format!("the block is too short for {} CTAs", block.ctas)));
        };
        let mut ends = (0..block.ctas as usize).map(|cta| end(table, cta));
        if !ends.clone().is_sorted() || ends.next_back() != Some(encodings.len() as u32) {
            return Err(damage("the CTAs of the block do not add up to its length".to_owned()));
        }
        Ok(())
    }

    /// Takes an unpacked block from the pool, preferably the requested block if a thread has just used it.
    fn borrow(&self, kernel: u32, block: usize) -> UnpackedBlock {
        let mut kept = self.unpacked.lock().unwrap_or_else(PoisonError::into_inner);
        let same = kept.iter().position(|unpacked| unpacked.kernel == kernel && unpacked.block == block);
        match same {
            Some(place) => kept.swap_remove(place),
            None => kept.pop().unwrap_or_default(),
        }
    }

    fn read_cta(&self, kernel: u32, cta: u32, into: &mut CtaStream) -> Result<(), Damage> {
        let index = self.kernels.get(kernel as usize);
        let Some((index, (number, place))) = index.and_then(|index| Some((index, index.find(cta)?))) else {
            return Err(Damage::new(0, format!("there is no CTA {cta} of kernel {kernel}")));
        };
        let block = &index.blocks[number];
        let mut unpacked = self.borrow(kernel, number);
        let here = !unpacked.bytes.is_empty() && unpacked.kernel == kernel && unpacked.block == number;
        if !here {
            self.unpack(block, &mut unpacked.bytes)?;
            unpacked.kernel = kernel;
            unpacked.block = number;
        }
        let warps = self.header.kernels[kernel as usize].warps(self.header.warp_width);
        let result = self.decode(block, place, warps, &unpacked.bytes, into);
        self.unpacked.lock().unwrap_or_else(PoisonError::into_inner).push(unpacked);
        result
    }
}

impl Damage {
    fn error(self, path: &Path) -> TraceError {
        TraceError::Damaged { path: path.to_owned(), offset: self.offset, message: self.message }
    }
}

/// Reads the header; also returns the offset of the first block.
fn read_header(map: &[u8]) -> Result<(CheckedHeader, u64), Damage> {
    let mut at = MAGIC.len();
    let short = || Damage::new(map.len() as u64, "the file ends within its header");
    let version = take(map, &mut at).map(u32::from_le_bytes).ok_or_else(short)?;
    let length = take(map, &mut at).map(u32::from_le_bytes).ok_or_else(short)? as usize;
    let expected = take(map, &mut at).map(u64::from_le_bytes).ok_or_else(short)?;
    let bytes = map.get(PREFIX..PREFIX + length).ok_or_else(short)?;
    if checksum(bytes) != expected {
        return Err(Damage::new(PREFIX as u64, "the checksum of the header does not match"));
    }
    let text = |error: serde_json::Error| Damage::new((PREFIX + error.column()) as u64, format!("the header: {error}"));
    let defect = |message| Damage::new(PREFIX as u64, format!("the header: {message}"));
    // Features are checked first, because an unknown feature may explain other anomalies in the header.
    let needs: RequiredFeatures = serde_json::from_slice(bytes).map_err(text)?;
    needs.check(version).map_err(defect)?;
    let header: Header = serde_json::from_slice(bytes).map_err(text)?;
    let checked = header.check().map_err(defect)?;
    Ok((checked, (PREFIX + length) as u64))
}

/// Reads and checks footer and index.
fn read_index(map: &[u8], header: &CheckedHeader, start: u64) -> Result<Vec<KernelIndex>, Damage> {
    let footer_at = map.len().checked_sub(FOOTER).filter(|at| *at as u64 >= start);
    let footer_at = footer_at.ok_or_else(|| Damage::new(map.len() as u64, "the file ends before its footer"))?;
    let footer = &map[footer_at..];
    let mut at = 0;
    let mut number = || take(footer, &mut at).map(u64::from_le_bytes).expect("a footer has four numbers");
    let [offset, length, index_sum, footer_sum] = [number(), number(), number(), number()];
    if footer[FOOTER - MAGIC.len()..] != *MAGIC {
        return Err(Damage::new(footer_at as u64, "the file is cut short: it does not end with a footer"));
    }
    if checksum(&footer[..24]) != footer_sum {
        return Err(Damage::new(footer_at as u64, "the checksum of the footer does not match"));
    }
    if offset < start || offset.checked_add(length) != Some(footer_at as u64) {
        let message = format!("an index of {length} bytes at byte {offset} does not end at the footer");
        return Err(Damage::new(footer_at as u64, message));
    }
    let bytes = &map[offset as usize..footer_at];
    if checksum(bytes) != index_sum {
        return Err(Damage::new(offset, "the checksum of the index does not match"));
    }
    let ctas = header.kernels.iter().map(|kernel| kernel.ctas);
    index::read(bytes, ctas, start, offset).map_err(|(at, message)| Damage::new(offset + at as u64, message))
}

impl Program for NativeProgram {
    fn name(&self) -> &str {
        &self.header.name
    }

    fn line_size(&self) -> LineSize {
        self.line_size
    }

    fn warp_width(&self) -> u32 {
        self.header.warp_width
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.header.kernels
    }

    fn commands(&self) -> &[Command] {
        &self.header.commands
    }

    fn arrays(&self) -> &[ArrayInfo] {
        &self.header.arrays
    }

    fn host_phases(&self) -> &[HostPhase] {
        &self.header.phases
    }

    fn setup(&self) -> &HostPhase {
        &self.header.setup
    }

    fn results(&self) -> &HostPhase {
        &self.header.results
    }

    fn cta(&self, kernel: u32, cta: u32, into: &mut CtaStream) -> Result<(), StreamError> {
        let read = self.read_cta(kernel, cta, into);
        read.map_err(|damage| StreamError { message: damage.error(&self.path).to_string() })
    }
}
