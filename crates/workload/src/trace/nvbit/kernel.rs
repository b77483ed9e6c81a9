//! The body of a kernel trace: thread blocks, their warps, their instructions.

use super::cursor::{Cursor, decimal};
use super::header::{Header, triple};
use super::instruction::Parser;
use super::spill::Spill;
use super::warp::{Census, Translator};
use crate::encode::encode;
use crate::trace::container::LineReader;
use crate::trace::error::{Mismatch, TraceError};
use crate::trace::foreign;
use std::path::Path;
use tombolo_types::LineSize;
use tombolo_types::stream::CtaStream;

/// Maximum number of operations, and maximum number of line transactions, in a thread block: a decoded block then stays
/// below a gigabyte. Real blocks have up to some millions.
const LARGEST_BLOCK: usize = 1 << 25;
/// Maximum number of thread blocks absent from a trace: each still becomes a CTA in the program.
const MOST_ABSENT: u64 = 1 << 24;
/// Token count in a raw trace's shortest line: a block, a warp, program counter, mask, counts and an opcode.
const RAW_TOKENS: usize = 9;

/// Spill location for an encoded CTA.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpillRange {
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// A completely read kernel trace.
pub(super) struct Kernel {
    pub(super) header: Header,
    pub(super) census: Census,
    /// Locations of the CTAs in the file, in CTA order.
    places: Vec<SpillRange>,
    /// Indices of the CTAs in the file; empty if the whole grid is present.
    present: Vec<u32>,
    /// Names of the first few absent CTAs; empty if all are present.
    pub(super) missing: String,
    /// Number of warps absent from CTAs in the file.
    pub(super) absent_warps: u64,
}

impl Kernel {
    /// Thread blocks in the grid but absent from the file. Absent blocks ran without any traced instruction.
    pub(super) fn absent(&self) -> u64 {
        u64::from(self.header.blocks()) - self.places.len() as u64
    }

    /// Location of CTA `cta` of the grid, if present in the file.
    pub(super) fn place(&self, cta: u32) -> Option<SpillRange> {
        let index = match &self.present[..] {
            [] => Some(cta as usize),
            present => present.binary_search(&cta).ok(),
        };
        index.map(|index| self.places[index])
    }
}

/// Reads the kernel trace at `path`; `stream_slot` numbers its CUDA stream within the program. Encoded CTAs are written
/// to `spill`.
pub(super) fn read(
    path: &Path,
    line_size: LineSize,
    stream_slot: impl FnOnce(&Header) -> u64,
    spill: &mut Spill,
) -> Result<Kernel, TraceError> {
    let mut lines = LineReader::open(path)?;
    let header = Header::read(&mut lines)?;
    let translator = Translator::new(&header, stream_slot(&header), line_size);
    let mut body = BodyParser {
        warps: header.warps(),
        parser: Parser::new(header.version, header.lineinfo),
        header,
        translator,
        stream: CtaStream::default(),
        encoded: Vec::new(),
        found: Vec::new(),
        absent_warps: 0,
    };
    while at_block(&mut lines, body.found.is_empty())? {
        body.block(&mut lines, spill)?;
    }
    body.finish(&lines)
}

/// Skips to the next thread block, which may be the `first`; returns true if another block exists.
fn at_block(lines: &mut LineReader, first: bool) -> Result<bool, TraceError> {
    while let Some(line) = lines.next()? {
        match line {
            b"#BEGIN_TB" => return Ok(true),
            b"#END_TB" => {
                let mismatch = Mismatch::new("#BEGIN_TB before", line);
                return Err(lines.error(mismatch));
            }
            [] | [b'#', ..] => {}
            _ if first && is_raw(line) => return Err(foreign::RAW.at(lines.path())),
            _ => {
                let mismatch = Mismatch::new("#BEGIN_TB or the end of the file", line);
                return Err(lines.error(mismatch));
            }
        }
    }
    Ok(false)
}

/// True if `line` is an instruction of a raw trace: `x y z warp` precedes the fields of a sorted trace.
fn is_raw(line: &[u8]) -> bool {
    let mut cursor = Cursor::new(line);
    let prefixed = (0..4).all(|_| cursor.token().is_some_and(|token| decimal(token).is_some()));
    prefixed && (4..RAW_TOKENS).all(|_| cursor.token().is_some())
}

/// A thread block present in the file.
struct ParsedBlock {
    cta: u32,
    /// Line number at which the block is named.
    line: u64,
    place: SpillRange,
}

/// State while reading the trace body.
struct BodyParser {
    header: Header,
    /// Warps per thread block.
    warps: u32,
    parser: Parser,
    translator: Translator,
    stream: CtaStream,
    encoded: Vec<u8>,
    found: Vec<ParsedBlock>,
    absent_warps: u64,
}

/// A warp in the block being read.
struct WarpSection {
    warp: u32,
    /// Number of announced instruction lines, and (`read`) number of lines read so far.
    announced: Option<u64>,
    read: u64,
    /// Index of the warp's first operation.
    start: u32,
}

impl BodyParser {
    /// Reads a thread block, starting after its `#BEGIN_TB`.
    fn block(&mut self, lines: &mut LineReader, spill: &mut Spill) -> Result<(), TraceError> {
        self.stream.clear();
        let (cta, line) = self.name(lines)?;
        let mut sections: Vec<WarpSection> = Vec::with_capacity(self.warps as usize);
        loop {
            let Some(line) = lines.next()? else { return Err(lines.error(end_of_file("#END_TB"))) };
            if line.is_empty() {
                continue;
            }
            match self.line(line, cta, &mut sections) {
                Ok(true) => {}
                Ok(false) => break,
                Err(mismatch) => return Err(lines.error(mismatch)),
            }
        }
        self.order_warps(&mut sections);
        self.encoded.clear();
        encode(&self.stream, &mut self.encoded);
        let offset = spill.push(&self.encoded).map_err(TraceError::io(&std::env::temp_dir(), "store decoded CTAs"))?;
        self.found.push(ParsedBlock { cta, line, place: SpillRange { offset, length: self.encoded.len() as u64 } });
        Ok(())
    }

    /// Reads `thread block = x,y,z`; returns the block's index and the line number.
    fn name(&self, lines: &mut LineReader) -> Result<(u32, u64), TraceError> {
        let expected = || {
            let [x, y, z] = self.header.grid;
            format!("`thread block = x,y,z` inside the grid of {x},{y},{z}")
        };
        loop {
            let Some(line) = lines.next()? else { return Err(lines.error(end_of_file(expected()))) };
            if line.is_empty() {
                continue;
            }
            let place = value(line, b"thread block").and_then(triple);
            let Some(cta) = place.and_then(|place| self.header.block_index(place)) else {
                let mismatch = Mismatch::new(expected(), line);
                return Err(lines.error(mismatch));
            };
            return Ok((cta, lines.line()));
        }
    }

    /// Processes a line in a block; returns true if the block continues.
    #[inline]
    fn line(&mut self, line: &[u8], cta: u32, sections: &mut Vec<WarpSection>) -> Result<bool, Mismatch> {
        match sections.last_mut() {
            Some(WarpSection { announced: Some(announced), read, .. }) if *read < *announced => {
                *read += 1;
                if matches!(line[0], b'#' | b'w' | b'i' | b't') {
                    return Err(Mismatch::new(format!("instruction {read} of the {announced} announced"), line));
                }
                let instruction = self.parser.parse(line)?;
                self.translator.push(&instruction, &mut self.stream)?;
                if self.stream.ops.len() > LARGEST_BLOCK || self.stream.accesses.len() > LARGEST_BLOCK {
                    let expected = format!("at most {LARGEST_BLOCK} operations or line transactions in a thread block");
                    return Err(Mismatch::new(expected, line));
                }
            }
            Some(WarpSection { announced: announced @ None, .. }) => {
                let count = value(line, b"insts").and_then(decimal);
                *announced = Some(count.ok_or_else(|| Mismatch::new("`insts = <number of instructions>`", line))?);
            }
            _ if line == b"#END_TB" => {
                self.add_absent_warps(sections);
                return Ok(false);
            }
            // Cluster coordinates of a thread block launched in a cluster are ignored.
            None if line.starts_with(b"cluster ") => {}
            _ => self.begin_warp(line, cta, sections)?,
        }
        Ok(true)
    }

    fn begin_warp(&mut self, line: &[u8], cta: u32, sections: &mut Vec<WarpSection>) -> Result<(), Mismatch> {
        let number = value(line, b"warp").and_then(decimal);
        let Some(warp) = number.filter(|warp| *warp < u64::from(self.warps)).map(|warp| warp as u32) else {
            let expected = format!("`warp = 0` to `warp = {}`, or #END_TB", self.warps - 1);
            return Err(Mismatch::new(expected, line));
        };
        if sections.iter().any(|section| section.warp == warp) {
            return Err(Mismatch::new(format!("each warp once, but warp {warp} again"), line));
        }
        self.translator.begin(u64::from(cta) * u64::from(self.warps) + u64::from(warp), &self.stream);
        let start = self.stream.ops.len() as u32;
        sections.push(WarpSection { warp, announced: None, read: 0, start });
        Ok(())
    }

    /// Adds the warps that the block does not mention: absent warps ran without any traced instruction.
    fn add_absent_warps(&mut self, sections: &mut Vec<WarpSection>) {
        if sections.len() == self.warps as usize {
            return;
        }
        let start = self.stream.ops.len() as u32;
        let mut there = vec![false; self.warps as usize];
        sections.iter().for_each(|section| there[section.warp as usize] = true);
        for warp in (0..self.warps).filter(|warp| !there[*warp as usize]) {
            sections.push(WarpSection { warp, announced: Some(0), read: 0, start });
            self.absent_warps += 1;
        }
    }

    /// Fills the stream's warps, with operations in warp order regardless of the order in the file.
    fn order_warps(&mut self, sections: &mut [WarpSection]) {
        let ends: Vec<u32> = sections.iter().skip(1).map(|section| section.start).collect();
        let last = self.stream.ops.len() as u32;
        let mut ranges: Vec<(u32, std::ops::Range<u32>)> = sections
            .iter()
            .zip(ends.into_iter().chain([last]))
            .map(|(section, end)| (section.warp, section.start..end))
            .collect();
        if !ranges.is_sorted_by_key(|(warp, _)| *warp) {
            ranges.sort_unstable_by_key(|(warp, _)| *warp);
            let mut ops = Vec::with_capacity(self.stream.ops.len());
            for (_, range) in &mut ranges {
                let start = ops.len() as u32;
                ops.extend_from_slice(&self.stream.ops[range.start as usize..range.end as usize]);
                *range = start..ops.len() as u32;
            }
            self.stream.ops = ops;
        }
        self.stream.warps.extend(ranges.into_iter().map(|(_, range)| range));
    }

    /// Checks for repeated thread blocks and for missing blocks beyond the limit.
    fn finish(mut self, lines: &LineReader) -> Result<Kernel, TraceError> {
        self.found.sort_by_key(|found| found.cta);
        if let Some(pair) = self.found.windows(2).find(|pair| pair[0].cta == pair[1].cta) {
            let name = self.header.block_name(pair[0].cta);
            let expected = format!("each thread block once; line {} began {name}", pair[0].line);
            let found = format!("thread block {name} again");
            return Err(Mismatch { expected, found }.at(lines.path(), pair[1].line));
        }
        let (found, expected) = (self.found.len() as u64, u64::from(self.header.blocks()));
        let missing = self.missing();
        if found == 0 || expected - found > MOST_ABSENT {
            let path = lines.path().to_owned();
            return Err(TraceError::MissingBlocks { path, found, expected, most: MOST_ABSENT, missing });
        }
        let places = self.found.iter().map(|found| found.place).collect();
        let partial = found < expected;
        let present = self.found.iter().filter(|_| partial).map(|found| found.cta).collect();
        let BodyParser { header, translator, absent_warps, .. } = self;
        Ok(Kernel { header, census: translator.census, places, present, missing, absent_warps })
    }

    /// Names of the first few absent thread blocks.
    fn missing(&self) -> String {
        const NAMED: usize = 4;
        let mut present = self.found.iter().map(|found| found.cta).peekable();
        let absent = (0..self.header.blocks()).filter(|cta| present.next_if_eq(cta).is_none());
        let mut names: Vec<String> = absent.take(NAMED + 1).map(|cta| self.header.block_name(cta)).collect();
        if names.len() > NAMED {
            "…".clone_into(&mut names[NAMED]);
        }
        names.join(" ")
    }
}

/// The text after `key =`.
fn value<'a>(line: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut cursor = Cursor::new(line.strip_prefix(key)?);
    (cursor.token()? == b"=").then_some(cursor.rest().trim_ascii())
}

fn end_of_file(expected: impl Into<String>) -> Mismatch {
    Mismatch { expected: expected.into(), found: "the end of the file".to_owned() }
}
